"""`AdbPhone`: the port `Phone` for a real phone, over adb and the uiautomator2 server.

Two rules hold everything here together. A read is tried until its deadline, with repairs in between, because it changes
nothing. An action is prepared (a connection that has just answered), then written once, and whatever breaks after that
is an unknown outcome; preparing repairs nothing, because a repair takes seconds and the action was decided on a screen
seen before them: the next look repairs.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog

from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.driver.http import NotSentError
from droidfleet_agent.driver.link import PhoneLink
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
from droidfleet_agent.driver.rpc import RPC_PATH, Json, RpcError, decode_result, encode_call
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

PAUSES_S = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Pauses between tries of a read; the last one repeats. The first try again is at once: most breaks are idle closes."""

LEAST_S = 0.02
"""With less time left no repair is begun: it could not end, and would count as tried."""
TELLING_S = 0.5
"""A try that the deadline cut off sooner tells nothing about the phone; the failure before it does."""

KEY_CODES = {Key.BACK: 4, Key.ENTER: 66}
"""Android's codes. Not the server's named keys: its "back" answers whether a window changed, not whether it pressed."""
ESCAPE_KEY_CODE = 111

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

NO_SUCH_OBJECT = "NO_SUCH_OBJECT"
"""Code of an `ActionRefusedError`: nothing on the screen matched, so certainly nothing was touched."""

_PNG_START, _PNG_END = b"\x89PNG\r\n", b"IEND\xaeB`\x82"

T = TypeVar("T")

