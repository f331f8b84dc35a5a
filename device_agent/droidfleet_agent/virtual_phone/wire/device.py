"""One virtual phone as the adb server sees it: connections in, services out, on and off the network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import structlog

from droidfleet_agent.virtual_phone import calls
from droidfleet_agent.virtual_phone.calls import Call
from droidfleet_agent.virtual_phone.faults import FaultKind, FaultPlan
from droidfleet_agent.virtual_phone.latency import LatencyProfile
from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.wire.adbd import Connection, Device, Stream
from droidfleet_agent.virtual_phone.wire.automation import AutomationServer
from droidfleet_agent.virtual_phone.wire.commands.base import Machine
from droidfleet_agent.virtual_phone.wire.files import PhoneFiles
from droidfleet_agent.virtual_phone.wire.http import HttpService
from droidfleet_agent.virtual_phone.wire.shell import Shell, ShellService
from droidfleet_agent.virtual_phone.wire.sync import SyncService
from droidfleet_agent.virtual_phone.wire.tasks import Spawn

MAX_CONNECTIONS = 16
"""Hosts of one phone. A phone has one; tests have two; a port scanner has a thousand."""

FEATURES = "shell_v2"
"""What is advertised: exit codes of `adb shell`. Not `cmd`, `stat_v2` and others: the host then asks for streamed
installs and sync version 2."""

FIRST_SETTINGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"system": {"screen_brightness": "128", "screen_brightness_mode": "0"}, "secure": {}, "global": {}}
)
"""What `settings get` knows from the start."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Network:
    """What the phone can ask of the network that it hangs on, set by the server that listens for it."""

    spawn: Spawn
    go_offline: Callable[[float], None]


@dataclass(slots=True)
class WirePhone(Device):
    """Routes the services of one phone. All of it runs in one event loop's thread."""

    phone: VirtualPhone
    network: Network
    faults: FaultPlan
    latency: LatencyProfile
    files: PhoneFiles
    is_authorized: bool = True
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    automation: AutomationServer = field(init=False)
    _shell: Shell = field(init=False)
    _crowded: bool = False
    # A dict for its order: the oldest first.
    _connections: dict[Connection, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.automation = AutomationServer(
            self.phone,
            faults=self.faults,
            latency=self.latency,
            lock=self.lock,
            spawn=self.network.spawn,
            go_offline=self.network.go_offline,
            run_shell=self._shell_output,
        )
        machine = Machine(
            phone=self.phone,
            files=self.files,
            automation=self.automation,
            faults=self.faults,
            latency=self.latency,
            lock=self.lock,
            settings={name: dict(values) for name, values in FIRST_SETTINGS.items()},
        )
        self._shell = Shell(machine, spawn=self.network.spawn, go_offline=self.network.go_offline)

    async def _shell_output(self, line: str) -> str:
        return await self._shell.output_of(line)

    # -- Device

    @property
    def banner(self) -> bytes:
        who = self.phone.identity
        # A space would end the field in `adb devices -l`.
        name, model, device = (text.replace(" ", "_") for text in (who.product, who.model, who.device))
        return (
            f"device::ro.product.name={name};ro.product.model={model};ro.product.device={device};features={FEATURES}"
        ).encode()

    @property
    def authorized(self) -> bool:
        return self.is_authorized

    def admit(self, connection: Connection) -> bool:
        if len(self._connections) >= MAX_CONNECTIONS:
            # Rather one that has said nothing yet: silent strangers must not keep a real host out.
            silent = next((other for other in self._connections if not other.online), None)
            if not self._crowded:  # once, not for each of a thousand
                log.warning("too_many_connections", connections=MAX_CONNECTIONS)
                self._crowded = True
            if silent is None:
                return False
            del self._connections[silent]
            silent.abort()
        self._connections[connection] = None
        return True

    def lost(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self._crowded = len(self._connections) >= MAX_CONNECTIONS

    def greet(self, connection: Connection) -> bool:
        fault = self.faults.take(calls.CONNECT) if self.faults.active else None
        if fault is None:
            return True
        if fault.do is FaultKind.OFFLINE:
            self.network.go_offline(fault.seconds or 0.0)
        elif fault.do is FaultKind.REFUSE:
            connection.abort()
        return False

    def open(self, stream: Stream, name: str) -> None:
        call, accept = self._route(stream, name)
        fault = self.faults.take(call) if self.faults.active else None
        if fault is None:
            accept()
            return
        match fault.do:
            case FaultKind.REFUSE:
                stream.refuse()
            case FaultKind.OFFLINE:
                self.network.go_offline(fault.seconds or 0.0)
            case FaultKind.SLOW:
                self.network.spawn(self._accept_later(accept, fault.seconds or 0.0), "open-slowly")
            case _:
                pass  # a hang: neither accepted nor refused

    # -- from outside

    @property
    def waiting_bytes(self) -> int:
        """Bytes held for hosts that have not acknowledged what came before."""
        return sum(connection.waiting_bytes for connection in self._connections)

    def authorize(self) -> None:
        """Somebody taps "Allow" on the phone: hosts kept waiting get in."""
        self.is_authorized = True
        for connection in list(self._connections):
            connection.authorize()

    def disconnect(self) -> None:
        """Pulls the cable."""
        for connection in list(self._connections):
            connection.abort()

    # -- services

    def _route(self, stream: Stream, name: str) -> tuple[Call, Callable[[], None]]:
        service, _, argument = name.partition(":")
        kind, *flags = service.split(",")
        if kind in {"shell", "exec"}:
            terminal = kind == "shell" and "raw" not in flags
            packets = "v2" in flags
            return calls.OPEN_SHELL, lambda: stream.accept(
                ShellService(stream, self._shell, argument, packets=packets, terminal=terminal)
            )
        if service == "sync":
            return calls.OPEN_SYNC, lambda: stream.accept(SyncService(stream, self.files))
        if service == "tcp":
            return calls.OPEN_TCP, lambda: self._open_port(stream, argument)
        return calls.OPEN_OTHER, stream.refuse

    def _open_port(self, stream: Stream, port: str) -> None:
        # Asked when it is accepted, not when it was routed: the server may have died in between.
        if self.automation.port is None or port != str(self.automation.port):
            stream.refuse()
            return
        stream.accept(HttpService(stream, self.automation))

    async def _accept_later(self, accept: Callable[[], None], seconds: float) -> None:
        await self.phone.clock.sleep(seconds)
        accept()
