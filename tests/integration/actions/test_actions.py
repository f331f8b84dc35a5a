"""Every action on a virtual phone over the real adb server; the phone's effect log is the judge."""

from __future__ import annotations

import pytest

from droidfleet_agent.virtual_phone.server import PhoneHandle
from droidfleet_shared.protocol.codes import Detail, StepCode
from integration.actions.conftest import Bench

pytestmark = pytest.mark.integration

PACKAGE = "com.example.bench"
ROWS = {"action": "CLICK", "selector": {"text": "Rows"}}


def opened(**fields: object) -> dict[str, object]:
    return {"action": "OPEN", "packageName": PACKAGE, **fields}


async def test_a_long_click_is_one_long_press(bench: Bench) -> None:
    step = await bench.step(action="LONG_CLICK", selector={"text": "Hold me"})

    assert step.detail is Detail.DISPATCHED_UNVERIFIED
    assert bench.seen("held", "tapped") == ["held"]
    assert step.looks == 1


@pytest.mark.parametrize("key", ["HOME", "RECENTS", "NOTIFICATIONS", "QUICK_SETTINGS", "POWER"])
async def test_a_key_that_leads_away_leaves_another_screen(bench: Bench, key: str) -> None:
    step = await bench.step(
        action="KEY", key=key, after={"condition": {"not": {"foreground": PACKAGE}}, "timeoutMs": 3_000}
    )

    assert step.successful
    assert step.dispatched == 1


async def test_a_scroll_goes_on_until_the_row_is_seen(bench: Bench) -> None:
    result = await bench.run(ROWS, {"action": "SCROLL", "until": {"text": "Row 40"}, "maxScrolls": 20})

    step = result.steps[1]
    assert step.detail is Detail.SEEN
    assert step.dispatched == len(bench.seen("swipe"))
    assert step.looks == step.dispatched + 1


async def test_a_scroll_knows_the_end(bench: Bench) -> None:
    result = await bench.run(
        ROWS, {"action": "SCROLL", "maxScrolls": 50}, {"action": "WAIT", "selector": {"text": "Row 80"}}
    )

    assert result.successful
    assert result.steps[1].detail is Detail.END_REACHED


async def test_a_scroll_that_never_sees_it_says_where_it_ended(bench: Bench) -> None:
    result = await bench.run(ROWS, {"action": "SCROLL", "until": {"text": "Row 81"}, "maxScrolls": 50})

    assert result.code is StepCode.TARGET_NOT_FOUND
    assert "the end was reached" in result.message


async def test_a_scroll_stops_at_its_bound(bench: Bench) -> None:
    result = await bench.run(ROWS, {"action": "SCROLL", "maxScrolls": 2})

    assert result.steps[1].detail is Detail.BOUND_REACHED
    assert bench.seen("swipe") == ["swipe", "swipe"]


async def test_a_scroll_up_comes_back_to_the_beginning(bench: Bench) -> None:
    down = {"action": "SCROLL", "maxScrolls": 3}
    up = {"action": "SCROLL", "direction": "UP", "selector": {"resourceId": "rows"}, "until": {"text": "Row 1"}}

    assert (await bench.run(ROWS, down, up)).successful


async def test_a_scroll_goes_across_too(bench: Bench) -> None:
    result = await bench.run(
        {"action": "CLICK", "selector": {"text": "Cards"}},
        {"action": "SCROLL", "direction": "RIGHT", "selector": {"resourceId": "cards"}, "until": {"text": "Last card"}},
    )

    assert result.successful


async def test_a_swipe_over_an_area_moves_what_is_in_it(bench: Bench) -> None:
    result = await bench.run(
        {"action": "CLICK", "selector": {"text": "Cards"}},
        {
            "action": "SWIPE",
            "selector": {"resourceId": "cards"},
            "direction": "LEFT",
            "after": {"condition": {"visible": {"text": "Second card"}}},
        },
    )

    assert result.successful
    assert result.steps[1].detail is Detail.VERIFIED
    assert bench.seen("swipe") == ["swipe"]


async def test_a_drag_ends_at_the_other_node(bench: Bench) -> None:
    step = await bench.step(action="DRAG", selector={"text": "Handle"}, to={"text": "Place"})

    assert step.successful
    assert bench.details("moved") == [{"to": "Place"}]


async def test_a_drag_waits_for_what_must_be_visible(bench: Bench) -> None:
    step = await bench.step(
        action="DRAG",
        selector={"text": "Handle"},
        byPercent={"x": 0, "y": 10},
        requireVisible={"text": "Edit mode"},
        timeoutMs=1_500,
    )

    assert step.code is StepCode.TARGET_NOT_FOUND
    assert bench.seen("drag", "moved") == []