log = structlog.get_logger(__name__)


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
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._call_ids = itertools.count(1)
        self._focus_command = FOCUS_COMMANDS[0]
        self._epoch = 0
        self._display: Display | None = None
        self._input_methods: frozenset[str] | None = None
        self._make: tuple[str, str, int] | None = None

    # -- reads ---------------------------------------------------------------------------------------------------

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        return await self._read(lambda: self._dump_once(active_only, deadline), deadline)

    async def _dump_once(self, active_only: bool, deadline: Deadline) -> str:
        xml = await self._call("dumpWindowHierarchy", [False, MAX_DUMP_DEPTH, active_only], deadline)
        if not isinstance(xml, str) or not xml:
            raise UnusableAnswerError("the phone gave no window hierarchy")
        return xml

    async def focus(self, *, deadline: Deadline) -> Focus:
        return await self._read(lambda: self._focus_once(deadline), deadline)

    async def _focus_once(self, deadline: Deadline) -> Focus:
        # What worked last time first: which command tells the focus does not change while the phone is on.
        for command in sorted(FOCUS_COMMANDS, key=lambda command: command != self._focus_command):
            if focus := parse_focus(await self._shell(command, deadline)):
                self._focus_command = command
                return focus
        return Focus("", "")  # Between two windows, or behind a system window with no app.

    async def display(self, *, deadline: Deadline) -> Display:
        return await self._read(lambda: self._display_once(deadline), deadline)

    async def _display_once(self, deadline: Deadline) -> Display:
        self._forget_old_facts()
        if self._display is None:
            self._display = parse_display(await self._shell("wm size", deadline))
        if self._display is None:
            raise UnusableAnswerError("`wm size` names no size")
        return self._display

    async def input_methods(self, *, deadline: Deadline) -> frozenset[str]:
        return await self._read(lambda: self._input_methods_once(deadline), deadline)

    async def _input_methods_once(self, deadline: Deadline) -> frozenset[str]:
        self._forget_old_facts()
        if self._input_methods is None:
            self._input_methods = parse_input_methods(await self._shell("ime list -s", deadline))
        return self._input_methods

    async def keyboard_shown(self, *, deadline: Deadline) -> bool:
        return await self._read(lambda: self._keyboard_shown_once(deadline), deadline)

    async def _keyboard_shown_once(self, deadline: Deadline) -> bool:
        shown = parse_keyboard_shown(await self._shell("dumpsys input_method", deadline))
        if shown is None:
            raise UnusableAnswerError("`dumpsys input_method` does not say whether the keyboard is shown")
        return shown

    async def screenshot(self, *, deadline: Deadline) -> bytes:
        return await self._read(lambda: self._screenshot_once(deadline), deadline)

    async def _screenshot_once(self, deadline: Deadline) -> bytes:
        encoded = await self._call("takeScreenshot", [JPEG_SCALE, JPEG_QUALITY], deadline)
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
        return await self._read(lambda: self._info_once(deadline), deadline)

    async def _info_once(self, deadline: Deadline) -> PhoneInfo:
        facts = await self._call("deviceInfo", [], deadline)
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
            battery_percent=parse_battery_percent(await self._shell("dumpsys battery", deadline)),
            foreground_package=package if isinstance(package, str) else "",
        )

    async def _make_once(self, deadline: Deadline) -> tuple[str, str, int]:
        names = ("ro.product.model", "ro.build.version.release", "ro.build.version.sdk")
        lines = (await self._shell("; ".join(f"getprop {name}" for name in names), deadline)).splitlines()
        if len(lines) != len(names) or not lines[2].strip().isdecimal():
            raise UnusableAnswerError("`getprop` does not tell model and Android release")
        return lines[0].strip(), lines[1].strip(), int(lines[2])

    # -- actions -------------------------------------------------------------------------------------------------

    async def screen_state(self, *, deadline: Deadline) -> ScreenState:
        raise NotImplementedError

    async def swipe(
        self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int = 0, deadline: Deadline
    ) -> bool:
        raise NotImplementedError

    async def drag(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, deadline: Deadline) -> bool:
        raise NotImplementedError

    async def start_app(self, package: str, *, activity: str | None = None, deadline: Deadline) -> bool:
        raise NotImplementedError

    async def stop_app(self, package: str, *, deadline: Deadline) -> bool:
        raise NotImplementedError

    async def wake(self, *, deadline: Deadline) -> bool:
        raise NotImplementedError

    async def dismiss_lock(self, *, deadline: Deadline) -> bool:
        raise NotImplementedError

    async def tap(self, x: int, y: int, *, deadline: Deadline, hold_ms: int | None = None) -> bool:
        return await self._act("click", [x, y], deadline)

    async def set_focused_text(self, text: str, *, deadline: Deadline) -> bool:
        field, any_field = FOCUSED_FIELDS
        try:
            return await self._act("setText", [field, text], deadline)
        except ActionRefusedError as refused:
            if refused.code != NO_SUCH_OBJECT:
                raise
            return await self._act("setText", [any_field, text], deadline)

    async def press(self, key: Key, *, deadline: Deadline) -> bool:
        return await self._act("pressKeyCode", [KEY_CODES[key]], deadline)

    async def hide_keyboard(self, *, deadline: Deadline) -> bool:
        return await self._act("pressKeyCode", [ESCAPE_KEY_CODE], deadline)

    async def close(self) -> None:
        await self._link.close()

    # -- how -----------------------------------------------------------------------------------------------------

    async def _act(self, method: str, params: Sequence[Json], deadline: Deadline) -> bool:
        """One action: prepared, then written once. See the module docstring."""
        async with self._my_turn(deadline):
            try:
                connection = await self._link.connection(deadline=deadline)
            except UnavailableError as error:
                raise PhoneUnavailableError(
                    error.code, f"{self.serial}: {method} was not sent: {error.message}", hint=error.hint
                ) from error
            call_id, started = next(self._call_ids), self._clock.monotonic()
            body = encode_call(call_id, method, params)
            try:
                # Here, and nowhere else, the phone is touched. From here on "it broke" never means "it did not happen".
                result = decode_result(call_id, await connection.request("POST", RPC_PATH, body, deadline=deadline))
            except NotSentError as error:
                self._link.failed(error, waited_s=0)
                raise PhoneUnavailableError(
                    error.code, f"{self.serial}: {method} was not sent: {error.message}"
                ) from error
            except UnavailableError as error:
                self._link.failed(error, waited_s=self._clock.monotonic() - started)
                if isinstance(error, RpcError) and error.not_done:
                    code = NO_SUCH_OBJECT if error.no_object else "ACTION_REFUSED"
                    raise ActionRefusedError(code, f"{self.serial}: {method}: {error.message}") from error
                raise self._unknown(method, error.message) from error
            self._link.answered()
            if not isinstance(result, bool):
                raise self._unknown(method, "the phone answered neither true nor false")
            return result

    def _unknown(self, method: str, reason: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            "OUTCOME_UNKNOWN",
            f"{self.serial}: {method} was sent, and whether it happened is unknown: {reason}.",
            hint="Look at the phone before doing it again.",
        )

    async def _read(self, attempt: Callable[[], Awaitable[T]], deadline: Deadline) -> T:
        """Tries until the deadline, repairing in between. Any failure of an attempt is an `UnavailableError`."""
        tried: Counter[str] = Counter()
        cause: UnavailableError | None = None
        async with self._my_turn(deadline):
            for pause in _pauses():
                began = self._clock.monotonic()
                try:
                    return await attempt()
                except UnavailableError as failure:
                    error = failure
                try:
                    if deadline.remaining() >= LEAST_S:
                        await self._link.repair(error, deadline=deadline)
                except UnavailableError as failure:
                    error = failure
                tried[error.code] += 1
                log.debug("phone_read_failed", serial=self.serial, code=error.code, reason=error.message)
                cut_short = deadline.remaining() < LEAST_S and self._clock.monotonic() - began < TELLING_S
                cause = cause if cause is not None and cut_short else error
                if deadline.remaining() <= pause:
                    break
                await self._clock.sleep(pause)
            assert cause is not None, "the loop ends after a failure"
            raise PhoneUnavailableError(
                cause.code,
                f"{self.serial} gave no answer by the deadline: {cause.message}",
                hint=cause.hint,
                details={"tried": ", ".join(f"{code} x{times}" for code, times in tried.items())},
            ) from cause

    async def _call(self, method: str, params: Sequence[Json], deadline: Deadline) -> Json:
        """One attempt at one read-only method."""
        connection = await self._link.connection(deadline=deadline)
        call_id, started = next(self._call_ids), self._clock.monotonic()
        body = encode_call(call_id, method, params)
        try:
            result = decode_result(call_id, await connection.request("POST", RPC_PATH, body, deadline=deadline))
        except UnavailableError as error:
            self._link.failed(error, waited_s=self._clock.monotonic() - started)
            raise
        self._link.answered()
        return result

    async def _shell(self, command: str, deadline: Deadline) -> str:
        return (await self._adb.shell(self.serial, command, deadline=deadline)).decode(errors="replace")

    def _forget_old_facts(self) -> None:
        if self._epoch != self._link.epoch:
            self._epoch = self._link.epoch
            self._display = self._input_methods = None

    @asynccontextmanager
    async def _my_turn(self, deadline: Deadline) -> AsyncIterator[None]:
        """One call at a time, whoever calls (a heartbeat asks for the battery while a task runs)."""
        if self._turn.locked() or self._waiting:
            await self._wait_for_turn(deadline)
        else:
            await self._turn.acquire()  # Free and nobody waits, so this does not either, and needs no limit.
        try:
            yield
        finally:
            self._turn.release()

    async def _wait_for_turn(self, deadline: Deadline) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(deadline.remaining()):
                await self._turn.acquire()
        except TimeoutError as error:
            raise PhoneUnavailableError(
                "PHONE_BUSY", f"{self.serial}: another call took the whole time; nothing was sent."
            ) from error
        finally:
            self._waiting -= 1


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


def _pauses() -> Iterator[float]:
    yield from PAUSES_S
    yield from itertools.repeat(PAUSES_S[-1])
