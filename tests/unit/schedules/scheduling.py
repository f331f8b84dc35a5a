"""Schedules over a real database, a rollout service that begins real rollouts and follows none, and a clock by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, delete, select, update

from droidfleet_controller.dispatch.execution import TaskText
from droidfleet_controller.rollouts import starting, values
from droidfleet_controller.rollouts.rollout import Rollout, Subject
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.starting import Prepared
from droidfleet_controller.rollouts.states import ReasonCode, RolloutState
from droidfleet_controller.schedules.schedule import Occurrence
from droidfleet_controller.schedules.service import Schedules
from droidfleet_controller.schedules.timer import Timer
from droidfleet_controller.schedules.views import ScheduleView
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_controller.store.schema import rollouts as rollout_table
from droidfleet_controller.store.schema import run_values
from droidfleet_shared.clock import Clock
from unit.schedules.documents import NOW, document

SECRET_INPUTS = frozenset({"pin"})


class WallClock(Clock):
    """Shows what a test sets; nobody sleeps by it."""

    def __init__(self, now: datetime = NOW) -> None:
        self.time = now

    def monotonic(self) -> float:
        return (self.time - NOW).total_seconds()

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here sleeps")

    def move(self, **by: float) -> None:
        """Moves the time on."""
        self.time += timedelta(**by)


class HandTimer(Timer):
    """Keeps what was set; a test wakes by hand."""

    def __init__(self) -> None:
        self.times: dict[str, datetime] = {}
        self.running = False
        self.wake: Callable[[str], None] = lambda _: None

    def start(self, wake: Callable[[str], None]) -> None:
        self.wake, self.running = wake, True

    def set(self, key: str, at: datetime) -> None:
        self.times[key] = at

    def clear(self, key: str) -> None:
        self.times.pop(key, None)

    def stop(self) -> None:
        self.running = False


class PlainRollouts:
    """Writes rollouts as the real service does, and follows none: they go on until a test, or a schedule, ends them.
    ``refuse``: why those of a task cannot begin."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = count(1)
        self.prepared: list[RolloutSpec] = []
        self.adopted: list[str] = []
        self.ended: list[tuple[str, ReasonCode]] = []
        self.refuse: dict[str, Exception] = {}

    async def prepare(self, spec: RolloutSpec) -> Prepared:
        self.prepared.append(spec)
        if spec.task in self.refuse:
            raise self.refuse[spec.task]
        shown, kept = values.split(spec, SECRET_INPUTS)
        text = TaskText(sha256="a" * 64, add_name=True, add_revision=False)
        subject = Subject(task_id=spec.task, revision=1, text=text, step_count=2, bound_s=10, repeatable=False)
        return Prepared(
            spec=shown,
            subject=subject,
            devices=spec.target.devices or (),
            wave_sizes=(len(spec.target.devices or ()),),
            kept=kept,
            digest="d",
        )

    def create(
        self,
        connection: Connection,
        prepared: Prepared,
        *,
        now: datetime,
        request_id: str,
        actor: str,
        schedule_id: str = "",
        intended_at: datetime | None = None,
    ) -> Rollout:
        return starting.create(
            connection,
            prepared,
            rollout_id=f"ro-{id(self):x}-{next(self._numbers)}",
            now=now,
            request_id=request_id,
            actor=actor,
            schedule_id=schedule_id,
            intended_at=intended_at,
        )

    def adopt(self, rollout: Rollout) -> None:
        self.adopted.append(rollout.rollout_id)

    async def end(self, rollout_id: str, *, reason_code: ReasonCode, reason: str, actor: str) -> None:
        self.ended.append((rollout_id, reason_code))
        await self.finish(rollout_id, RolloutState.CANCELLED)

    async def finish(self, rollout_id: str, state: RolloutState = RolloutState.SUCCEEDED) -> None:
        """Ends a rollout."""
        query = update(rollout_table).where(rollout_table.c.rollout_id == rollout_id)
        await self._database.run(lambda connection: connection.execute(query.values(state=state, ended_at=NOW)))

    async def forget_values(self) -> None:
        """Forgets the values of all rollouts, as they are when these have ended."""
        query = delete(run_values).where(run_values.c.held_by.like("ro-%"))
        await self._database.run(lambda connection: connection.execute(query))


@dataclass
class Scheduling:
    """The parts, and shorthands for what tests ask of them."""

    database: Database
    clock: WallClock
    timer: HandTimer
    rollouts: PlainRollouts
    schedules: Schedules
    noted: list[str] = field(default_factory=list)

    async def create(self, **fields: object) -> ScheduleView:
        """CreateSchedule."""
        return (await self.schedules.create(document(**fields), actor="test")).view

    async def look(self) -> None:
        """A round."""
        await self.schedules.look()

    async def became(self, name: str = "nightly") -> dict[str, str]:
        """What became of the occurrences, by day, hour and minute in UTC, the oldest first."""
        return {f"{each.intended_at:%d %H:%M}": each.state.value for each in await self.history(name)}

    async def history(self, name: str = "nightly") -> list[Occurrence]:
        """All occurrences, the oldest first."""
        return (await self.schedules.occurrences(name, before=None, limit=1_000))[::-1]

    async def stored_rollouts(self) -> list[tuple[str, datetime | None]]:
        """Schedule and intended instant of every rollout."""
        query = select(rollout_table.c.schedule_id, rollout_table.c.intended_at).order_by(rollout_table.c.number)
        rows = await self.database.run(lambda connection: connection.execute(query).all())
        return [(row.schedule_id, row.intended_at) for row in rows]


@asynccontextmanager
async def scheduling(file: Path, *, clock: WallClock | None = None, is_new: bool = True) -> AsyncIterator[Scheduling]:
    """The parts over a database file. Not ``is_new``: it is there, and not looked at whether it is up to date."""
    database = Database(sqlite_url(file))
    if is_new:
        migrate(database.engine)
    clock, timer, rollouts = clock or WallClock(), HandTimer(), PlainRollouts(database)
    noted: list[str] = []
    schedules = Schedules(
        database=database,
        clock=clock,
        rollouts=rollouts,
        timer=timer,
        stored=lambda: None,
        decided=lambda state: noted.append(state.value),
    )
    try:
        yield Scheduling(database, clock, timer, rollouts, schedules, noted)
    finally:
        await database.close()
