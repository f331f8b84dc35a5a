"""Runs virtual phones on TCP ports: listens, goes offline and comes back, stops in order.

`running_phone` for one, `running_phones` for many in one process. Everything that a phone starts is owned by its task
group and ends with the context. The ports are on loopback unless another address is asked for.
"""

from __future__ import annotations

import asyncio
import errno
import platform
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog

from droidfleet_agent.virtual_phone.effects import EffectLog
from droidfleet_agent.virtual_phone.faults import Fault, FaultPlan
from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.latency import LatencyProfile, latency_profile
from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_agent.virtual_phone.wire.adbd import Connection
from droidfleet_agent.virtual_phone.wire.device import Network, WirePhone
from droidfleet_agent.virtual_phone.wire.files import PhoneFiles
from droidfleet_agent.virtual_phone.wire.tasks import PhoneTasks, Spawn
from droidfleet_shared.clock import Clock, SystemClock
from droidfleet_shared.errors import ConflictError, InvalidInputError

LOOPBACK = "127.0.0.1"
BACKLOG = 128
MAX_PHONES = 1_000
"""Phones of one process."""

EMULATOR_PORTS = range(5555, 5586, 2)
"""An adb server looks for emulators here by itself: a phone on one of them shows up twice, once as `emulator-5554`."""

_CAN_RESERVE = platform.system() == "Linux"
"""Linux lets a socket listen on a port that another socket of ours has bound and does not listen on. While a phone is
offline that other one keeps the port: connects are refused, and no other program is given it."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneOptions:
    """What one virtual phone is like.

    ``scenario``: a shipped name, a file, or one that is loaded already. ``variant``: one of its variants. ``port`` 0:
    the system chooses. ``latency``: a profile or its text. ``effects_path``: a file that effects are appended to.
    ``authorized`` False: hosts see `unauthorized` until `PhoneHandle.authorize`. ``with_jar`` False: clients must push
    u2.jar.
    """

    scenario: str | Path | Scenario = "shop"
    variant: str | None = None
    host: str = LOOPBACK
    port: int = 0
    latency: LatencyProfile | str = "zero"
    faults: Sequence[Fault] = ()
    identity: PhoneIdentity = field(default_factory=PhoneIdentity)
    effects_path: Path | None = None
    clock: Clock = field(default_factory=SystemClock)
    seed: int = 0
    authorized: bool = True
    with_jar: bool = True


class PhoneHandle:
    """One running phone. Use it from the event loop's thread; ``faults.add`` may be called from any."""

    def __init__(self, wire: WirePhone, listener: _Listener, tasks: PhoneTasks) -> None:
        self._wire = wire
        self._tasks = tasks
        self._listener = listener
        self.phone: VirtualPhone = wire.phone
        self.effects: EffectLog = wire.phone.effects
        self.faults: FaultPlan = wire.faults
        self.host = listener.host
        self.port = listener.port
        self.address = f"{listener.host}:{listener.port}"
        """What `adb connect` takes, and the serial under which the adb server then lists the phone."""

    @property
    def server_running(self) -> bool:
        """Whether the automation server's process exists."""
        return self._wire.automation.running

    @property
    def tasks(self) -> int:
        """How many commands and calls are under way."""
        return len(self._tasks)

    @property
    def waiting_bytes(self) -> int:
        """Bytes held for hosts that have not acknowledged what came before."""
        return self._wire.waiting_bytes

    def go_offline(self, seconds: float) -> None:
        """Drops every connection and refuses new ones for a time."""
        self._wire.network.go_offline(seconds)

    def disconnect(self) -> None:
        """Drops every connection; new ones are welcome at once."""
        self._wire.disconnect()

    def kill_server(self) -> None:
        """Kills the automation server."""
        self._wire.automation.kill()

    def authorize(self) -> None:
        """Lets in hosts that are kept waiting as `unauthorized`."""
        self._wire.authorize()


