"""How a phone is asked and told: one call at a time, reads until they are answered, actions once.

Two rules hold everything here together. A read is tried until its deadline, with repairs in between, because it changes
nothing. An action is prepared (a connection that has just answered), then written once, and whatever breaks after that
is an unknown outcome; preparing repairs nothing, because a repair takes seconds and the action was decided on a screen
seen before them: the next look repairs.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog

from droidfleet_agent.driver.adb import AdbServer, CommandUnknownError
from droidfleet_agent.driver.adb_errors import AdbError
from droidfleet_agent.driver.http import NotSentError
from droidfleet_agent.driver.link import PhoneLink
from droidfleet_agent.driver.port import ActionRefusedError, OutcomeUnknownError, PhoneUnavailableError
from droidfleet_agent.driver.rpc import RPC_PATH, Json, RpcError, decode_result, encode_call
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.errors import UnavailableError

PAUSES_S = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Pauses between tries of a read; the last one repeats. The first try again is at once: most breaks are idle closes."""

LEAST_S = 0.02
"""With less time left no repair is begun: it could not end, and would count as tried."""
TELLING_S = 0.5
"""A try that the deadline cut off sooner tells nothing about the phone; the failure before it does."""

NO_SUCH_OBJECT = "NO_SUCH_OBJECT"
"""Code of an `ActionRefusedError`: nothing on the screen matched, so certainly nothing was touched."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


class PhoneCalls:
    """The calls to one phone. ``adb`` and ``link`` are its two ways."""

    def __init__(self, serial: str, adb: AdbServer, link: PhoneLink, *, clock: Clock) -> None:
        self._serial = serial
        self._adb = adb
        self._link = link
        self._clock = clock
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._call_ids = itertools.count(1)

    async def act(self, method: str, params: Sequence[Json], deadline: Deadline) -> bool:
        """One action: prepared, then written once. See the module docstring."""
        async with self._my_turn(deadline):
            try:
                connection = await self._link.connection(deadline=deadline)
            except UnavailableError as error:
                raise PhoneUnavailableError(
                    error.code, f"{self._serial}: {method} was not sent: {error.message}", hint=error.hint
                ) from error
            call_id, started = next(self._call_ids), self._clock.monotonic()
            body = encode_call(call_id, method, params)
            try:
                # Here, and nowhere else, the phone is touched. From here on "it broke" never means "it did not happen".
                result = decode_result(call_id, await connection.request("POST", RPC_PATH, body, deadline=deadline))
            except NotSentError as error:
                self._link.failed(error, waited_s=0)
                raise PhoneUnavailableError(
                    error.code, f"{self._serial}: {method} was not sent: {error.message}"
                ) from error
            except UnavailableError as error:
                self._link.failed(error, waited_s=self._clock.monotonic() - started)
                if isinstance(error, RpcError) and error.not_done:
                    code = NO_SUCH_OBJECT if error.no_object else "ACTION_REFUSED"
                    raise ActionRefusedError(code, f"{self._serial}: {method}: {error.message}") from error
                raise self._unknown(method, error.message) from error
            self._link.answered()
            if not isinstance(result, bool):
                raise self._unknown(method, "the phone answered neither true nor false")
            return result

    async def run(self, command: str, deadline: Deadline) -> str:
        """One shell command that does something: written once, like any action. Returns what it printed."""
        async with self._my_turn(deadline):
            try:
                # Here too the phone is told to do something. A shell that was opened may have run its command.
                output = await self._adb.run_once(self._serial, command, deadline=deadline)
            except CommandUnknownError as error:
                raise self._unknown(f"`{command}`", error.message) from error
            except AdbError as error:
                raise PhoneUnavailableError(
                    error.code, f"{self._serial}: `{command}` was not sent: {error.message}", hint=error.hint
                ) from error
            return output.decode(errors="replace")

    def _unknown(self, method: str, reason: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            "OUTCOME_UNKNOWN",
            f"{self._serial}: {method} was sent, and whether it happened is unknown: {reason}.",
            hint="Look at the phone before doing it again.",
        )

    async def read(self, attempt: Callable[[], Awaitable[T]], deadline: Deadline) -> T:
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
                log.debug("phone_read_failed", serial=self._serial, code=error.code, reason=error.message)
                cut_short = deadline.remaining() < LEAST_S and self._clock.monotonic() - began < TELLING_S
                cause = cause if cause is not None and cut_short else error
                if deadline.remaining() <= pause:
                    break
                await self._clock.sleep(pause)
            assert cause is not None, "the loop ends after a failure"
            raise PhoneUnavailableError(
                cause.code,
                f"{self._serial} gave no answer by the deadline: {cause.message}",
                hint=cause.hint,
                details={"tried": ", ".join(f"{code} x{times}" for code, times in tried.items())},
            ) from cause

    async def call(self, method: str, params: Sequence[Json], deadline: Deadline) -> Json:
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

    async def shell(self, command: str, deadline: Deadline) -> str:
        return (await self._adb.shell(self._serial, command, deadline=deadline)).decode(errors="replace")

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
                "PHONE_BUSY", f"{self._serial}: another call took the whole time; nothing was sent."
            ) from error
        finally:
            self._waiting -= 1


def _pauses() -> Iterator[float]:
    yield from PAUSES_S
    yield from itertools.repeat(PAUSES_S[-1])
