"""`MemoryPhone`: a phone in memory, for tests of the engine and for many agents in one process.

Owns a small scripted model: pages of windows, what a tap on a node leads to, text fields, a keyboard. It writes down
every action that reached it, and fails where it is told to. It never draws, times or types like a real phone: that is
the virtual phone's work (`droidfleet_agent.virtual_phone`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, TypeVar

from droidfleet_agent.driver.port import (
    ActionRefusedError,
    Display,
    Focus,
    Key,
    OutcomeUnknownError,
    Phone,
    PhoneInfo,
    PhoneUnavailableError,
    ScreenState,
)
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.parse import Hierarchy, parse
from droidfleet_shared.screen.write import write

Call = Literal[
    "dump",
    "focus",
    "display",
    "input_methods",
    "keyboard_shown",
    "screenshot",
    "info",
    "tap",
    "set_focused_text",
    "press",
    "hide_keyboard",
    "screen_state",
    "swipe",
    "drag",
    "start_app",
    "stop_app",
    "wake",
    "dismiss_lock",
]
ACTIONS: frozenset[Call] = frozenset(
    {
        "tap",
        "swipe",
        "drag",
        "set_focused_text",
        "press",
        "hide_keyboard",
        "start_app",
        "stop_app",
        "wake",
        "dismiss_lock",
    }
)

KEYBOARD_PACKAGE = "com.android.inputmethod.latin"
KEYBOARD_SHARE = 0.4
"""Part of the display's height that the keyboard takes, as common keyboards do."""

SMALLEST_JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9")
"""Start and end of a picture, enough for who only passes it on."""

_RECONNECT_S = 0.05
T = TypeVar("T")


class Fault(StrEnum):
    """What goes wrong with one call."""

    NONE = "none"
    """Nothing: keeps the place of a call that works before one that does not."""
    HANG = "hang"
    """No answer until the deadline; an action has not happened, and nobody knows."""
    DIES_BEFORE = "dies_before"
    """The connection breaks before anything was sent."""
    DIES_AFTER = "dies_after"
    """The connection breaks after the phone did it and before it answered."""
    REFUSED = "refused"
    """An action's object is stale."""
    FALSE = "false"
    """An action is answered with false."""
    CUT = "cut"
    """A dump arrives in part."""
    SILENT = "silent"
    """An action is answered with true and has no effect."""


