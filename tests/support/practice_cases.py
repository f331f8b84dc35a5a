"""Random apps for the practice planner, descriptions of what to do with them, and what must have come of it.

Each case is made of deeds. A deed says what the person wrote, and which effects the app reports once it is done, so
that a draft is judged by what its task does and not by what it says. A deed that cannot be done as it is written (a
name that nothing has, or two things have) must end the draft there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from pydantic import JsonValue

from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario

Json = dict[str, JsonValue]

Effect = tuple[str, JsonValue]
"""Its name and its details."""

PACKAGE = "com.example.practised"
COMPOSED = 0.25
"""Of the apps: without resource ids, with labels inside what is tapped."""

CHINESE_COMMA = "\uff0c"

TAINTED = "tainted"
"""The effect of what nobody asked for: it must never be seen."""

ITEMS = {
    "en": (
        "Green tea", "Black tea", "Oolong 100 g", "Kettle", "Cup & saucer", "Café Anna", "50 % cocoa", "Honey (small)",
        "Tea for two", "A/B blend", "Mint, fresh", "Dr. Lee's mix", "Jasmine", "Teapot", "Milk jug", "Sugar ${x}",
        "Strainer", "Rooibos", "Chai", "Matcha",
    ),
    "zh": (
        "绿茶", "红茶", "乌龙茶 100 克", "水壶", "茶杯", "李雷的茶", "普洱", "茉莉花茶", "白茶", "蜂蜜", "茶叶罐",
        "菊花茶", "龙井", "碧螺春", "铁观音", "大红袍", "奶茶", "抹茶", "柠檬", "陈皮",
    ),
}  # fmt: skip
SWITCHES = {
    "en": ("Wi-Fi", "Dark theme", "Location", "Auto-rotate", "Battery saver", "Hotspot", "Night light", "Bluetooth"),
    "zh": ("无线网络", "深色主题", "定位", "自动旋转", "省电模式", "个人热点", "夜间模式", "蓝牙"),
}
FIELDS = {
    "en": ("Name", "City", "Street", "Company", "Nickname", "Remark"),
    "zh": ("姓名", "城市", "街道", "公司", "昵称", "备注"),
}
TYPED = {
    "en": ("Ada Okafor", "Aarhus", "Main Street 5, 2nd floor", "Noor & Sons", "it's me; hello", "100 % \\ done"),
    "zh": ("李雷", "北京", "中山路 5 号, 二楼", "王芳公司", "你好; 再见", "完成 100 %"),
}
LABELS = {"en": ("Garden", "Ledger", "Pantry", "Workbench"), "zh": ("花园", "账本", "小店", "工作台")}
ADDING = {"en": "Add to basket", "zh": "加入购物车"}
SAVING = {"en": "Keep these", "zh": "保存资料"}
SENDING = {"en": "Send report", "zh": "发送报告"}
LATER = {"en": "Not now", "zh": "以后再说"}
YES = {"en": "Yes, join", "zh": "立即加入"}


@dataclass(frozen=True, slots=True)
class Deed:
    """A part of a description. ``possible``: there is exactly one thing that it can mean; None:
    that depends on what is in sight. ``tried``: it may be done
    while exploring, and in a trial. ``output``: what is read, where it reads."""

    said: str
    effects: tuple[Effect, ...] = ()
    possible: bool | None = True
    tried: bool = True
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario and what is to be done on it."""

    kind: str
    language: str
    scenario: Scenario
    deeds: tuple[Deed, ...]
    plan: str = ""
    schedule: str | None = None
    everyone: bool = False

    @property
    def description(self) -> str:
        """What the person writes."""
        between, end = (", ", ".") if self.language == "en" else (CHINESE_COMMA, "。")
        return self.plan + between.join(deed.said for deed in self.deeds) + end

    @property
    def possible(self) -> bool | None:
        """Whether all of it can be done, as it is written."""
        each = {deed.possible for deed in self.deeds}
        return False if False in each else None if None in each else True