@pytest.mark.parametrize("country", ["Country 2", "Country 41"])
async def test_an_option_is_chosen_and_the_list_seen_closed(bench: Bench, country: str) -> None:
    step = await bench.step(action="SELECT_OPTION", selector={"resourceId": "country"}, option={"text": country})

    assert step.detail is Detail.VERIFIED
    assert bench.details("chosen") == [{"country": country}]


async def test_an_option_that_is_not_in_the_list_is_not_found(bench: Bench) -> None:
    step = await bench.step(
        action="SELECT_OPTION", selector={"resourceId": "country"}, option={"text": "Atlantis"}, maxScrolls=3
    )

    assert step.code is StepCode.TARGET_NOT_FOUND
    assert bench.seen("chosen") == []


async def test_a_list_that_does_not_close_is_a_failure_after_one_tap(bench: Bench) -> None:
    step = await bench.step(
        action="SELECT_OPTION", selector={"resourceId": "broken"}, option={"text": "Never"}, timeoutMs=2_500
    )

    assert step.code is StepCode.ACTION_FAILED
    assert bench.seen("chosen_in_vain") == ["chosen_in_vain"]


async def test_an_app_in_front_is_left_alone(bench: Bench) -> None:
    step = await bench.step(**opened())

    assert step.detail is Detail.ALREADY_FOREGROUND
    assert step.dispatched == 0
    assert bench.seen() == []


async def test_an_app_is_brought_to_the_front(bench: Bench) -> None:
    step = await bench.step(**opened(packageName="com.example.other"))

    assert step.detail is Detail.IN_FRONT
    assert bench.seen("start_app", "stop_app") == ["start_app"]


async def test_an_app_is_started_afresh(bench: Bench) -> None:
    result = await bench.run(ROWS, opened(stopFirst=True), {"action": "WAIT", "selector": {"text": "Hold me"}})

    assert result.successful
    assert bench.seen("start_app", "stop_app") == ["stop_app", "start_app"]


async def test_an_app_that_is_not_installed_fails_at_once_and_says_so(bench: Bench) -> None:
    step = await bench.step(**opened(packageName="com.example.nothing"))

    assert step.code is StepCode.ACTION_FAILED
    assert "Install the app" in step.message


async def test_a_stopped_app_is_not_in_front(bench: Bench) -> None:
    step = await bench.step(action="STOP_APP", packageName=PACKAGE)

    assert step.detail is Detail.STOPPED
    assert bench.seen() == ["stop_app"]


async def test_a_sleeping_phone_is_woken_and_unlocked(bench: Bench) -> None:
    bench.running.do(lambda running: running.phone.sleep())
    result = await bench.run({"action": "WAKE"}, {"action": "WAIT", "selector": {"text": "Hold me"}})

    assert result.successful
    assert result.steps[0].dispatched == 2


async def test_a_phone_whose_automation_server_died_in_its_sleep_is_woken(bench: Bench) -> None:
    """Whether the display is on is asked of the shell, which answers without that server."""

    def fall_asleep(running: PhoneHandle) -> None:
        running.phone.sleep()
        running.kill_server()

    bench.running.do(fall_asleep)
    step = await bench.step(action="WAKE", timeoutMs=20_000)

    assert (step.detail, step.dispatched) == (Detail.VERIFIED, 2)


async def test_a_phone_that_is_awake_is_not_touched(bench: Bench) -> None:
    step = await bench.step(action="WAKE")

    assert step.detail is Detail.VERIFIED
    assert step.dispatched == 0


async def test_a_screenshot_is_kept_beside_the_result(bench: Bench) -> None:
    step = await bench.step(action="SCREENSHOT", name="bench")

    [artifact] = step.artifacts
    assert (artifact.name, artifact.media_type) == ("bench", "image/jpeg")


async def test_rows_are_read_as_columns_of_equal_length_on_one_look(bench: Bench) -> None:
    result = await bench.run(
        ROWS,
        {
            "action": "EXTRACT",
            "selector": {
                "className": "android.widget.LinearLayout",
                "has": {"textStartsWith": "Row "},
                "within": {"resourceId": "rows"},
            },
            "all": True,
            "maxItems": 3,
            "fields": [
                {"outputField": "title", "selector": {"resourceId": "title"}},
                {"outputField": "number", "selector": {"resourceId": "number"}},
                {"outputField": "price", "selector": {"resourceId": "price"}},
            ],
        },
    )

    assert result.outputs == {
        "title": ["Row 1", "Row 2", "Row 3"],
        "number": ["No. 1", "No. 2", "No. 3"],
        "price": [None, None, None],
    }
    assert result.steps[1].looks == 1
