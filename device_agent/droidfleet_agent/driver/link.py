"""The way to one phone's automation server: forwarded port, connection, and what to do when either is gone.

It hands out a connection that is open, leads to *our* phone, and has answered; it never sends a call itself, so that
nothing here can repeat an action. A forwarded port belongs to nobody for good (after an adb server's restart another
program may be given the same one), so each new connection is checked against the server's list before anything is sent.
"""

from __future__ import annotations

import contextlib

import structlog

from droidfleet_agent.driver.adb import ONLINE, AdbServer, Forward
from droidfleet_agent.driver.adb_errors import AdbError, AdbProblem, device_error
from droidfleet_agent.driver.automation_server import SERVER_PORT, AutomationDownError, AutomationServer
from droidfleet_agent.driver.http import HttpConnection, NotSentError, UnansweredError
from droidfleet_agent.driver.rpc import HTTP_OK, RpcError
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.errors import UnavailableError

REMOTE = f"tcp:{SERVER_PORT}"

FRESH_S = 1.0
"""A connection idle for longer is pinged before use: the phone closes idle ones after 5 s, and may have gone."""
PING_S = 2.0
"""Limit of a ping. A healthy server answers within milliseconds, also while a call runs."""
CONNECT_PHONE_S = 5.0
"""Limit of one ``adb connect``; to an address that swallows packets it would take minutes."""
CLOSE_S = 2.0
"""Limit of giving everything back."""
HUNG_CALL_S = 2.0
HUNG_CALLS = 2
"""So many calls in a row without an answer for so long: the server hangs and is restarted. One may be a slow screen."""

log = structlog.get_logger(__name__)


class PhoneLink:
    """One phone's link. Not for concurrent use. Methods raise `UnavailableError`s with stable codes."""

    def __init__(self, adb: AdbServer, serial: str, *, clock: Clock) -> None:
        self._adb = adb
        self._serial = serial
        self._clock = clock
        self._automation = AutomationServer(adb, serial, clock=clock)
        self._connection: HttpConnection | None = None
        self._forward: Forward | None = None
        self._fresh_until = clock.deadline(0)
        self._hung_calls = 0
        self._broken = False
        self.epoch = 0
        """Grows whenever the phone may have been restarted or exchanged: what was cached about it is void."""

    async def connection(self, *, deadline: Deadline) -> HttpConnection:
        """A connection that answered within the last `FRESH_S`. Connects anew if need be; repairs nothing."""
        if self._broken:
            raise AutomationDownError("AUTOMATION_BROKEN", "the automation server needs a restart")
        held = self._connection
        if held is not None:
            if held.usable and not self._fresh_until.passed:
                return held
            with contextlib.suppress(UnavailableError):
                await self._ping(held, deadline)
                return held
            self.drop()
        self._connection = await self._connect(deadline)
        return self._connection

    def answered(self) -> None:
        """Tells that a call was answered just now."""
        self._fresh_until = self._clock.deadline(FRESH_S)
        self._hung_calls = 0

    def failed(self, error: UnavailableError, *, waited_s: float) -> None:
        """Tells that a call failed after so many seconds. The connection is thrown away."""
        self.drop()
        match error:
            case UnansweredError(silent=True) if waited_s >= HUNG_CALL_S:
                self._hung_calls += 1
                self._broken |= self._hung_calls >= HUNG_CALLS
            case RpcError(broken=True):
                self._broken = True

    async def repair(self, error: UnavailableError, *, deadline: Deadline) -> None:
        """Takes one step against the cause of an error, if there is one to take. The caller paces the steps."""
        match error:
            case AdbError(problem=AdbProblem.ADB_UNREACHABLE):
                await self._adb.start(deadline=deadline)
            case AdbError(problem=AdbProblem.DEVICE_NOT_FOUND) if ":" in self._serial:
                # A restarted adb server has forgotten its network phones. One that is only offline it calls by itself.
                answer = await self._adb.connect(self._serial, deadline=deadline.at_most(CONNECT_PHONE_S))
                log.info("phone_connect_tried", serial=self._serial, answer=answer)
            case _ if self._broken:
                await self._stop_automation(deadline)
            case AutomationDownError():
                self.epoch += 1
                await self._automation.launch(deadline=deadline)

    def drop(self) -> None:
        """Closes the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    async def close(self) -> None:
        """Closes the connection, ends the server if it was launched here, removes the forwarded port if it is ours."""
        self.drop()
        self._automation.stop()
        forward, self._forward = self._forward, None
        deadline = self._clock.deadline(CLOSE_S)
        with contextlib.suppress(AdbError):
            if forward is not None and forward in await self._adb.forwards(deadline=deadline):
                await self._adb.remove_forward(forward, deadline=deadline)

    async def _connect(self, deadline: Deadline) -> HttpConnection:
        forward = self._forward = self._forward or await self._find_or_make_forward(deadline)
        port = int(forward.local.removeprefix("tcp:"))
        try:
            connection = await HttpConnection.open(self._adb.host, port, deadline=deadline)
        except NotSentError:
            self._forward = None
            raise
        try:
            # After connecting, not before: an entry seen now was there when the connection was made, because a server
            # that was replaced in between has closed it.
            if forward not in await self._adb.forwards(deadline=deadline):
                self._forward = None
                raise NotSentError(f"local port {port} does not lead to {self._serial} any more")
            await self._ping(connection, deadline)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _find_or_make_forward(self, deadline: Deadline) -> Forward:
        word = await self._adb.state(self._serial, deadline=deadline)
        if word != ONLINE:
            raise device_error(self._serial, word)
        self.epoch += 1
        for forward in await self._adb.forwards(deadline=deadline):
            if (forward.serial, forward.remote) == (self._serial, REMOTE):
                return forward  # Left behind by an agent that was killed.
        port = await self._adb.forward(self._serial, REMOTE, deadline=deadline)
        return Forward(self._serial, f"tcp:{port}", REMOTE)

    async def _ping(self, connection: HttpConnection, deadline: Deadline) -> None:
        try:
            answer = await connection.request("GET", "/ping", deadline=deadline.at_most(PING_S))
        except (NotSentError, UnansweredError) as error:
            # adb takes every connection, and closes it when nobody listens on the phone.
            raise AutomationDownError("AUTOMATION_DOWN", "the automation server does not answer") from error
        if (answer.status, answer.body) != (HTTP_OK, b"pong"):
            raise AutomationDownError("AUTOMATION_DOWN", f"something else answers on the phone's port {SERVER_PORT}")
        self._automation.answered()
        self._fresh_until = self._clock.deadline(FRESH_S)  # Proves a way, not that calls end: hung ones stay counted.

    async def _stop_automation(self, deadline: Deadline) -> None:
        self._broken = False
        self._hung_calls = 0
        log.warning("automation_server_stopped", serial=self._serial)
        if self._automation.stop():
            return
        # Launched by somebody else: it has to be asked. It is gone or ill if it does not answer.
        with contextlib.suppress(UnavailableError):
            connection = await self._connect(deadline)
            try:
                await connection.request("GET", "/stop", deadline=deadline.at_most(PING_S))
            finally:
                connection.abort()
