"""The contract of the port `Phone`, over every implementation: in memory, over adb to a virtual phone, and to no phone.

Each implementation comes with a rig that tells what the phone really saw and makes its next call fail in a given way.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from enum import StrEnum

import pytest

from droidfleet_agent.driver.memory import Fault, MemoryPhone
from droidfleet_agent.driver.phone import AdbPhone
from droidfleet_agent.driver.port import (
    ActionRefusedError,
    Key,
    Phone,
    PhoneUnavailableError,
    ScreenState,
)
from droidfleet_agent.virtual_phone import faults as virtual
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import Deadline, SystemClock
from droidfleet_shared.screen.node import Node
from droidfleet_shared.screen.parse import parse
from support import shop
from support.adb import AdbServer, ConnectedPhones, RunningPhone
from support.form import FORM
from support.form import PACKAGE as FORM_PACKAGE
from support.hanging import LATE_S, becomes_unknown_in_time
from support.waiting import until

AMPLE_S = 10.0
SHORT_S = 0.3


class Break(StrEnum):
    """How the next call of a kind fails."""

    SAYS_NO = "says no"
    REFUSED = "refused"
    DIES_BEFORE = "dies before the phone did it"
    DIES_AFTER = "dies after the phone did it"
    HANGS = "hangs"


class Rig(ABC):
    """One phone under test."""

    phone: Phone

    @abstractmethod
    def seen(self) -> Sequence[str]:
        """The actions that reached the phone and took effect, in order, by the port's method names."""

    @abstractmethod
    def break_next(self, call: str, how: Break) -> None:
        """The next call of `ACTIONS` or `READS` of this name fails so."""

    @abstractmethod
    def met(self, call: str) -> bool:
        """Whether a call of this name came as far as to what `break_next` has for it."""

    @abstractmethod
    def held(self) -> bool:
        """Whether the last touch that reached the phone was a long press."""

    @abstractmethod
    def lock(self) -> None:
        """The display goes off, and the phone locks."""


class MemoryRig(Rig):
    """The memory phone with the small shop."""

    _FAULTS = {  # noqa: RUF012  # never changed
        Break.SAYS_NO: Fault.FALSE,
        Break.REFUSED: Fault.REFUSED,
        Break.DIES_BEFORE: Fault.HANG,
        Break.DIES_AFTER: Fault.DIES_AFTER,
        Break.HANGS: Fault.HANG,
    }
    _CALLS = {"hold": "tap", "rest": "swipe", "panel": "press"}  # noqa: RUF012  # never changed

    def __init__(self, *, secure: bool = False) -> None:
        self.memory = MemoryPhone(shop.pages(), start="home", clock=SystemClock(), apps={FORM_PACKAGE: "home"})
        self.memory.screen = ScreenState(on=True, locked=False, secure=secure)
        self.phone = self.memory

    def seen(self) -> Sequence[str]:
        return [done.call for done in self.memory.done]

    def break_next(self, call: str, how: Break) -> None:
        name = self._CALLS.get(call, call)
        self.memory.fail(name, self._FAULTS[how])  # type: ignore[arg-type]  # the names are the same

    def met(self, call: str) -> bool:
        return self._CALLS.get(call, call) in self.memory.calls

    def held(self) -> bool:
        return bool(self.memory.done[-1].text)

    def lock(self) -> None:
        self.memory.screen = replace(self.memory.screen, on=False, locked=True)


