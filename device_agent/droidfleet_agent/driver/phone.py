"""`AdbPhone`: the port `Phone` for a real phone, over adb and the uiautomator2 server.

What is asked and told is here; how (turns, deadlines, one write for an action) is `calls`'s, and the words for it are
`gestures`'s, `apps`'s and `window_text`'s.
"""

from __future__ import annotations

import base64

from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.driver.apps import (
    DISMISS_COMMAND,
    SCREEN_STATE_COMMAND,
    component_of,
    parse_launcher,
    parse_screen_state,
    raise_not_started,
    resolve_command,
    start_command,
    stop_command,
)
from droidfleet_agent.driver.calls import NO_SUCH_OBJECT, PhoneCalls
from droidfleet_agent.driver.gestures import (
    ESCAPE_KEY_CODE,
    KEY_CODES,
    PANELS,
    WAKE_KEY_CODE,
    steps_of,
    swipe_call,
)
from droidfleet_agent.driver.link import PhoneLink
from droidfleet_agent.driver.port import (
    ActionRefusedError,
    Display,
    Focus,
    Key,
    Phone,
    PhoneInfo,
    ScreenState,
)
from droidfleet_agent.driver.rpc import Json
from droidfleet_agent.driver.window_text import (
    FOCUS_COMMANDS,
    parse_battery_percent,
    parse_display,
    parse_focus,
    parse_input_methods,
    parse_keyboard_shown,
)
from droidfleet_shared.clock import Clock, Deadline, SystemClock
from droidfleet_shared.errors import UnavailableError

MAX_DUMP_DEPTH = 50
"""Deeper levels are cut by the phone. The stock client's default; Android itself fails soon after."""
JPEG_SCALE, JPEG_QUALITY = 1, 80

_FIRST: dict[str, Json] = {"instance": 0, "childOrSibling": [], "childOrSiblingSelector": []}
"""Without an instance the server's `setText` taps the middle of the field before it sets the text: a touch that nobody
asked for, and that may meet what lies over the field."""
FOCUSED_FIELDS: tuple[Json, ...] = (
    {"mask": 0x1020010, "focused": True, "className": "android.widget.EditText", **_FIRST},
    {"mask": 0x1020000, "focused": True, **_FIRST},
)
"""uiautomator2 selectors of what has the input focus. By class first: a web view has the focus together with the field
in it, comes before it, and takes no text. Fields of all common toolkits call themselves EditText; the second is for
others."""

_PNG_START, _PNG_END = b"\x89PNG\r\n", b"IEND\xaeB`\x82"


class UnusableAnswerError(UnavailableError):
    """The phone answered a read with something that cannot be used; a moment later it may do better."""

    def __init__(self, message: str) -> None:
        super().__init__("UNUSABLE_ANSWER", message)