class _Listener:
    """The phone's port. It stays ours while the phone is offline, although nothing listens on it then."""

    def __init__(self, host: str, port: int) -> None:
        self._connect: Callable[[], Connection] | None = None
        self._server: asyncio.Server | None = None
        self._closed = False
        self.host = host
        reservation = _bound(host, port)
        self.port: int = reservation.getsockname()[1]
        self._reservation: socket.socket | None = reservation
        if not _CAN_RESERVE:
            reservation.close()
            self._reservation = None

    async def open(self, connect: Callable[[], Connection]) -> None:
        """Starts to listen. Raises `ConflictError` when somebody else listens there."""
        self._connect = connect
        listening = _bound(self.host, self.port)
        try:
            self._server = await asyncio.get_running_loop().create_server(connect, sock=listening, backlog=BACKLOG)
        except OSError as error:
            listening.close()
            raise _taken(self.host, self.port, error) from error

    def pause(self) -> None:
        """Stops listening."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def resume(self) -> None:
        """Listens again, unless the phone has stopped or listens already."""
        if not self._closed and self._server is None and self._connect is not None:
            await self.open(self._connect)

    def close(self) -> None:
        """Gives the port back."""
        self._closed = True
        self.pause()
        if self._reservation is not None:
            self._reservation.close()
            self._reservation = None


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, not left to the default: asyncio sets TCP_NODELAY only on sockets that say so.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise _taken(host, port, error) from error
    return bound


def _taken(host: str, port: int, error: OSError) -> ConflictError | InvalidInputError:
    if error.errno in {errno.EADDRINUSE, errno.EACCES}:
        return ConflictError(
            "PORT_TAKEN",
            f"Port {port} on {host} cannot be used: {error.strerror}.",
            hint="Choose another with --port, or --port 0 for any free one.",
        )
    return InvalidInputError("ADDRESS_INVALID", f"Cannot listen on {host}:{port}: {error.strerror}.")


class _Outage:
    """Takes a phone off the network and brings it back; a second outage extends the first."""

    def __init__(self, listener: _Listener, clock: Clock, spawn: Spawn) -> None:
        self._listener = listener
        self._clock = clock
        self._spawn = spawn
        self._until = 0.0
        self._running = False
        self.disconnect: Callable[[], None] = lambda: None
        """Drops the phone's connections; set once the phone exists."""

    def begin(self, seconds: float) -> None:
        """From now on, for ``seconds``."""
        self._until = max(self._until, self._clock.monotonic() + seconds)
        self._listener.pause()
        self.disconnect()
        if not self._running:
            self._running = True
            self._spawn(self._wait(), "outage")

    async def _wait(self) -> None:
        try:
            while (left := self._until - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)
            await self._listener.resume()
        finally:
            self._running = False


def running_phone(
    *,
    scenario: str | Path | Scenario = "shop",
    variant: str | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    latency: LatencyProfile | str = "zero",
    faults: Sequence[Fault] = (),
    identity: PhoneIdentity | None = None,
    effects_path: Path | None = None,
    clock: Clock | None = None,
    seed: int = 0,
    authorized: bool = True,
    with_jar: bool = True,
) -> AbstractAsyncContextManager[PhoneHandle]:
    """One phone, listening while the context is open. `PhoneOptions` explains the options.

    Raises `ConflictError` (``PORT_TAKEN``), `InvalidInputError` for a bad scenario, variant, latency or address.
    """
    return serve_phone(
        PhoneOptions(
            scenario=scenario,
            variant=variant,
            host=host,
            port=port,
            latency=latency,
            faults=faults,
            identity=identity or PhoneIdentity(),
            effects_path=effects_path,
            clock=clock or SystemClock(),
            seed=seed,
            authorized=authorized,
            with_jar=with_jar,
        )
    )


@asynccontextmanager
async def running_phones(phones: Sequence[PhoneOptions]) -> AsyncIterator[list[PhoneHandle]]:
    """Many phones in one process. All of them listen, or none: the first that cannot ends the others."""
    if len(phones) > MAX_PHONES:
        raise InvalidInputError("TOO_MANY_PHONES", f"{len(phones)} phones; at most {MAX_PHONES} run in one process.")
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(serve_phone(options)) for options in phones]


def _effect_log(options: PhoneOptions) -> EffectLog:
    try:
        return EffectLog(options.clock, serial=options.identity.serial, path=options.effects_path)
    except OSError as error:
        raise InvalidInputError(
            "EFFECTS_FILE", f"The effects file {options.effects_path} cannot be written: {error.strerror}."
        ) from error


@asynccontextmanager
async def serve_phone(options: PhoneOptions) -> AsyncIterator[PhoneHandle]:
    """As `running_phone`, with the options in one piece."""
    scenario = options.scenario
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, variant=options.variant)
    latency = options.latency if isinstance(options.latency, LatencyProfile) else latency_profile(options.latency)
    failure: Exception | asyncio.CancelledError | None = None
    with ExitStack() as stack:
        listener = _Listener(options.host, options.port)
        stack.callback(listener.close)
        effects = _effect_log(options)
        stack.callback(effects.close)
        async with asyncio.TaskGroup() as group:
            tasks = PhoneTasks(group)
            outage = _Outage(listener, options.clock, tasks.spawn)
            wire = WirePhone(
                VirtualPhone(
                    scenario, identity=options.identity, effects=effects, clock=options.clock, seed=options.seed
                ),
                network=Network(tasks.spawn, outage.begin),
                faults=FaultPlan(options.faults),
                latency=latency,
                files=PhoneFiles(with_jar=options.with_jar),
                is_authorized=options.authorized,
            )
            outage.disconnect = wire.disconnect
            try:
                await listener.open(partial(Connection, wire))
                yield PhoneHandle(wire, listener, tasks)
            except (Exception, asyncio.CancelledError) as error:
                failure = error  # raised outside the group, which would wrap it
            finally:
                listener.close()
                wire.disconnect()
                wire.automation.kill()
                tasks.cancel_all()
    if failure is not None:
        raise failure
