"""What the practice planner understands of a description, and what it leaves alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_designer.practice.understanding import understood
from droidfleet_designer.practice.wishes import (
    HIDDEN,
    Again,
    Back,
    Check,
    LongPress,
    Name,
    Open,
    Pause,
    Read,
    ScrollTo,
    Search,
    Tap,
    Turn,
    Type,
    Wish,
)

OK = Name("OK", quoted=True)


def quoted(text: str) -> Name:
    return Name(text, quoted=True)


@pytest.mark.parametrize(
    ("said", "wish"),
    [
        ('Open "Shop".', Open(quoted("Shop"))),
        ("Open Shop app", Open(Name("Shop"), app=True)),
        ("打开“商店”", Open(quoted("商店"))),
        ("打开商店应用", Open(Name("商店"), app=True)),
        ('tap "OK"', Tap(OK)),
        ('please press the "OK" button', Tap(OK)),
        ("click on 'OK'", Tap(OK)),
        ("点击“OK”按钮", Tap(OK)),
        ("请按「OK」", Tap(OK)),
        ('long-press "OK"', LongPress(OK)),
        ("长按“OK”", LongPress(OK)),
        ('type "a, b; c" into "Name"', Type("a, b; c", quoted("Name"))),
        ('fill in "Name" with "Ada"', Type("Ada", quoted("Name"))),
        ("在“姓名”里输入“李雷”", Type("李雷", quoted("姓名"))),
        ('enter "Ada"', Type("Ada", None)),
        ('search for "green tea"', Search("green tea")),
        ("搜索绿茶", Search("绿茶")),
        ('scroll down to "About"', ScrollTo(quoted("About"))),
        ("滚动到“关于”", ScrollTo(quoted("关于"))),
        ('check that "Done" is shown', Check(quoted("Done"))),
        ("确认“完成”显示", Check(quoted("完成"))),
        ('wait until "Done" appears', Check(quoted("Done"), waiting=True)),
        ("等待“完成”出现", Check(quoted("完成"), waiting=True)),
        ('read "price"', Read(quoted("price"))),
        ("读取“价格”", Read(quoted("价格"))),
        ('turn on "Wi-Fi"', Turn(quoted("Wi-Fi"), on=True)),
        ("turn Wi-Fi off", Turn(Name("Wi-Fi"), on=False)),
        ("打开“蓝牙”开关", Turn(quoted("蓝牙"), on=True)),
        ("关闭“蓝牙”开关", Turn(quoted("蓝牙"), on=False)),
        ("go back", Back()),
        ("返回上一页", Back()),
        ("wait for 5 seconds", Pause(5_000)),
        ("等待2分钟", Pause(120_000)),
    ],
)
def test_a_sentence_is_understood_as_one_wish(said: str, wish: Wish) -> None:
    found = understood(said)
    assert ([clause.wish for clause in found.clauses], found.rest) == ([wish], "")


@pytest.mark.parametrize(
    "said",
    [
        'If "OK" is shown, tap it',
        'do not tap "OK"',
        'tap "OK" unless it is late',
        'tap the second "OK"',
        'tap "OK" or "Cancel"',
        'tap everything but "OK" without waiting',
        'check that "OK" is not shown',
        "如果“OK”显示就点击",
        "不要点击“OK”",
        "点击第二个“OK”",
        "Make me happy",
        'tap "OK" every 5 seconds',  # for how long?
        'tap "OK" 5000 times',
    ],
)
def test_what_says_more_than_a_rule_holds_is_not_understood(said: str) -> None:
    found = understood(said)
    assert (found.clauses, bool(found.rest)) == ((), True)


def test_nothing_after_a_part_that_is_not_understood_is_taken() -> None:
    found = understood('Tap "A", juggle, tap "B".')
    assert ([clause.said for clause in found.clauses], found.rest) == (['Tap "A"'], 'juggle, tap "B"')


def test_it_means_the_thing_before_it() -> None:
    assert [clause.wish for clause in understood('Scroll to "Row 9" and tap it').clauses] == [
        ScrollTo(quoted("Row 9")),
        Tap(quoted("Row 9")),
    ]


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ('tap "OK" 3 times', Again(times=3)),
        ("点击“OK”三次", Again(times=3)),
        ('tap "OK" for two hours', Again(milliseconds=7_200_000)),
        ('randomly tap "OK"', Again(chance=30)),
        ("随机点击“OK”", Again(chance=30)),
        (
            'for 10 minutes tap "OK" every 5 to 20 seconds',
            Again(milliseconds=600_000, rest=True, pause=(5_000, 20_000)),
        ),
        ("持续10分钟点击“OK”", Again(milliseconds=600_000, rest=True)),
    ],
)
def test_how_often_and_how_long_is_understood(said: str, again: Again) -> None:
    [clause] = understood(said).clauses
    assert (clause.wish, clause.again) == (Tap(OK), again)


@pytest.mark.parametrize(
    ("said", "cron"),
    [
        ("Every day at 8", "0 8 * * *"),
        ("every day at 8:30 pm", "30 20 * * *"),
        ("every day at 12 am", "0 0 * * *"),
        ("every weekday at 7:05", "5 7 * * 1-5"),
        ("every sunday at 10 am", "0 10 * * 0"),
        ("daily at 23:59", "59 23 * * *"),
        ("every hour", "0 * * * *"),
        ("每天8点", "0 8 * * *"),
        ("每天早上8点半", "30 8 * * *"),
        ("每天晚上十点", "0 22 * * *"),
        ("每天凌晨12点", "0 0 * * *"),
        ("每天中午12点", "0 12 * * *"),
        ("每周日9点15分", "15 9 * * 0"),
        ("每周三9点", "0 9 * * 3"),
        ("每个工作日9点", "0 9 * * 1-5"),
    ],
)
def test_when_is_a_schedule_and_no_step(said: str, cron: str) -> None:
    found = understood(f'{said}, tap "OK"')
    assert (found.schedule, [clause.wish for clause in found.clauses]) == ({"cron": cron}, [Tap(OK)])


def test_a_time_that_there_is_not_is_not_understood() -> None:
    found = understood('Every day at 25, tap "OK"')
    assert (found.schedule, found.clauses) == (None, ())


@pytest.mark.parametrize(
    ("said", "target"),
    [
        ('On all phones, tap "OK"', {"all": True}),
        ('tap "OK" on all phones', {"all": True}),
        ("在所有手机上点击“OK”", {"all": True}),
        ('On group "lab", tap "OK"', {"group": "lab"}),
        ('On the phones of group lab, tap "OK"', {"group": "lab"}),
        ("在分组lab的手机上点击“OK”", {"group": "lab"}),
    ],
)
def test_on_which_phones_is_a_target_and_no_step(said: str, target: object) -> None:
    found = understood(said)
    assert (found.target, [clause.wish for clause in found.clauses]) == (target, [Tap(OK)])


def test_what_is_in_quotes_is_never_taken_apart() -> None:
    found = understood('Tap "Every day at 8 on all phones, then go back."')
    [clause] = found.clauses
    assert clause.wish == Tap(quoted("Every day at 8 on all phones, then go back."))


def test_a_secret_stays_out_of_what_is_said_again() -> None:
    [clause] = understood('type "Sunflower-7" into "Password"').clauses
    assert clause.said == f'type "{HIDDEN}" into "Password"'


@settings(max_examples=60)
@given(st.text(alphabet=st.sampled_from('abc ,.;"“”「」tapopen打开点击每天8点5times\ue000\ue0010${}'), max_size=80))
def test_any_description_is_taken_apart_or_left(text: str) -> None:
    found = understood(text)
    assert len(found.clauses) <= 30