class AdbRig(Rig):
    """An adb phone whose phone is a virtual one behind a real adb server."""

    _METHODS = {  # noqa: RUF012  # never changed
        "tap": "click",
        "set_focused_text": "setText",
        "press": "pressKeyCode",
        "hide_keyboard": "pressKeyCode",
        "swipe": "swipe",
        "drag": "drag",
        "hold": "click",
        "rest": "swipePoints",
        "panel": "openNotification",
        "wake": "pressKeyCode",
        "start_app": "shell:am start",
        "stop_app": "shell:am force-stop",
        "dismiss_lock": "shell:wm dismiss-keyguard",
        "dump": "dumpWindowHierarchy",
    }
    _FAULTS = {  # noqa: RUF012  # never changed
        Break.SAYS_NO: (virtual.FaultKind.FALSE, False),
        Break.REFUSED: (virtual.FaultKind.STALE, False),
        Break.DIES_BEFORE: (virtual.FaultKind.DROP, False),
        Break.DIES_AFTER: (virtual.FaultKind.DROP, True),
        Break.HANGS: (virtual.FaultKind.HANG, False),
    }
    _EFFECTS = {  # noqa: RUF012  # never changed
        "tap": "tap",
        "long_press": "tap",
        "set_text": "set_focused_text",
        "open_notifications": "press",
        "swipe": "swipe",
        "drag": "drag",
        "start_app": "start_app",
        "stop_app": "stop_app",
        "dismiss_keyguard": "dismiss_lock",
    }
    _KEYS = {4: "press", 66: "press", 111: "hide_keyboard", 224: "wake"}  # noqa: RUF012  # never changed

    def __init__(self, running: RunningPhone, adb_port: int) -> None:
        self.running = running
        self.phone = AdbPhone(running.address, adb_host="127.0.0.1", adb_port=adb_port)

    def seen(self) -> Sequence[str]:
        effects = self.running.effects.of(*self._EFFECTS, "key")
        return [self._EFFECTS.get(effect.kind) or self._KEYS[int(str(effect.details["code"]))] for effect in effects]

    def break_next(self, call: str, how: Break) -> None:
        kind, after = self._FAULTS[how]
        self.running.faults.add(virtual.Fault(on=self._METHODS[call], do=kind, after=after))

    def met(self, call: str) -> bool:
        return any(fired.fault.on == self._METHODS[call] for fired in self.running.faults.fired)

    def held(self) -> bool:
        return self.running.effects.of("tap", "long_press")[-1].kind == "long_press"

    def lock(self) -> None:
        self.running.do(lambda running: running.phone.sleep())


@pytest.fixture
def secure() -> bool:
    """Whether the phone's lock screen has a secret."""
    return False


@pytest.fixture(params=["memory", pytest.param("adb", marks=pytest.mark.integration)])
async def rig(request: pytest.FixtureRequest, secure: bool) -> AsyncIterator[Rig]:
    """A phone that answers."""
    made: Rig
    if request.param == "memory":
        made = MemoryRig(secure=secure)
    else:
        phones: ConnectedPhones = request.getfixturevalue("phones")
        server: AdbServer = request.getfixturevalue("adb_server")
        made = AdbRig(phones(PhoneOptions(scenario=FORM.model_copy(update={"secure_lock": secure}))), server.port)
    await made.phone.dump(deadline=ample())
    yield made
    await made.phone.close()


@pytest.fixture(
    params=["memory, unplugged", "adb, no server", pytest.param("adb, no phone", marks=pytest.mark.integration)]
)
async def dead(request: pytest.FixtureRequest, kept_port: int) -> AsyncIterator[Phone]:
    """A phone that is not there."""
    phone: Phone
    if request.param == "memory, unplugged":
        unplugged = MemoryPhone(shop.pages(), start="home", clock=SystemClock(), apps={FORM_PACKAGE: "home"})
        unplugged.attached = False
        phone = unplugged
    elif request.param == "adb, no server":
        # Not an address of this machine's own adb server, so none is started.
        phone = AdbPhone("R58M123", adb_host="127.0.0.2", adb_port=kept_port)
    else:
        server: AdbServer = request.getfixturevalue("adb_server")
        phone = AdbPhone("R58M123", adb_host="127.0.0.1", adb_port=server.port)
    yield phone
    await phone.close()


def ample() -> Deadline:
    return SystemClock().deadline(AMPLE_S)


def short() -> Deadline:
    return SystemClock().deadline(SHORT_S)


