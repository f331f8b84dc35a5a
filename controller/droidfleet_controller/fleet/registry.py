"""All devices, in memory; the database follows.

A heartbeat of a name's holder changes memory alone and is written with others every few seconds. A grant is committed
before it is answered, so that a restarted controller knows every holder.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import partial
from itertools import islice

import structlog
from sqlalchemy import Connection

from droidfleet_controller.fleet import names
from droidfleet_controller.fleet.clocks import ClockAlarm, Clocks
from droidfleet_controller.fleet.device import UP, Device, DeviceState
from droidfleet_controller.fleet.names import Grant
from droidfleet_controller.store import devices, events
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import FleetEvent
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import MISSED_HEARTBEATS, BadMessageError, Heartbeat, HeartbeatReply
from droidfleet_shared.bus.port import Bus, BusMessage, BusUnavailableError
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import NotFoundError, UnavailableError

log = structlog.get_logger(__name__)

SWEEP_S = 1.0
"""How soon a silent agent is seen as such; short beside three heartbeats."""

WRITE_S = 10.0
"""How much of ``last_seen_at`` a crash may lose; it is only shown."""

WRITE_BATCH = 250
"""Devices in one transaction: others wait for milliseconds only."""

MAX_ASKING = 20_000
"""Heartbeats that wait for a decision: every agent of a large fleet at once, twice. More are dropped and come again."""

_EVENT_KINDS = {DeviceState.OFFLINE: "DeviceOffline", DeviceState.PHONE_OFFLINE: "PhoneOffline"}

Heard = Callable[[Device, bool], None]
"""Told of every heartbeat of a holder; the flag: it was away (offline, or another process) before."""

Granted = Callable[[Connection, Mapping[str, str], datetime], Callable[[], None]]
"""Called in the transaction that gives names to other hosts than before, or for the first time: names with the hosts'
ids. What it returns is called when that is committed."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A heartbeat that waits for a decision, and when it came: by the wall clock, and monotonic seconds."""

    beat: Heartbeat
    reply: str
    received_at: datetime
    moment: float