@dataclass(frozen=True, slots=True)
class Done:
    """An action that the phone carried out. ``target`` names the node by its text, description or id."""

    call: Call
    target: str = ""
    text: str = ""
    point: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One state of the screen.

    ``xml`` is a dump with a root for each window. ``taps`` maps a node's text, description or id to the page that a tap
    on it shows; a tap on anything else changes nothing but the focus. ``back`` is the page that the Back key shows.
    ``swipes`` maps where a finger moves (``UP``, ...) to the page that it shows, ``drags`` what is held to such a page.
    ``active`` is the place of the active window among the roots; by default the first that is not a system window.
    """

    xml: str
    taps: Mapping[str, str] = field(default_factory=dict)
    back: str | None = None
    swipes: Mapping[str, str] = field(default_factory=dict)
    drags: Mapping[str, str] = field(default_factory=dict)
    activity: str = ".MainActivity"
    active: int | None = None


class MemoryPhone(Phone):
    """A scripted phone. One event loop, one caller at a time, no threads; about 15 KB each, its pages shared.

    ``latency`` gives seconds for each call by name (others take none). ``typist`` is what becomes of a typed text (lost
    characters, say). ``opens_keyboard``: whether a field that takes the focus brings up the keyboard's window.
    ``apps`` maps installed packages to the page that they start with; the page ``home`` is in front of no app.
    """

    def __init__(
        self,
        pages: Mapping[str, Page],
        *,
        start: str,
        clock: Clock,
        serial: str = "memory",
        display: Display = Display(1080, 2400),  # noqa: B008 - frozen
        latency: Mapping[Call, float] | None = None,
        typist: Callable[[str], str] = str,
        opens_keyboard: bool = False,
        apps: Mapping[str, str] | None = None,
        home: str | None = None,
    ) -> None:
        self.attached = True
        self.done: list[Done] = []
        self.calls: list[Call] = []
        self.page = start
        self.keyboard_open = False
        self.screen = ScreenState(on=True, locked=False, secure=False)
        self._apps = dict(apps or {})
        self._home = home or start
        self._pages = pages
        self._clock = clock
        self._serial = serial
        self._display = display
        self._latency = dict(latency or {})
        self._typist = typist
        self._opens_keyboard = opens_keyboard
        self._faults: dict[Call, deque[Fault]] = {}
        self._shown: dict[str, Hierarchy] = {}

    def fail(self, call: Call, *faults: Fault) -> None:
        """The next calls of this kind meet these faults, one each."""
        self._faults.setdefault(call, deque()).extend(faults)

    def show(self, page: str) -> None:
        """Changes the screen from outside, as a timer in an app would. A page keeps what was typed on it."""
        self.page = page

    @property
    def window(self) -> Node | None:
        """The active window's root; its nodes may be changed in place."""
        return self._active()

    # Reads ------------------------------------------------------------------------------------------------------

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        def answer() -> str:
            active = self._active()
            roots = [active] if active_only and active is not None else [*self._hierarchy().roots, *self._keyboard()]
            return write(Hierarchy(tuple(roots), self._hierarchy().rotation))

        return await self._read("dump", answer, deadline, cut=lambda whole: whole[: len(whole) // 2])

    async def focus(self, *, deadline: Deadline) -> Focus:
        return await self._read("focus", self._focus, deadline)

    async def display(self, *, deadline: Deadline) -> Display:
        return await self._read("display", lambda: self._display, deadline)

    async def input_methods(self, *, deadline: Deadline) -> frozenset[str]:
        return await self._read("input_methods", lambda: frozenset({KEYBOARD_PACKAGE}), deadline)

    async def keyboard_shown(self, *, deadline: Deadline) -> bool:
        return await self._read("keyboard_shown", lambda: self.keyboard_open, deadline)

    async def screenshot(self, *, deadline: Deadline) -> bytes:
        return await self._read("screenshot", lambda: SMALLEST_JPEG, deadline)

    async def screen_state(self, *, deadline: Deadline) -> ScreenState:
        return await self._read("screen_state", lambda: self.screen, deadline)

    async def info(self, *, deadline: Deadline) -> PhoneInfo:
        def answer() -> PhoneInfo:
            return PhoneInfo(
                serial=self._serial,
                model="Memory",
                android="14",
                sdk=34,
                display=self._display,
                battery_percent=100,
                foreground_package=self._focus().package,
            )

        return await self._read("info", answer, deadline)

    # Actions ----------------------------------------------------------------------------------------------------

    async def tap(self, x: int, y: int, *, deadline: Deadline, hold_ms: int | None = None) -> bool:
        return await self._act("tap", lambda: self._tap(x, y, hold_ms=hold_ms), deadline)

    async def swipe(
        self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int = 0, deadline: Deadline
    ) -> bool:
        return await self._act("swipe", lambda: self._swipe(start, end), deadline)

    async def drag(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, deadline: Deadline) -> bool:
        return await self._act("drag", lambda: self._drag(start, end), deadline)

    async def start_app(self, package: str, *, activity: str | None = None, deadline: Deadline) -> bool:
        missing = "is not installed" if package not in self._apps else "has no such activity"
        if package not in self._apps or not self._is_activity(package, activity):
            await self._reach("start_app", deadline)
            raise ActionRefusedError("APP_NOT_FOUND", f"{package} {missing}.")
        return await self._act("start_app", lambda: self._start_app(package), deadline)

    async def stop_app(self, package: str, *, deadline: Deadline) -> bool:
        return await self._act("stop_app", lambda: self._stop_app(package), deadline)

    async def wake(self, *, deadline: Deadline) -> bool:
        return await self._act("wake", self._wake, deadline)

    async def dismiss_lock(self, *, deadline: Deadline) -> bool:
        return await self._act("dismiss_lock", self._dismiss_lock, deadline)

    async def set_focused_text(self, text: str, *, deadline: Deadline) -> bool:
        return await self._act("set_focused_text", lambda: self._type(text), deadline)

    async def press(self, key: Key, *, deadline: Deadline) -> bool:
        return await self._act("press", lambda: self._press(key), deadline)

    async def hide_keyboard(self, *, deadline: Deadline) -> bool:
        return await self._act("hide_keyboard", self._hide_keyboard, deadline)

    async def close(self) -> None:
        self.attached = False

    # The model --------------------------------------------------------------------------------------------------

    def _hierarchy(self) -> Hierarchy:
        if self.page not in self._shown:
            self._shown[self.page] = parse(self._pages[self.page].xml)
        return self._shown[self.page]

    def _active(self) -> Node | None:
        roots = self._hierarchy().roots
        active = self._pages[self.page].active
        if active is not None:
            return roots[active]
        return next((root for root in roots if root.package not in ("com.android.systemui", KEYBOARD_PACKAGE)), None)

    def _focus(self) -> Focus:
        active = self._active()
        if active is None:
            return Focus("", "")
        activity = self._pages[self.page].activity
        return Focus(active.package, f"{active.package}{activity}" if activity.startswith(".") else activity)

    def _frame(self) -> Bounds:
        width, height = self._display.width, self._display.height
        return Bounds(0, 0, height, width) if self._hierarchy().rotation % 2 else Bounds(0, 0, width, height)

    def _keyboard(self) -> list[Node]:
        if not self.keyboard_open:
            return []
        frame = self._frame()
        top = round(frame.bottom * (1 - KEYBOARD_SHARE))
        bounds = Bounds(frame.left, top, frame.right, frame.bottom)
        return [Node("", "", "", "android.widget.FrameLayout", KEYBOARD_PACKAGE, "", bounds, 0)]

    def _swipe(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        across, down = end[0] - start[0], end[1] - start[1]
        vertical = abs(down) >= abs(across)
        towards = ("DOWN" if down > 0 else "UP") if vertical else ("RIGHT" if across > 0 else "LEFT")
        self.done.append(Done("swipe", text=towards, point=start))
        self.page = self._pages[self.page].swipes.get(towards, self.page)

    def _drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        held = self._hit(*start)
        self.done.append(Done("drag", target=_name(held), text=_name(self._hit(*end)), point=end))
        self.page = self._pages[self.page].drags.get(_name(held), self.page)

    def _start_app(self, package: str) -> None:
        self.done.append(Done("start_app", target=package))
        self.page = self._apps[package]

    def _is_activity(self, package: str, activity: str | None) -> bool:
        names = {page.activity.removeprefix(package) for page in self._pages.values()}
        return activity is None or activity.removeprefix(package) in names

    def _stop_app(self, package: str) -> None:
        self.done.append(Done("stop_app", target=package))
        active = self._active()
        if active is not None and active.package == package:
            self.page = self._home

    def _wake(self) -> None:
        self.done.append(Done("wake"))
        self.screen = replace(self.screen, on=True)

    def _dismiss_lock(self) -> None:
        self.done.append(Done("dismiss_lock"))
        self.screen = replace(self.screen, locked=self.screen.locked and self.screen.secure)

    def _tap(self, x: int, y: int, *, hold_ms: int | None = None) -> None:
        if any(root.bounds.contains(x, y) for root in self._keyboard()):
            self.done.append(Done("tap", target="keyboard", point=(x, y)))
            return
        hit = self._hit(x, y)
        self.done.append(Done("tap", target=_name(hit), text="" if hold_ms is None else f"{hold_ms} ms", point=(x, y)))
        if hit is None:
            return
        if hit.class_name.endswith("EditText"):
            self._give_focus(hit)
            self.keyboard_open = self._opens_keyboard
            return
        taps = self._pages[self.page].taps
        here: Node | None = hit
        while here is not None:
            page = next((taps[name] for name in (here.text, here.description, here.resource_id) if name in taps), None)
            if page is not None and here.enabled:
                self.page = page
                return
            here = here.parent

    def _hit(self, x: int, y: int) -> Node | None:
        """The last, so the deepest and uppermost, node of the active window at a point."""
        active = self._active()
        hits = [node for node in active.walk() if node.bounds.contains(x, y)] if active is not None else []
        return hits[-1] if hits else None

    def _give_focus(self, field_node: Node) -> None:
        active = self._active()
        for node in active.walk() if active is not None else ():
            node.focused = node is field_node

    def _type(self, text: str) -> None:
        active = self._active()
        focused = next((node for node in active.walk() if node.focused), None) if active is not None else None
        if focused is None:
            raise ActionRefusedError("ACTION_REFUSED", "no field has the input focus.")
        shown = self._typist(text)
        self.done.append(Done("set_focused_text", target=_name(focused), text=text))
        focused.text = ("•" * len(shown) if focused.password else shown) or focused.hint

    def _press(self, key: Key) -> None:
        self.done.append(Done("press", text=key))
        if key is Key.BACK:
            if self.keyboard_open:
                self.keyboard_open = False
                return
            self.page = self._pages[self.page].back or self.page

    def _hide_keyboard(self) -> None:
        self.done.append(Done("hide_keyboard"))
        self.keyboard_open = False

    # Answers and failures ---------------------------------------------------------------------------------------

    def _next_fault(self, call: Call) -> Fault:
        waiting = self._faults.get(call)
        return waiting.popleft() if waiting else Fault.NONE

    async def _reach(self, call: Call, deadline: Deadline) -> None:
        self.calls.append(call)
        while not self.attached:
            if deadline.passed:
                raise PhoneUnavailableError("PHONE_UNAVAILABLE", f"{self._serial} is not attached.")
            await self._clock.sleep(min(_RECONNECT_S, deadline.remaining()))
        if deadline.passed:
            raise PhoneUnavailableError("PHONE_UNAVAILABLE", f"no time was left to ask {self._serial}.")

    async def _answer_in_time(self, seconds: float, deadline: Deadline) -> bool:
        in_time = seconds < deadline.remaining()
        if seconds:
            await self._clock.sleep(min(seconds, deadline.remaining()))
        return in_time

    async def _read(
        self, call: Call, answer: Callable[[], T], deadline: Deadline, *, cut: Callable[[T], T] | None = None
    ) -> T:
        await self._reach(call, deadline)
        fault = self._next_fault(call)
        if fault in (Fault.DIES_BEFORE, Fault.DIES_AFTER):
            raise PhoneUnavailableError("PHONE_UNAVAILABLE", f"{self._serial} dropped the connection.")
        seconds = float("inf") if fault is Fault.HANG else self._latency.get(call, 0.0)
        if not await self._answer_in_time(seconds, deadline):
            raise PhoneUnavailableError("PHONE_UNAVAILABLE", f"{self._serial} did not answer in time.")
        return cut(answer()) if fault is Fault.CUT and cut is not None else answer()

    async def _act(self, call: Call, effect: Callable[[], None], deadline: Deadline) -> bool:
        await self._reach(call, deadline)
        fault = self._next_fault(call)
        if fault is Fault.DIES_BEFORE:
            raise PhoneUnavailableError("PHONE_UNAVAILABLE", f"{self._serial} dropped the connection.")
        if fault is Fault.REFUSED:
            raise ActionRefusedError("ACTION_REFUSED", "the object is stale.")
        if fault is Fault.FALSE:
            return False
        if fault not in (Fault.HANG, Fault.SILENT):
            effect()
        seconds = float("inf") if fault is Fault.HANG else self._latency.get(call, 0.0)
        if not await self._answer_in_time(seconds, deadline) or fault is Fault.DIES_AFTER:
            raise OutcomeUnknownError("OUTCOME_UNKNOWN", f"{self._serial} did not answer")
        return True


def _name(node: Node | None) -> str:
    return "" if node is None else node.text or node.description or node.resource_id