@dataclass(slots=True)
class _App:
    """An app in the making."""

    random: Random
    language: str
    variables: Json = field(default_factory=dict)
    screens: Json = field(default_factory=dict)
    dialogs: Json = field(default_factory=dict)
    deeds: list[Deed] = field(default_factory=list)
    compose: bool = False

    def say(self, english: str, chinese: str, name: str = "") -> str:
        """A sentence in the app's language, a name of it in quotes."""
        opening, closing = self.random.choice((('"', '"'), ("“", "”"))) if self.language == "en" else ("“", "”")
        quoted = f"{opening}{name}{closing}"
        return (english if self.language == "en" else chinese).replace("NAME", quoted)

    def do(self, said: str, *effects: Effect, possible: bool | None = True, tried: bool = True) -> None:
        """Adds a deed."""
        self.deeds.append(Deed(said, effects, possible, tried))

    def page(self, name: str, *widgets: Json, **more: JsonValue) -> None:
        """Adds a screen."""
        title: Json = {"type": "text", "text": f"- {name} -", "style": "title"}
        root: Json = {"type": "column", "height": "fill", "children": [title, *widgets]}
        drawn: Json = {"toolkit": "compose"} if self.compose else {}
        self.screens[name] = {"activity": f".{name.capitalize()}Activity", "root": root, **drawn, **more}


def case(seed: int) -> Case:
    """The case of a seed: the same each time."""
    random = Random(seed)
    app = _App(random, random.choice(("en", "zh")))
    kind, make = random.choice(tuple(KINDS.items()))
    app.compose = random.random() < COMPOSED
    label = random.choice(LABELS[app.language])
    opening = (
        app.say("Open NAME", "打开NAME", label) if random.random() < 0.7 else app.say(f"open {label}", f"打开{label}")
    )
    app.do(opening)
    make(app)
    if random.random() < 0.25:
        _in_the_way(app)
    plan, schedule, everyone = _plan(app)
    return Case(kind, app.language, _scenario(app, label), tuple(app.deeds), plan, schedule, everyone)


def _scenario(app: _App, label: str) -> Scenario:
    made: Json = {"package": PACKAGE, "label": label, "home": "main", "variables": app.variables}
    made |= {"screens": app.screens, "dialogs": app.dialogs}
    other: Json = {"package": "com.example.other", "label": "Other", "home": "main"}
    other["screens"] = {
        "main": {"activity": ".Main", "root": {"type": "column", "children": [{"type": "text", "text": "Other"}]}}
    }
    document: Json = {"format": 1, "name": "practice", "start": app.random.choice((PACKAGE, "com.example.other"))}
    document["apps"] = [made, other]
    return parse_scenario(json.dumps(document))


def _in_the_way(app: _App) -> None:
    """A dialog that comes up by itself, with a choice that nobody made."""
    later: Json = {"type": "button", "text": LATER[app.language], "on_click": [{"close_dialog": True}]}
    yes: Json = {"type": "button", "text": YES[app.language], "on_click": [{"effect": TAINTED}, {"close_dialog": True}]}
    buttons = [later, yes] if app.random.random() < 0.5 else [yes, later]
    text: Json = {"type": "text", "text": "Join the club?" if app.language == "en" else "加入会员吗?"}
    app.dialogs["offer"] = {"root": {"type": "column", "padding": 20, "children": [text, *buttons]}}
    main = app.screens["main"]
    assert isinstance(main, dict)
    main["on_open"] = [{"dialog": "offer"}]