class Registry:
    """The devices. ``heartbeat_s``: how often agents say that they are alive. ``stored``: called after events were
    written."""

    def __init__(
        self, *, database: Database, bus: Bus, clock: Clock, heartbeat_s: float, stored: Callable[[], None]
    ) -> None:
        self._database = database
        self._bus = bus
        self._clock = clock
        self._heartbeat = timedelta(seconds=heartbeat_s)
        self._stored = stored
        self._devices: dict[str, Device] = {}
        self._states: dict[str, DeviceState] = {}
        self._unwritten: set[str] = set()
        self._asking: asyncio.Queue[Asking] = asyncio.Queue(MAX_ASKING)
        self.clocks = Clocks()
        """Of the agents' hosts."""
        self._alarms: list[FleetEvent] = []
        self._hearing_since: datetime | None = None
        self._heard: list[Heard] = []
        self._granted: list[Granted] = []
        self._presence: list[Callable[[], None]] = []

    async def load(self) -> None:
        """Reads all devices from the database, once at the start."""
        now = self._clock.now()
        for device in await self._database.run(devices.load):
            self._devices[device.name] = device
            self._states[device.name] = device.state(now, heartbeat=self._heartbeat)

    def on_heard(self, heard: Heard) -> None:
        """Calls ``heard`` for every heartbeat of a holder."""
        self._heard.append(heard)

    def on_granted(self, granted: Granted) -> None:
        """Calls ``granted`` when names go to hosts that did not have them."""
        self._granted.append(granted)

    def on_presence(self, changed: Callable[[], None]) -> None:
        """Calls ``changed`` soon after devices came or went."""
        self._presence.append(changed)

    async def connected(self) -> None:
        """To be called after every connect: from now on agents are heard."""
        self._hearing_since = self._clock.now()

    # Questions.

    @property
    def known(self) -> Mapping[str, Device]:
        """All devices by name, in no order."""
        return self._devices

    def find(self, name: str) -> Device | None:
        """A device by name."""
        return self._devices.get(name)

    def get(self, name: str) -> Device:
        """A device by name.

        Raises:
            NotFoundError: ``DEVICE_NOT_FOUND``, with the nearest names.
        """
        self.require([name])
        return self._devices[name]

    def require(self, wanted: Iterable[str]) -> None:
        """Checks that all devices exist.

        Raises:
            NotFoundError: ``DEVICE_NOT_FOUND``, with all unknown names and the nearest known ones.
        """
        unknown = [name for name in wanted if name not in self._devices]
        if unknown:
            raise _unknown(unknown, sorted(self._devices))

    def state(self, device: Device) -> DeviceState:
        """The device's state now."""
        return device.state(self._clock.now(), heartbeat=self._heartbeat)

    def page(
        self, *, after: str, limit: int, states: frozenset[DeviceState], among: Iterable[str] | None = None
    ) -> list[Device]:
        """Devices by name after ``after``, in ``states`` (empty: in any), of those that are ``among`` these names."""
        found: list[Device] = []
        for name in sorted(name for name in (self._devices if among is None else among) if name > after):
            device = self._devices[name]
            if not states or self.state(device) in states:
                found.append(device)
                if len(found) == limit:
                    break
        return found

    def silent(self, name: str) -> bool:
        """Whether the agent was not heard for three heartbeats in which it could have been heard."""
        if self._hearing_since is None or not self._bus.connected:
            return False
        now = self._clock.now()
        device = self._devices.get(name)
        quiet = now - self._hearing_since
        if device is not None:
            quiet = device.silent_for(now, hearing_since=self._hearing_since)
        return quiet >= MISSED_HEARTBEATS * self._heartbeat

    def counts(self) -> Counter[DeviceState]:
        """How many devices are in each state."""
        return Counter(self.state(device) for device in self._devices.values())

    # Heartbeats.

    async def receive(self, message: BusMessage) -> None:
        """Takes one heartbeat as it came from the bus."""
        try:
            beat = Heartbeat.decode(message.data)
            if subjects.agent_of(message.subject) != beat.agent:
                raise BadMessageError("BAD_MESSAGE", "the heartbeat names another agent than its subject.")
        except (BadMessageError, ValueError) as error:
            log.warning("heartbeat_unreadable", subject=message.subject, error=str(error))
            return
        now, moment = self._clock.now(), self._clock.monotonic()
        device = self._devices.get(beat.agent)
        if device is not None and device.holder.instance == beat.instance and not beat.hello:
            self._update(device, beat, now)
            return
        try:
            self._asking.put_nowait(Asking(beat, message.reply, now, moment))
        except asyncio.QueueFull:
            log.warning("heartbeat_dropped", agent=beat.agent, reason="too many wait for a decision")

    def _update(self, device: Device, beat: Heartbeat, now: datetime) -> None:
        self._hear_clock(beat, now)
        back = device.state(now, heartbeat=self._heartbeat) is DeviceState.OFFLINE
        current = replace(device, heartbeat=beat, last_seen_at=now)
        self._devices[device.name] = current
        self._unwritten.add(device.name)
        self._tell(current, back)

    def _hear_clock(self, beat: Heartbeat, received_at: datetime) -> None:
        alarm = self.clocks.hear(beat, received_at=received_at)
        if alarm is not None:
            log.log(
                logging.WARNING if alarm.wrong else logging.INFO,
                "clock_wrong" if alarm.wrong else "clock_right",
                device=alarm.agent,
                host=beat.host,
                offset_s=round(alarm.offset_s, 3),
            )
            self._alarms.append(_clock_event(beat, alarm, received_at))

    def _tell(self, device: Device, back: bool) -> None:
        for heard in self._heard:
            heard(device, back)

    async def run(self) -> None:
        """Decides on names and watches for silence, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._decide_names(), name="fleet names")
            group.create_task(self._sweep(), name="fleet presence")

    async def _decide_names(self) -> None:
        while True:
            waiting = [await self._asking.get()]
            while not self._asking.empty():
                waiting.append(self._asking.get_nowait())
            try:
                await self._decide(waiting)
            except UnavailableError as error:
                # Nobody is answered, so every agent asks again.
                log.warning("names_undecided", code=error.code, message=error.message)

    async def _decide(self, waiting: list[Asking]) -> None:
        now = self._clock.now()
        fresh: dict[str, Device] = {}
        taken: dict[str, Device] = {}
        lines: list[FleetEvent] = []
        hosts: dict[str, str] = {}
        answers: list[tuple[Asking, Grant]] = []
        for asking in waiting:
            beat = asking.beat
            known = taken.get(beat.agent) or fresh.get(beat.agent) or self._devices.get(beat.agent)
            grant = names.decide(
                beat, known, now=now, hearing_since=self._hearing_since or now, heartbeat=self._heartbeat
            )
            answers.append((asking, grant))
            if grant.granted:
                self._hear_clock(beat, asking.received_at)
                if known is None or known.holder.host_id != beat.host_id:
                    hosts[beat.agent] = beat.host_id
                device = Device(beat.agent, grant.holder, beat, now)
                (fresh if beat.agent not in self._devices else taken)[beat.agent] = device
            if grant.new or (beat.hello and not grant.granted):
                lines.append(_name_event(beat, grant, now))

        def write(connection: Connection) -> list[Callable[[], None]]:
            for device in fresh.values():
                devices.add(connection, device)
            devices.save(connection, list(taken.values()))
            events.add(connection, lines)
            return [granted(connection, hosts, now) for granted in self._granted] if hosts else []

        if fresh or taken or lines:
            for follow_up in await self._database.run(write):
                follow_up()
        for device in (*fresh.values(), *taken.values()):
            self._devices[device.name] = device
            self._states[device.name] = self.state(device)
            self._tell(device, True)
        if lines:
            self._stored()
        for asking, grant in answers:
            beat = asking.beat
            log.info(
                "name_granted" if grant.granted else "name_refused",
                agent=beat.agent,
                host=beat.host,
                pid=beat.pid,
                holder=str(grant.holder),
                reason=grant.reason,
            )
            if asking.reply:
                took_s = self._clock.monotonic() - asking.moment
                answer = HeartbeatReply(granted=grant.granted, holder=str(grant.holder), took_s=took_s)
                await self._answer(asking.reply, answer)

    async def _answer(self, reply: str, answer: HeartbeatReply) -> None:
        try:
            await self._bus.publish(reply, answer.encode())
        except BusUnavailableError as error:
            # The agent asks again.
            log.info("heartbeat_unanswered", code=error.code)

    # Presence.

    async def _sweep(self) -> None:
        written = self._clock.monotonic()
        while True:
            await self._clock.sleep(SWEEP_S)
            lines = self._changes()
            if lines:
                for changed in self._presence:
                    changed()
            lines += self._alarms
            self._alarms.clear()
            due = self._clock.monotonic() - written >= WRITE_S
            if not lines and not (due and self._unwritten):
                continue
            try:
                await self.write(lines)
                written = self._clock.monotonic()
            except UnavailableError as error:
                log.warning("presence_unwritten", code=error.code, message=error.message)

    def _changes(self) -> list[FleetEvent]:
        now = self._clock.now()
        lines: list[FleetEvent] = []
        for name, device in self._devices.items():
            before, after = self._states[name], device.state(now, heartbeat=self._heartbeat)
            if before is after or (before in UP and after in UP):
                continue
            self._states[name] = after
            kind = _EVENT_KINDS.get(after, "DeviceOnline")
            log.info("device_state_changed", device=name, before=before.value, after=after.value)
            lines.append(
                FleetEvent(
                    occurred_at=now,
                    recorded_at=now,
                    kind=kind,
                    device=name,
                    summary=f"{name}: {before} -> {after}",
                )
            )
        return lines

    async def write(self, lines: Iterable[FleetEvent] = ()) -> None:
        """Writes what memory knows more than the database, and ``lines``."""
        lines = list(lines)
        if lines:
            await self._database.run(lambda connection: events.add(connection, lines))
            self._stored()
        while self._unwritten:
            some = list(islice(self._unwritten, WRITE_BATCH))
            changed = [self._devices[name] for name in some]
            self._unwritten.difference_update(some)
            try:
                await self._database.run(partial(devices.save, changed=changed))
            except UnavailableError:
                self._unwritten.update(some)
                raise


def _clock_event(beat: Heartbeat, alarm: ClockAlarm, now: datetime) -> FleetEvent:
    apart = f"{abs(alarm.offset_s):.1f} s {'ahead of' if alarm.offset_s > 0 else 'behind'} the controller's"
    return FleetEvent(
        occurred_at=now,
        recorded_at=now,
        kind="ClockWrong" if alarm.wrong else "ClockRight",
        device=beat.agent,
        summary=f"{beat.agent}: the clock of {beat.host} is {'' if alarm.wrong else 'right again, '}{apart}",
    )


def _name_event(beat: Heartbeat, grant: Grant, now: datetime) -> FleetEvent:
    asking = f"pid {beat.pid} on {beat.host}"
    if grant.granted:
        kind, summary = "NameGranted", f"{beat.agent}: the name goes to {asking} ({grant.reason})"
    else:
        kind, summary = "NameRefused", f"{beat.agent}: refused to {asking}; held by {grant.holder}"
    return FleetEvent(occurred_at=now, recorded_at=now, kind=kind, device=beat.agent, summary=summary)


MAX_NAMED = 20
"""Unknown names spelt out in an error; the rest is counted."""

MAX_SUGGESTED = 3
"""Unknown names for which a near one is looked for."""

SUGGESTED_FROM = 250
"""Known names on either side of an unknown one, in the order of the alphabet, that are compared with it: comparing is
slow (about 25 microseconds each) and the event loop waits."""


def _nearest(name: str, known: Sequence[str]) -> list[str]:
    place = bisect(known, name)
    return get_close_matches(name, known[max(0, place - SUGGESTED_FROM) : place + SUGGESTED_FROM], n=1)


def _unknown(unknown: Sequence[str], known: Sequence[str]) -> NotFoundError:
    """``known``: in order."""
    named = ", ".join(repr(name) for name in unknown[:MAX_NAMED])
    more = f" and {len(unknown) - MAX_NAMED} more" if len(unknown) > MAX_NAMED else ""
    near = [match for name in unknown[:MAX_SUGGESTED] for match in _nearest(name, known)]
    if near:
        hint = f"Did you mean {', '.join(repr(match) for match in dict.fromkeys(near))}?"
    elif known:
        hint = "List the devices with: droidfleet devices"
    else:
        hint = "No agent has ever reported. Start one: droidfleet-agent supervise"
    return NotFoundError(
        "DEVICE_NOT_FOUND",
        f"unknown device{'s' if len(unknown) > 1 else ''}: {named}{more}.",
        hint=hint,
        details={"unknown": "\n".join(unknown)},
    )