READS: dict[str, Callable[[Phone, Deadline], Awaitable[object]]] = {
    "dump": lambda phone, deadline: phone.dump(deadline=deadline),
    "focus": lambda phone, deadline: phone.focus(deadline=deadline),
    "display": lambda phone, deadline: phone.display(deadline=deadline),
    "input_methods": lambda phone, deadline: phone.input_methods(deadline=deadline),
    "keyboard_shown": lambda phone, deadline: phone.keyboard_shown(deadline=deadline),
    "screenshot": lambda phone, deadline: phone.screenshot(deadline=deadline),
    "info": lambda phone, deadline: phone.info(deadline=deadline),
    "screen_state": lambda phone, deadline: phone.screen_state(deadline=deadline),
}
ACTIONS: dict[str, Callable[[Phone, Deadline], Awaitable[bool]]] = {
    "tap": lambda phone, deadline: phone.tap(540, 1000, deadline=deadline),
    "set_focused_text": lambda phone, deadline: phone.set_focused_text("x", deadline=deadline),
    "press": lambda phone, deadline: phone.press(Key.ENTER, deadline=deadline),
    "hide_keyboard": lambda phone, deadline: phone.hide_keyboard(deadline=deadline),
    "swipe": lambda phone, deadline: phone.swipe((540, 1500), (540, 900), duration_ms=300, deadline=deadline),
    "drag": lambda phone, deadline: phone.drag((540, 1500), (540, 900), duration_ms=300, deadline=deadline),
    "hold": lambda phone, deadline: phone.tap(540, 1000, hold_ms=800, deadline=deadline),
    "rest": lambda phone, deadline: phone.swipe(
        (540, 1500), (540, 900), duration_ms=300, hold_ms=150, deadline=deadline
    ),
    "panel": lambda phone, deadline: phone.press(Key.NOTIFICATIONS, deadline=deadline),
    "wake": lambda phone, deadline: phone.wake(deadline=deadline),
    "start_app": lambda phone, deadline: phone.start_app(FORM_PACKAGE, deadline=deadline),
    "stop_app": lambda phone, deadline: phone.stop_app(FORM_PACKAGE, deadline=deadline),
    "dismiss_lock": lambda phone, deadline: phone.dismiss_lock(deadline=deadline),
}
every_read = pytest.mark.parametrize("call", READS)
every_action = pytest.mark.parametrize("call", ACTIONS)
answered_action = pytest.mark.parametrize("call", [call for call in ACTIONS if not call.endswith(("_app", "_lock"))])
"""Those that the phone's server answers with true or false; the others are commands of Android's shell."""
every_call = pytest.mark.parametrize("call", [*READS, *ACTIONS])


async def nodes(phone: Phone) -> list[Node]:
    roots = parse(await phone.dump(deadline=ample())).roots
    return [node for root in roots for node in root.walk() if node.package not in {"", "com.android.systemui"}]


async def focus_a_field(phone: Phone) -> Node:
    field = next(node for node in await nodes(phone) if node.class_name.endswith("EditText") and not node.password)
    await phone.tap(*field.bounds.center, deadline=ample())
    return field


# -- reads


@every_read
async def test_read_gives_its_answer_and_touches_nothing(rig: Rig, call: str) -> None:
    assert await READS[call](rig.phone, ample()) is not None
    assert rig.seen() == []


async def test_dump_is_a_hierarchy_with_the_app_in_it(rig: Rig) -> None:
    focus = await rig.phone.focus(deadline=ample())
    assert focus.package in {node.package for node in await nodes(rig.phone)}


async def test_dump_of_the_active_window_has_one_root(rig: Rig) -> None:
    focus = await rig.phone.focus(deadline=ample())
    roots = parse(await rig.phone.dump(deadline=ample(), active_only=True)).roots
    assert [root.package for root in roots] == [focus.package]


async def test_activity_is_a_full_class_name(rig: Rig) -> None:
    focus = await rig.phone.focus(deadline=ample())
    assert focus.activity
    assert not focus.activity.startswith(".")