def _plan(app: _App) -> tuple[str, str | None, bool]:
    """When, and on which phones."""
    chosen = app.random.random()
    hour = app.random.randint(1, 11)
    if chosen < 0.15:
        return app.say(f"Every day at {hour}:30, ", f"每天{hour}点半, "), f"30 {hour} * * *", False
    if chosen < 0.3:
        return app.say("On all phones, ", "在所有手机上, "), None, True
    if chosen < 0.4:
        return (
            app.say(f"Every day at {hour} pm on all phones, ", f"每天下午{hour}点在所有手机上, "),
            f"0 {hour + 12} * * *",
            True,
        )
    return "", None, False


# The kinds ------------------------------------------------------------------------------------------------------------


def _shop(app: _App) -> None:
    """A list of rows, perhaps long, perhaps with a search; a page for each."""
    random, names = app.random, list(ITEMS[app.language])
    random.shuffle(names)
    count = random.choice((4, 8, 20, 40))
    rows = [names[place] if place < len(names) else f"{names[place % len(names)]} {place}" for place in range(count)]
    twice = random.random() < 0.15
    chosen = random.choice(rows)
    if twice:
        rows.insert(random.randrange(len(rows)), chosen)
    app.variables |= {"items": [{"name": each} for each in rows], "item": {"name": ""}, "query": ""}
    row: Json = {"type": "row", "height": random.choice((56, 72)), "padding": [16, 0], "align_items": "center"}
    row["on_click"] = [{"set": {"item": "{{entry}}"}}, {"go": "detail"}]
    label: Json = {"type": "text", "text": "{{entry.name}}", "weight": 1}
    star: Json = {"type": "icon", "icon": "star", "on_click": [{"effect": TAINTED}]}
    row["children"] = [
        label | ({"id": "name"} if random.random() < 0.5 else {}),
        *([star] if random.random() < 0.5 else []),
    ]
    listed: Json = {"type": "list", "items": "items", "as": "entry", "row": row}
    searching = random.random() < 0.4
    if searching:
        listed["where"] = {"var": "entry.name", "contains": "{{query}}"}
        hint = app.say("Search the list", "搜索列表")
        app.page("main", {"type": "field", "kind": "search", "hint": hint, "bind": "query"}, listed)
        app.do(app.say("search for NAME", "搜索NAME", chosen))
    else:
        app.page("main", listed)
        if random.random() < 0.3:
            app.do(app.say("scroll to NAME", "滚动到NAME", chosen))
    # A longer name that begins with this one is another thing; only a second one of the same name is in doubt.
    app.do(
        app.say(random.choice(("tap NAME", "click on NAME", "select NAME")), "点击NAME", chosen),
        possible=None if twice else True,
    )
    _detail(app, chosen)


def _detail(app: _App, chosen: str) -> None:
    random = app.random
    adding = ADDING[app.language]
    add: Json = {
        "type": "button",
        "text": adding,
        "on_click": [{"effect": "added", "details": {"name": "{{item.name}}"}}],
    }
    unit = random.choice(("12.50", "3.90"))
    price: Json = {"type": "text", "id": "price", "text": unit}
    twin = [add | {"on_click": [{"effect": TAINTED}]}] if random.random() < 0.1 else []
    icons: list[Json] = [
        {"type": "icon", "icon": "star", "on_click": [{"effect": TAINTED}]} for _ in range(random.randint(0, 2))
    ]
    app.page("detail", {"type": "text", "text": "{{item.name}}"}, price, *icons, add, *twin)
    if random.random() < 0.5:
        app.do(app.say("check that NAME is shown", "确认NAME显示", adding))
    if random.random() < 0.5:
        # Nothing on the screen says which text is the price, but for its id.
        app.deeds.append(Deed(app.say("read the price", "读取price"), output=unit, possible=not app.compose))
    if random.random() < 0.8:
        said = app.say("tap NAME", "点NAME", adding)
        if random.random() < 0.3 and not twin:
            times = random.randint(2, 4)
            said = f"{said} {times} times" if app.language == "en" else f"{said}{times}次"
            added: Effect = ("added", {"name": chosen})
            app.do(said, *[added] * times)
        else:
            app.do(said, ("added", {"name": chosen}), possible=not twin)


