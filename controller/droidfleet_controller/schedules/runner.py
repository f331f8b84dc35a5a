"""Begins rollouts at their times, and ends them when their windows close.

One occurrence, one rollout: both are written in one transaction, which also moves the schedule's ``decided_until`` from
the value that was read. Whoever comes second, another controller or this one after a restart, finds it moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from droidfleet_controller.rollouts.rollout import Rollout
from droidfleet_controller.rollouts.starting import Prepared
from droidfleet_controller.rollouts.states import ReasonCode
from droidfleet_controller.schedules import policy, secrets
from droidfleet_controller.schedules.door import RolloutDoor
from droidfleet_controller.schedules.occurrences import Timed, Timetable
from droidfleet_controller.schedules.policy import Begin, BeginQueued, Facts, Record, Settle, Step
from droidfleet_controller.schedules.preview import begin_at
from droidfleet_controller.schedules.schedule import Occurrence, OccurrenceState, Schedule
from droidfleet_controller.schedules.timer import Timer
from droidfleet_controller.store import events, schedules
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import FleetEvent
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, NotFoundError, UnavailableError

T = TypeVar("T")

log = structlog.get_logger(__name__)

LOOK = timedelta(seconds=5)
"""How long it takes at most until a rollout's end, or another controller's change, is noticed."""

MAX_STEPS = policy.MAX_LISTED + 100
"""Steps for one schedule in one look; what is left comes in the next."""

MAX_STOPS = 100
"""Windows closed in one look."""

_LOOK, _STOP = "look", "stop"
"""Keys of the timer beside those of schedules, which begin with ``s-``."""


class _OutrunError(Exception):
    """Somebody else decided it, or changed the schedule, in between."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A schedule that is switched on. ``begins_at``: when its next undecided occurrence begins; None: never."""

    schedule: Schedule
    timetable: Timetable
    begins_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the database says in one look. ``changed``: schedules that are not as they were."""

    ids: frozenset[str]
    changed: list[Schedule]
    with_queued: set[str]
    stops: list[Occurrence]


class Runner:
    """Follows all schedules. ``decided`` is told of each occurrence; ``stored`` is called after events were written."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        rollouts: RolloutDoor,
        timer: Timer,
        stored: Callable[[], None],
        decided: Callable[[OccurrenceState], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._rollouts = rollouts
        self._timer = timer
        self._stored = stored
        self._decided = decided
        self._entries: dict[str, _Entry] = {}
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Follows them until cancelled."""
        self._timer.start(self._wake)
        try:
            while True:
                self._woken.clear()
                self._timer.set(_LOOK, self._clock.now() + LOOK)
                try:
                    await self.look()
                except UnavailableError as error:
                    log.warning("schedules_not_looked_at", code=error.code, message=error.message)
                await self._woken.wait()
        finally:
            self._timer.stop()

    def wake(self) -> None:
        """Something changed: look at once."""
        self._woken.set()

    def _wake(self, _key: str) -> None:
        self._woken.set()

    async def look(self) -> None:
        """One round: windows that have closed, then occurrences whose time has come.

        Raises:
            UnavailableError: the database failed; nothing is lost, the next round does it.
        """
        now = self._clock.now()
        seen = await self._database.run(lambda connection: self._see(connection, now))
        for occurrence in seen.stops:
            with _apart(occurrence.schedule_id):
                await self._close(occurrence)
        if len(seen.stops) == MAX_STOPS:
            self.wake()
        for schedule in seen.changed:
            self._follow(schedule)
        for gone in self._entries.keys() - seen.ids:
            del self._entries[gone]
            self._timer.clear(gone)
        for schedule_id, entry in list(self._entries.items()):
            if schedule_id in seen.with_queued or (entry.begins_at is not None and entry.begins_at <= now):
                with _apart(schedule_id):
                    await self._work(entry)
        stop = await self._database.run(schedules.next_stop)
        if stop is not None:
            self._timer.set(_STOP, stop)

    def _see(self, connection: Connection, now: datetime) -> _Seen:
        marks = schedules.marks(connection)
        known = {key: (each.schedule.version, each.schedule.decided_until) for key, each in self._entries.items()}
        changed = [key for key, mark in marks.items() if known.get(key) != mark]
        found: list[Schedule] = []
        for key in changed:
            with _apart(key):
                schedule = schedules.get(connection, key)
                if schedule is not None:
                    found.append(schedule)
        return _Seen(
            ids=frozenset(marks),
            changed=found,
            with_queued=schedules.with_queued(connection),
            stops=schedules.due_stops(connection, now, limit=MAX_STOPS),
        )

    def _follow(self, schedule: Schedule) -> None:
        """Takes a schedule as it is now, and sets the timer for it."""
        key = schedule.schedule_id
        before = self._entries.get(key)
        try:
            if before is not None and before.schedule.version == schedule.version:
                timetable = before.timetable
            else:
                timetable = Timetable(schedule.spec, anchor=schedule.created_at)
        except ValueError as error:
            # It was checked when it was stored; a zone can vanish with another tz database.
            log.error("schedule_unusable", schedule_id=key, name=schedule.spec.name, problem=str(error))
            self._entries.pop(key, None)
            self._timer.clear(key)
            return
        coming = next(timetable.after(schedule.decided_until), None)
        begins_at = None if coming is None else begin_at(key, coming, schedule.spec.jitter)
        self._entries[key] = _Entry(schedule, timetable, begins_at)
        if begins_at is None:
            self._timer.clear(key)
        else:
            self._timer.set(key, begins_at)

    async def _close(self, occurrence: Occurrence) -> None:
        """Ends what a window began."""
        try:
            await self._rollouts.end(
                occurrence.rollout_id,
                reason_code=ReasonCode.WINDOW_CLOSED,
                reason="The window of its schedule has closed.",
                actor=f"schedule {occurrence.schedule_id}",
            )
        except NotFoundError:
            log.warning("closed_rollout_unknown", rollout_id=occurrence.rollout_id)
        await self._database.run(lambda connection: schedules.stopped(connection, occurrence))
        log.info("window_closed", schedule_id=occurrence.schedule_id, rollout_id=occurrence.rollout_id)

    async def _work(self, entry: _Entry) -> None:
        """Decides what is due of one schedule, step by step."""
        for _ in range(MAX_STEPS):
            facts = await self._database.run(lambda connection: self._facts(connection, entry))
            if facts is None:
                return
            step = policy.next_step(facts)
            if step is None:
                self._follow(facts.schedule)
                return
            try:
                await self._carry_out(facts, step)
            except _OutrunError:
                log.info("occurrence_decided_elsewhere", schedule_id=facts.schedule.schedule_id)
        self.wake()

    def _facts(self, connection: Connection, entry: _Entry) -> Facts | None:
        """What is so now; None: the schedule is gone, switched off or changed, and the next look sees to it."""
        schedule = schedules.get(connection, entry.schedule.schedule_id)
        if schedule is None or not schedule.enabled or schedule.version != entry.schedule.version:
            self.wake()
            return None
        now = self._clock.now()
        due, more = policy.due(schedule, entry.timetable, now)
        return Facts(
            schedule=schedule,
            due=due,
            more=more,
            queued=tuple(schedules.queued(connection, schedule.schedule_id)),
            running=schedules.running(connection, schedule.schedule_id),
            now=now,
        )

    async def _carry_out(self, facts: Facts, step: Step) -> None:
        schedule = facts.schedule
        match step:
            case Record():
                await self._record(schedule, step.occurrences)
            case Settle():
                await self._settle(step.occurrence)
            case Begin():
                await self._begin(schedule, step.timed, instead_of=step.cancel)
            case BeginQueued():
                await self._begin_queued(schedule, step.occurrence)
            case _ as unreachable:
                assert_never(unreachable)

    async def _begin(self, schedule: Schedule, timed: Timed, *, instead_of: Sequence[str]) -> None:
        prepared = await self._prepare(schedule)
        now = self._clock.now()
        if not isinstance(prepared, Prepared):
            await self._record(schedule, (policy.failed(schedule, timed, prepared, now),))
            return
        # Only what can begin takes the place of what goes on.
        for rollout_id in instead_of:
            await self._rollouts.end(
                rollout_id,
                reason_code=ReasonCode.REPLACED,
                reason="The next occurrence of its schedule has come.",
                actor=_actor(schedule),
            )

        def write(connection: Connection) -> Rollout:
            rollout = self._create(connection, schedule, prepared, timed.at, now)
            self._add(connection, schedule, (policy.started(schedule, timed, rollout.rollout_id, now),))
            return rollout

        await self._write(write, after=lambda rollout: self._begun(schedule, rollout))

    async def _begin_queued(self, schedule: Schedule, queued: Occurrence) -> None:
        prepared = await self._prepare(schedule)
        now = self._clock.now()
        if not isinstance(prepared, Prepared):
            await self._settle(policy.settled(queued, OccurrenceState.FAILED, prepared, now))
            return

        def write(connection: Connection) -> Rollout:
            rollout = self._create(connection, schedule, prepared, queued.intended_at, now)
            begun = policy.settled(queued, OccurrenceState.STARTED, "", now, rollout_id=rollout.rollout_id)
            if not schedules.settle(connection, begun):
                raise _OutrunError
            return rollout

        await self._write(write, after=lambda rollout: self._begun(schedule, rollout))

    async def _prepare(self, schedule: Schedule) -> Prepared | str:
        """What can be begun, or why nothing can.

        Raises:
            UnavailableError: it may be possible later.
        """
        spec = await self._database.run(lambda connection: secrets.whole(connection, schedule))
        try:
            return await self._rollouts.prepare(spec)
        except UnavailableError:
            raise
        except DroidfleetError as error:
            return f"{error.code}: {error.message}"

    def _create(
        self, connection: Connection, schedule: Schedule, prepared: Prepared, intended_at: datetime, now: datetime
    ) -> Rollout:
        return self._rollouts.create(
            connection,
            prepared,
            now=now,
            request_id="",  # the occurrence tells repetitions, and no request of somebody else is in its way
            actor=_actor(schedule),
            schedule_id=schedule.schedule_id,
            intended_at=intended_at,
        )

    def _begun(self, schedule: Schedule, rollout: Rollout) -> None:
        self._rollouts.adopt(rollout)
        self._decided(OccurrenceState.STARTED)
        log.info(
            "occurrence_began",
            schedule_id=schedule.schedule_id,
            name=schedule.spec.name,
            rollout_id=rollout.rollout_id,
            intended_at=str(rollout.intended_at),
        )

    async def _record(self, schedule: Schedule, new: tuple[Occurrence, ...]) -> None:
        """Puts occurrences on record that begin nothing now."""
        await self._write(
            lambda connection: self._add(connection, schedule, new), after=lambda _: self._told(schedule, new)
        )

    def _add(self, connection: Connection, schedule: Schedule, new: tuple[Occurrence, ...]) -> None:
        if not schedules.advance(connection, schedule, decided_until=new[-1].intended_at):
            raise _OutrunError
        schedules.add_occurrences(connection, new)
        events.add(connection, [_event(schedule, each) for each in new if each.state is not OccurrenceState.STARTED])

    async def _settle(self, occurrence: Occurrence) -> None:
        def write(connection: Connection) -> None:
            if not schedules.settle(connection, occurrence):
                raise _OutrunError

        await self._write(write, after=lambda _: self._decided(occurrence.state))

    def _told(self, schedule: Schedule, new: tuple[Occurrence, ...]) -> None:
        self._stored()
        for each in new:
            self._decided(each.state)
        level = log.info if new[-1].state is OccurrenceState.QUEUED else log.warning
        level(
            "occurrences_decided",
            schedule_id=schedule.schedule_id,
            name=schedule.spec.name,
            state=new[-1].state.value,
            reason=new[-1].reason,
            count=len(new),
        )

    async def _write(self, work: Callable[[Connection], T], *, after: Callable[[T], None]) -> None:
        try:
            await self._database.run(work, after=after)
        except IntegrityError as error:
            # Another controller decided it between this transaction's reading and writing.
            raise _OutrunError from error


def _event(schedule: Schedule, occurrence: Occurrence) -> FleetEvent:
    """What became of an occurrence that began nothing, for the fleet's log."""
    state = occurrence.state.value
    when = occurrence.intended_at.isoformat(timespec="seconds")
    return FleetEvent(
        occurred_at=occurrence.decided_at,
        recorded_at=occurrence.decided_at,
        kind=f"Occurrence{state.capitalize()}",
        summary=f"schedule {schedule.spec.name}, {when}: {state.lower()}: {occurrence.reason}",
    )


def _actor(schedule: Schedule) -> str:
    return f"schedule {schedule.spec.name}"


@contextmanager
def _apart(schedule_id: str) -> Iterator[None]:
    """What one schedule does to us must not hold up the others; the next look tries it again."""
    try:
        yield
    except UnavailableError as error:
        log.warning("schedule_delayed", schedule_id=schedule_id, code=error.code, message=error.message)
    except Exception:
        log.exception("schedule_undecidable", schedule_id=schedule_id)