class AdbPhone(Phone):
    """A phone behind an adb server. Made without touching it; the first read connects."""

    def __init__(
        self, serial: str, *, adb_host: str | None = None, adb_port: int | None = None, clock: Clock | None = None
    ) -> None:
        self.serial = serial
        self._clock = clock or SystemClock()
        self._adb = AdbServer(adb_host, adb_port, clock=self._clock)
        self._link = PhoneLink(self._adb, serial, clock=self._clock)
        self._calls = PhoneCalls(serial, self._adb, self._link, clock=self._clock)
        self._focus_command = FOCUS_COMMANDS[0]
        self._epoch = 0
        self._display: Display | None = None
        self._input_methods: frozenset[str] | None = None
        self._make: tuple[str, str, int] | None = None

    # -- reads ---------------------------------------------------------------------------------------------------

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        return await self._calls.read(lambda: self._dump_once(active_only, deadline), deadline)

    async def _dump_once(self, active_only: bool, deadline: Deadline) -> str:
        xml = await self._calls.call("dumpWindowHierarchy", [False, MAX_DUMP_DEPTH, active_only], deadline)
        if not isinstance(xml, str) or not xml:
            raise UnusableAnswerError("the phone gave no window hierarchy")
        return xml

    async def focus(self, *, deadline: Deadline) -> Focus:
        return await self._calls.read(lambda: self._focus_once(deadline), deadline)

    async def _focus_once(self, deadline: Deadline) -> Focus:
        # What worked last time first: which command tells the focus does not change while the phone is on.
        for command in sorted(FOCUS_COMMANDS, key=lambda command: command != self._focus_command):
            if focus := parse_focus(await self._calls.shell(command, deadline)):
                self._focus_command = command
                return focus
        return Focus("", "")  # Between two windows, or behind a system window with no app.

    async def display(self, *, deadline: Deadline) -> Display:
        return await self._calls.read(lambda: self._display_once(deadline), deadline)

    async def _display_once(self, deadline: Deadline) -> Display:
        self._forget_old_facts()
        if self._display is None:
            self._display = parse_display(await self._calls.shell("wm size", deadline))
        if self._display is None:
            raise UnusableAnswerError("`wm size` names no size")
        return self._display

    async def input_methods(self, *, deadline: Deadline) -> frozenset[str]:
        return await self._calls.read(lambda: self._input_methods_once(deadline), deadline)

    async def _input_methods_once(self, deadline: Deadline) -> frozenset[str]:
        self._forget_old_facts()
        if self._input_methods is None:
            self._input_methods = parse_input_methods(await self._calls.shell("ime list -s", deadline))
        return self._input_methods

    async def keyboard_shown(self, *, deadline: Deadline) -> bool:
        return await self._calls.read(lambda: self._keyboard_shown_once(deadline), deadline)

    async def _keyboard_shown_once(self, deadline: Deadline) -> bool:
        shown = parse_keyboard_shown(await self._calls.shell("dumpsys input_method", deadline))
        if shown is None:
            raise UnusableAnswerError("`dumpsys input_method` does not say whether the keyboard is shown")
        return shown

    async def screen_state(self, *, deadline: Deadline) -> ScreenState:
        return await self._calls.read(lambda: self._screen_state_once(deadline), deadline)

    async def _screen_state_once(self, deadline: Deadline) -> ScreenState:
        state = parse_screen_state(await self._calls.shell(SCREEN_STATE_COMMAND, deadline))
        if state is None:
            raise UnusableAnswerError("the phone does not say whether its display is on")
        return state

    async def screenshot(self, *, deadline: Deadline) -> bytes:
        return await self._calls.read(lambda: self._screenshot_once(deadline), deadline)

    async def _screenshot_once(self, deadline: Deadline) -> bytes:
        encoded = await self._calls.call("takeScreenshot", [JPEG_SCALE, JPEG_QUALITY], deadline)
        if isinstance(encoded, str) and encoded:
            try:
                return base64.b64decode(encoded)  # Ignores the line breaks that the phone puts in.
            except ValueError as error:
                raise UnusableAnswerError("the screenshot is not base64") from error
        # The automation service refuses some screens (a video, several displays) that the shell's tool can take.
        png = await self._adb.shell(self.serial, "screencap -p", deadline=deadline)
        if not png.startswith(_PNG_START) or not png.endswith(_PNG_END):
            raise UnusableAnswerError("the phone gave no screenshot")
        return png

    async def info(self, *, deadline: Deadline) -> PhoneInfo:
        return await self._calls.read(lambda: self._info_once(deadline), deadline)

    async def _info_once(self, deadline: Deadline) -> PhoneInfo:
        facts = await self._calls.call("deviceInfo", [], deadline)
        package = facts.get("currentPackageName") if isinstance(facts, dict) else None
        display = await self._display_once(deadline)
        if self._make is None:
            self._make = await self._make_once(deadline)
        model, android, sdk = self._make
        return PhoneInfo(
            serial=self.serial,
            model=model,
            android=android,
            sdk=sdk,
            display=display,
            battery_percent=parse_battery_percent(await self._calls.shell("dumpsys battery", deadline)),
            foreground_package=package if isinstance(package, str) else "",
        )

    async def _make_once(self, deadline: Deadline) -> tuple[str, str, int]:
        names = ("ro.product.model", "ro.build.version.release", "ro.build.version.sdk")
        lines = (await self._calls.shell("; ".join(f"getprop {name}" for name in names), deadline)).splitlines()
        if len(lines) != len(names) or not lines[2].strip().isdecimal():
            raise UnusableAnswerError("`getprop` does not tell model and Android release")
        return lines[0].strip(), lines[1].strip(), int(lines[2])

    # -- actions -------------------------------------------------------------------------------------------------

    async def tap(self, x: int, y: int, *, deadline: Deadline, hold_ms: int | None = None) -> bool:
        return await self._calls.act("click", [x, y] if hold_ms is None else [x, y, hold_ms], deadline)

    async def swipe(
        self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int = 0, deadline: Deadline
    ) -> bool:
        method, params = swipe_call(start, end, duration_ms=duration_ms, hold_ms=hold_ms)
        return await self._calls.act(method, params, deadline)

    async def drag(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, deadline: Deadline) -> bool:
        return await self._calls.act("drag", [*start, *end, steps_of(duration_ms)], deadline)

    async def start_app(self, package: str, *, activity: str | None = None, deadline: Deadline) -> bool:
        component = component_of(package, activity) if activity is not None else await self._launcher(package, deadline)
        raise_not_started(await self._calls.run(start_command(package, component), deadline), package)
        return True

    async def _launcher(self, package: str, deadline: Deadline) -> str:
        """The component that a launcher would start; empty where the phone does not tell exactly one of the app's."""
        command = resolve_command(package)
        output = await self._calls.read(lambda: self._calls.shell(command, deadline), deadline)
        return parse_launcher(output, package)

    async def stop_app(self, package: str, *, deadline: Deadline) -> bool:
        return not (await self._calls.run(stop_command(package), deadline)).strip().startswith("Error")

    async def wake(self, *, deadline: Deadline) -> bool:
        return await self._calls.act("pressKeyCode", [WAKE_KEY_CODE], deadline)

    async def dismiss_lock(self, *, deadline: Deadline) -> bool:
        await self._calls.run(DISMISS_COMMAND, deadline)
        return True

    async def set_focused_text(self, text: str, *, deadline: Deadline) -> bool:
        field, any_field = FOCUSED_FIELDS
        try:
            return await self._calls.act("setText", [field, text], deadline)
        except ActionRefusedError as refused:
            if refused.code != NO_SUCH_OBJECT:
                raise
            return await self._calls.act("setText", [any_field, text], deadline)

    async def press(self, key: Key, *, deadline: Deadline) -> bool:
        method = PANELS.get(key)
        if method is not None:
            return await self._calls.act(method, [], deadline)
        return await self._calls.act("pressKeyCode", [KEY_CODES[key]], deadline)

    async def hide_keyboard(self, *, deadline: Deadline) -> bool:
        return await self._calls.act("pressKeyCode", [ESCAPE_KEY_CODE], deadline)

    async def close(self) -> None:
        await self._link.close()

    def _forget_old_facts(self) -> None:
        if self._epoch != self._link.epoch:
            self._epoch = self._link.epoch
            self._display = self._input_methods = None


async def open_phone(
    serial: str,
    *,
    adb_host: str | None = None,
    adb_port: int | None = None,
    clock: Clock | None = None,
    deadline: Deadline,
) -> AdbPhone:
    """A phone that has answered once. The caller closes it.

    Raises:
        PhoneUnavailableError: it did not answer by the deadline; nothing is left open.
    """
    phone = AdbPhone(serial, adb_host=adb_host, adb_port=adb_port, clock=clock)
    try:
        await phone.info(deadline=deadline)
    except BaseException:
        await phone.close()
        raise
    return phone