def _settings(app: _App) -> None:
    """Switches on pages of their own; some rows are tapped whole, others hold a switch that is."""
    random, names = app.random, list(SWITCHES[app.language])
    random.shuffle(names)
    sections = [f"{name} +" for name in names[:3]]
    rows: list[Json] = []
    for place, name in enumerate(names):
        app.variables[f"v{place}"] = random.random() < 0.5
        rows.append(_switch(random, name, place))
    behind = random.random() < 0.6
    if behind:
        openers: list[Json] = [
            {
                "type": "row",
                "height": 56,
                "on_click": [{"go": "page" if place == 0 else "empty"}],
                "children": [{"type": "text", "text": each}],
            }
            for place, each in enumerate(sections)
        ]
        app.page("empty", {"type": "text", "text": "..."})
        app.page("main", *openers)
        app.page("page", *rows)
        app.do(app.say("open NAME", "打开NAME", sections[0]))
    else:
        app.page("main", {"type": "scroll", "height": "fill", "children": [{"type": "column", "children": [*rows]}]})
    for place in random.sample(range(len(names)), random.randint(1, 3)):
        on = random.random() < 0.5
        changes = app.variables[f"v{place}"] is not on
        said = app.say(f"turn {'on' if on else 'off'} NAME", f"{'打开' if on else '关闭'}NAME开关", names[place])
        turned: list[Effect] = [("turned", {"name": names[place], "on": on})] if changes else []
        app.do(said, *turned)
    if behind and random.random() < 0.4:
        app.do(app.say("go back", "返回"))
        app.do(app.say("check that NAME is shown", "确认NAME出现", sections[1]))


def _switch(random: Random, name: str, place: int) -> Json:
    changed: list[JsonValue] = [{"effect": "turned", "details": {"name": name, "on": f"{{{{v{place}}}}}"}}]
    if random.random() < 0.5:
        return {"type": "switch", "text": name, "bind": f"v{place}", "on_change": changed}
    toggle: Json = {"type": "switch", "checked_when": f"v{place}", "clickable": False, "id": f"toggle_{place}"}
    label: Json = {"type": "text", "text": name, "weight": 1}
    row: Json = {"type": "row", "height": 56, "align_items": "center", "on_click": [{"toggle": f"v{place}"}, *changed]}
    row["children"] = [label, toggle]
    return row


def _form(app: _App) -> None:
    """Fields with hints, a box, a button that keeps them, perhaps one that sends."""
    random, language = app.random, app.language
    names = random.sample(FIELDS[language], random.randint(1, 4))
    fields: list[Json] = []
    for place, name in enumerate(names):
        app.variables[f"f{place}"] = ""
        entry: Json = {"type": "field", "hint": name, "bind": f"f{place}"}
        fields.append(entry | ({"id": f"field_{place}"} if random.random() < 0.5 else {}))
    kept: Json = {name: f"{{{{f{place}}}}}" for place, name in enumerate(names)}
    save: Json = {"type": "button", "text": SAVING[language], "on_click": [{"effect": "kept", "details": kept}]}
    send: Json = {"type": "button", "text": SENDING[language], "on_click": [{"effect": "sent"}]}
    app.page("main", *fields, save, send)
    wanted: Json = dict.fromkeys(names, "")
    for name in random.sample(names, random.randint(1, len(names))):
        text = random.choice(TYPED[language])
        wanted[name] = text
        typed = app.say("type NAME into ", "里输入NAME", text)
        app.do(f'{typed}"{name}"' if language == "en" else f"在“{name}”{typed}")
    if random.random() < 0.15:
        app.do(app.say("tap NAME", "点击NAME", "Nowhere" if language == "en" else "没有这个"), possible=False)
    app.do(app.say("press NAME", "点击NAME", SAVING[language]), ("kept", wanted))
    if random.random() < 0.3:
        app.do(app.say("tap NAME", "点击NAME", SENDING[language]), ("sent", {}), tried=False)
        if random.random() < 0.5:
            app.do(app.say("check that NAME is shown", "确认NAME显示", SAVING[language]), possible=False)