async def test_info_agrees_with_what_else_the_phone_says(rig: Rig) -> None:
    info = await rig.phone.info(deadline=ample())
    assert info.display == await rig.phone.display(deadline=ample())
    assert info.foreground_package == (await rig.phone.focus(deadline=ample())).package
    assert info.model
    assert info.sdk > 0
    assert info.battery_percent is not None
    assert 0 <= info.battery_percent <= 100


async def test_screenshot_is_a_picture(rig: Rig) -> None:
    picture = await rig.phone.screenshot(deadline=ample())
    assert picture.startswith((b"\xff\xd8", b"\x89PNG"))


# -- actions


async def test_tap_reaches_what_is_at_the_point(rig: Rig) -> None:
    field = await focus_a_field(rig.phone)
    assert rig.seen() == ["tap"]
    focused = [node for node in await nodes(rig.phone) if node.focused]
    assert [node.bounds for node in focused] == [field.bounds]


@pytest.mark.parametrize("text", ["Grüße 50% $HOME", 'It\'s "ok"\nsecond line', "早上好", "مرحبا", "  spaces  "])
async def test_text_replaces_what_the_focused_field_held(rig: Rig, text: str) -> None:
    await focus_a_field(rig.phone)
    assert await rig.phone.set_focused_text("before", deadline=ample())
    assert await rig.phone.set_focused_text(text, deadline=ample())
    assert [node.text for node in await nodes(rig.phone) if node.focused] == [text]


async def test_text_without_a_focused_field_is_refused(rig: Rig) -> None:
    with pytest.raises(ActionRefusedError):
        await rig.phone.set_focused_text("x", deadline=ample())
    assert rig.seen() == []


@answered_action
async def test_action_that_the_phone_says_no_to_is_false(rig: Rig, call: str) -> None:
    rig.break_next(call, Break.SAYS_NO)
    assert await ACTIONS[call](rig.phone, ample()) is False
    assert rig.seen() == []


@answered_action
async def test_action_that_certainly_did_not_happen_is_refused(rig: Rig, call: str) -> None:
    rig.break_next(call, Break.REFUSED)
    with pytest.raises(ActionRefusedError):
        await ACTIONS[call](rig.phone, ample())
    assert rig.seen() == []


@every_action
@pytest.mark.parametrize(("how", "effects"), [(Break.DIES_BEFORE, 0), (Break.DIES_AFTER, 1), (Break.HANGS, 0)])
async def test_action_whose_answer_is_lost_is_unknown_and_happened_at_most_once(
    rig: Rig, call: str, how: Break, effects: int
) -> None:
    await focus_a_field(rig.phone)
    before = len(rig.seen())
    rig.break_next(call, how)
    await becomes_unknown_in_time(lambda deadline: ACTIONS[call](rig.phone, deadline))
    await rig.phone.dump(deadline=ample())
    assert len(rig.seen()) - before == effects


@pytest.mark.parametrize(
    ("package", "activity"),
    [
        ("com.example.unknown", None),
        ("no package; reboot", None),
        ("$(reboot)", None),
        (FORM_PACKAGE, ".NoSuchActivity"),
        (FORM_PACKAGE, ".Form; reboot"),
    ],
)
async def test_app_that_is_not_there_is_refused_for_good(rig: Rig, package: str, activity: str | None) -> None:
    front = await rig.phone.focus(deadline=ample())
    with pytest.raises(ActionRefusedError) as refused:
        await rig.phone.start_app(package, activity=activity, deadline=ample())
    assert refused.value.code == "APP_NOT_FOUND"
    assert await rig.phone.focus(deadline=ample()) == front


async def test_stopped_app_leaves_the_front_and_started_it_comes_back(rig: Rig) -> None:
    front = (await rig.phone.focus(deadline=ample())).package
    if front == FORM_PACKAGE:
        assert await rig.phone.stop_app(FORM_PACKAGE, deadline=ample())
        assert (await rig.phone.focus(deadline=ample())).package != FORM_PACKAGE
    assert await rig.phone.start_app(FORM_PACKAGE, deadline=ample())
    assert rig.seen()[-1] == "start_app"