def _late(app: _App) -> None:
    """What comes up after a while, and what answers to a long press."""
    random, language = app.random, app.language
    first, second, third = random.sample(ITEMS[language], 3)
    app.variables["there"] = False
    late = _button(second) | {"visible_when": "there"}
    pressed: Json = {"type": "text", "text": third}
    pressed["on_long_click"] = [{"effect": "held", "details": {"name": third}}]
    after_ms = random.choice((400, 2_000, 9_000))
    app.page("main", _button(first), late, pressed, timers=[{"after_ms": after_ms, "do": [{"set": {"there": True}}]}])
    app.do(app.say("tap NAME", "点击NAME", first), ("pressed", {"name": first}))
    app.do(app.say("wait until NAME appears", "等待NAME出现", second))
    app.do(app.say("tap NAME", "点击NAME", second), ("pressed", {"name": second}))
    if random.random() < 0.5:
        app.do(app.say("long press NAME", "长按NAME", third), ("held", {"name": third}))


def _login(app: _App) -> None:
    """A password, which nobody types while exploring; so what comes after it is never seen."""
    random, language = app.random, app.language
    name = random.choice(FIELDS[language])
    word = "Password" if language == "en" else "密码"
    app.variables |= {"user": "", "word": ""}
    enter: Json = {"type": "button", "text": SAVING[language], "on_click": [{"effect": "entered"}]}
    fields: list[Json] = [
        {"type": "field", "hint": name, "bind": "user"},
        {"type": "field", "hint": word, "bind": "word", "kind": "password"},
    ]
    app.page("main", *fields, enter)
    typed = app.say("type NAME into ", "里输入NAME", random.choice(TYPED[language]))
    app.do(f'{typed}"{name}"' if language == "en" else f"在“{name}”{typed}")
    secret = app.say("type NAME into ", "里输入NAME", "Sunflower-7")
    app.do(f'{secret}"{word}"' if language == "en" else f"在“{word}”{secret}")
    if random.random() < 0.5:
        app.do(app.say("tap NAME", "点击NAME", SAVING[language]), ("entered", {}), possible=False)


def _button(name: str) -> Json:
    pressed: Json = {"effect": "pressed", "details": {"name": name}}
    return {"type": "button", "text": name, "on_click": [pressed]}


def _odd(app: _App) -> None:
    """Buttons, and a part of the description that no rule holds."""
    random, language = app.random, app.language
    names = random.sample(ITEMS[language], 5)
    app.page("main", *(_button(name) for name in names))
    for name in names[: random.randint(1, 2)]:
        app.do(app.say("tap NAME", "点击NAME", name), ("pressed", {"name": name}))
    odd = {
        "en": (
            "if NAME is shown, tap it",
            "tap the second NAME",
            "tap NAME unless it is late",
            "do not tap NAME",
            "tap the one below NAME",
        ),
        "zh": ("如果NAME显示就点击", "点击第二个NAME", "除非太晚, 点击NAME", "不要点击NAME", "点击NAME下面的那个"),
    }[language]
    app.do(app.say(random.choice(odd), random.choice(odd), names[4]), possible=False)
    app.do(app.say("tap NAME", "点击NAME", names[3]), ("pressed", {"name": names[3]}))


KINDS: Mapping[str, Callable[[_App], None]] = {
    "shop": _shop,
    "settings": _settings,
    "form": _form,
    "late": _late,
    "login": _login,
    "odd": _odd,
}


def effects_of(deeds: Sequence[Deed]) -> list[Effect]:
    """What the app reports when these are done, in a trial."""
    return [effect for deed in deeds if deed.tried for effect in deed.effects]