@pytest.mark.parametrize(("hold_ms", "held"), [(None, False), (800, True)])
async def test_tap_is_held_as_long_as_it_was_asked(rig: Rig, hold_ms: int | None, held: bool) -> None:
    assert await rig.phone.tap(540, 1000, hold_ms=hold_ms, deadline=ample())
    assert rig.seen() == ["tap"]
    assert rig.held() is held


async def test_locked_phone_is_woken_and_its_lock_screen_without_a_secret_dismissed(rig: Rig) -> None:
    rig.lock()
    states = [await rig.phone.screen_state(deadline=ample())]
    assert await rig.phone.wake(deadline=ample())
    states.append(await rig.phone.screen_state(deadline=ample()))
    assert await rig.phone.dismiss_lock(deadline=ample())
    states.append(await rig.phone.screen_state(deadline=ample()))
    assert [(state.on, state.locked, state.secure) for state in states] == [
        (False, True, False),
        (True, True, False),
        (True, False, False),
    ]


@pytest.mark.parametrize("secure", [True])
async def test_lock_screen_with_a_secret_stays(rig: Rig) -> None:
    rig.lock()
    await rig.phone.wake(deadline=ample())
    await rig.phone.dismiss_lock(deadline=ample())
    state = await rig.phone.screen_state(deadline=ample())
    assert (state.on, state.locked, state.secure) == (True, True, True)


async def test_waking_a_phone_that_is_awake_changes_nothing(rig: Rig) -> None:
    before = await rig.phone.screen_state(deadline=ample())
    assert before.on
    assert await rig.phone.wake(deadline=ample())
    assert await rig.phone.screen_state(deadline=ample()) == before


@pytest.mark.parametrize("key", list(Key))
async def test_every_key_is_one_that_the_phone_knows(rig: Rig, key: Key) -> None:
    assert await rig.phone.press(key, deadline=ample())


# -- every call


async def test_hanging_read_ends_at_its_deadline_and_the_next_call_works(rig: Rig) -> None:
    rig.break_next("dump", Break.HANGS)
    await ends_in_time(rig.phone.dump(deadline=short()), PhoneUnavailableError)
    await rig.phone.dump(deadline=ample())


async def test_cancelled_call_leaves_the_phone_usable(rig: Rig) -> None:
    rig.break_next("tap", Break.HANGS)
    async with asyncio.TaskGroup() as group:
        tapping = group.create_task(rig.phone.tap(540, 1000, deadline=ample()), name="tap")
        await until(lambda: rig.met("tap"), within_s=AMPLE_S)
        tapping.cancel()
    assert tapping.cancelled()
    await focus_a_field(rig.phone)
    assert rig.seen() == ["tap"]


@every_call
async def test_call_whose_deadline_has_passed_does_nothing(rig: Rig, call: str) -> None:
    await ends_in_time((READS | ACTIONS)[call](rig.phone, SystemClock().deadline(0)), PhoneUnavailableError)
    await rig.phone.dump(deadline=ample())
    assert rig.seen() == []


async def test_close_may_be_called_twice(rig: Rig) -> None:
    await rig.phone.close()
    await rig.phone.close()


# -- a phone that is not there


@every_read
async def test_read_of_a_phone_that_is_not_there_ends_at_its_deadline(dead: Phone, call: str) -> None:
    await ends_in_time(READS[call](dead, short()), PhoneUnavailableError)


@every_action
async def test_action_on_a_phone_that_is_not_there_is_not_sent(dead: Phone, call: str) -> None:
    await ends_in_time(ACTIONS[call](dead, short()), PhoneUnavailableError)


async def ends_in_time(call: Awaitable[object], error: type[Exception]) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    with pytest.raises(error):
        await call
    assert loop.time() - start < SHORT_S + LATE_S
