"""`Schedules`: the use cases around schedules. What begins rollouts at their times is `runner`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from droidfleet_controller.ids import new_id as random_id
from droidfleet_controller.rollouts.documents import in_order
from droidfleet_controller.rollouts.issues import SpecIssue, require_none
from droidfleet_controller.rollouts.rollout import Rollout
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.starting import Prepared
from droidfleet_controller.rollouts.values import Kept
from droidfleet_controller.schedules import secrets
from droidfleet_controller.schedules.check import INVALID_SCHEDULE, CheckedSchedule, check
from droidfleet_controller.schedules.door import RolloutDoor
from droidfleet_controller.schedules.occurrences import Timetable
from droidfleet_controller.schedules.preview import PREVIEWED, planned, when_text
from droidfleet_controller.schedules.runner import Runner
from droidfleet_controller.schedules.schedule import Occurrence, OccurrenceState, Schedule
from droidfleet_controller.schedules.spec import ScheduleSpec
from droidfleet_controller.schedules.timer import Timer
from droidfleet_controller.schedules.views import SavedSchedule, SchedulePreview, ScheduleView
from droidfleet_controller.store import events, schedules
from droidfleet_controller.store import rollouts as stored_rollouts
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine, FleetEvent
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, ExhaustedError, InvalidInputError, NotFoundError
from droidfleet_shared.protocol.suggestions import nearest

T = TypeVar("T")

MAX_SCHEDULES = 1_000
"""Schedules altogether: the times of all are in memory."""

MAX_PREVIEWED = 1_000
MAX_REQUEST_ID = 160
"""Characters; with the schedule's id they make the rollout's request id."""

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Between them previews are made: beyond lie the ends of the calendar."""

SWITCHED_OFF = "SWITCHED_OFF: its schedule was switched off while it waited."
DELETED = "DELETED: its schedule was deleted while it waited."


class Schedules:
    """The use cases. ``stored`` is called after events were written; ``decided`` is told of each occurrence."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        rollouts: RolloutDoor,
        timer: Timer,
        stored: Callable[[], None],
        decided: Callable[[OccurrenceState], None] = lambda _: None,
        new_id: Callable[[str], str] = random_id,
    ) -> None:
        self._database = database
        self._clock = clock
        self._rollouts = rollouts
        self._stored = stored
        self._new_id = new_id
        self._runner = Runner(
            database=database, clock=clock, rollouts=rollouts, timer=timer, stored=stored, decided=decided
        )

    async def run(self) -> None:
        """Begins rollouts at their times, until cancelled."""
        await self._runner.run()

    async def look(self) -> None:
        """One round of that: what is due now is decided and begun.

        Raises:
            UnavailableError: the database failed; nothing is lost, the next round does it.
        """
        await self._runner.look()

    # Reading.

    async def preview(
        self, *, spec_json: str = "", schedule: str = "", count: int = 0, after: datetime | None = None
    ) -> SchedulePreview:
        """What is to come of a document or of a stored schedule, and everything that is wrong. Stores nothing, and
        never raises for a bad document. ``count`` 0: `PREVIEWED`; ``after`` None: now.

        Raises:
            InvalidInputError: ``BAD_COUNT``; ``BAD_PREVIEW``: neither or both are named.
            NotFoundError: ``SCHEDULE_NOT_FOUND``.
        """
        if not 0 <= count <= MAX_PREVIEWED:
            raise InvalidInputError("BAD_COUNT", f"count: 1 to {MAX_PREVIEWED}, or 0 for {PREVIEWED}, not {count}.")
        if bool(spec_json) == bool(schedule):
            raise InvalidInputError("BAD_PREVIEW", "expected either a document or the name of a stored schedule.")
        now = self._clock.now()
        begin = min(max(after or now, EARLIEST), LATEST)
        if schedule:
            stored = await self._named(schedule)
            return _preview(stored.spec, stored.schedule_id, anchor=stored.created_at, after=begin, count=count)
        checked = check(spec_json, now=now)
        if checked.spec is None:
            return SchedulePreview(errors=checked.errors, warnings=checked.warnings)
        errors, warnings, _ = await self._prepare(checked, checked.spec.rollout)
        coming = _preview(checked.spec, "", anchor=now, after=begin, count=count)
        return replace(coming, errors=errors, warnings=warnings)

    async def get(self, schedule: str) -> ScheduleView:
        """A schedule by name or id.

        Raises:
            NotFoundError: ``SCHEDULE_NOT_FOUND``, with the nearest name.
        """
        return await self._database.run(lambda connection: _view(connection, _named(connection, schedule)))

    async def page(self, *, after: str, limit: int) -> list[ScheduleView]:
        """Schedules by name after ``after``."""

        def read(connection: Connection) -> list[tuple[Schedule, Occurrence | None]]:
            found = schedules.page(connection, after=after, limit=limit)
            return [(each, _last(connection, each)) for each in found]

        rows = await self._database.run(read)
        # A thousand next occurrences take a second: not in the way of the database, nor of the event loop.
        return await asyncio.to_thread(lambda: [_shown(*row) for row in rows])

    async def occurrences(self, schedule: str, *, before: datetime | None, limit: int) -> list[Occurrence]:
        """What became of a schedule's occurrences before an instant, newest first; of a deleted one by its id.

        Raises:
            NotFoundError: ``SCHEDULE_NOT_FOUND``.
        """

        def read(connection: Connection) -> list[Occurrence]:
            stored = schedules.named(connection, schedule)
            key = schedule if stored is None else stored.schedule_id
            found = schedules.history(connection, key, before=before, limit=limit)
            if stored is None and not found:
                _named(connection, schedule)
            return found

        return await self._database.run(read)

    # Changes.

    async def create(self, spec_json: str, *, actor: str) -> SavedSchedule:
        """Stores a schedule.

        Raises:
            InvalidInputError: ``INVALID_SCHEDULE`` with all issues; nothing is left behind.
            ConflictError: ``SCHEDULE_EXISTS``.
            ExhaustedError: ``TOO_MANY_SCHEDULES``.
        """
        now = self._clock.now()
        schedule_id = self._new_id("s")
        asked = await self._asked(check(spec_json, now=now), before=None)

        def write(connection: Connection) -> ScheduleView:
            if len(schedules.names(connection)) >= MAX_SCHEDULES:
                raise ExhaustedError(
                    "TOO_MANY_SCHEDULES", f"there are {MAX_SCHEDULES} schedules already.", hint="Delete some."
                )
            schedule = Schedule(
                schedule_id=schedule_id,
                spec=asked.spec,
                enabled=asked.spec.enabled,
                version=1,
                decided_until=now,
                created_at=now,
                updated_at=now,
            )
            _refuse_taken(connection, asked.spec.name, schedule_id)
            schedules.add(connection, schedule)
            secrets.keep(connection, schedule_id, asked.kept)
            _note(connection, schedule, what="created", command="CreateSchedule", actor=actor, now=now)
            return _view(connection, schedule)

        view = await self._change(write)
        return SavedSchedule(view=view, warnings=asked.warnings)

    async def update(self, schedule: str, *, version: int, spec_json: str, actor: str) -> SavedSchedule:
        """Replaces the document; it counts from now on. `[secret]` in it stands for the secret that is kept.

        Raises:
            NotFoundError: ``SCHEDULE_NOT_FOUND``.
            InvalidInputError: ``INVALID_SCHEDULE`` with all issues; nothing is changed.
            ConflictError: ``STALE_VERSION``; ``SCHEDULE_EXISTS``.
        """
        now = self._clock.now()
        before = await self._named(schedule)
        _require_version(before, version)
        asked = await self._asked(check(spec_json, now=now, anchor=before.created_at), before=before)

        def write(connection: Connection) -> ScheduleView:
            after = replace(
                before,
                spec=asked.spec,
                enabled=asked.spec.enabled,
                version=version + 1,
                decided_until=max(now, before.decided_until),
                updated_at=now,
            )
            _refuse_taken(connection, asked.spec.name, before.schedule_id)
            _require_written(connection, before, schedules.replace(connection, after, version=version))
            secrets.keep(connection, before.schedule_id, asked.kept)
            if not after.enabled:
                schedules.drop_queued(connection, before.schedule_id, reason=SWITCHED_OFF, now=now)
            _note(connection, after, what="changed", command="UpdateSchedule", actor=actor, now=now)
            return _view(connection, after)

        view = await self._change(write)
        return SavedSchedule(view=view, warnings=asked.warnings)

    async def set_enabled(self, schedule: str, *, version: int, enabled: bool, actor: str) -> ScheduleView:
        """Switches a schedule on or off. What it began goes on; what waits, or passes meanwhile, never begins.

        Raises:
            NotFoundError: ``SCHEDULE_NOT_FOUND``.
            ConflictError: ``STALE_VERSION``.
        """
        now = self._clock.now()

        def write(connection: Connection) -> ScheduleView:
            before = _named(connection, schedule)
            _require_version(before, version)
            after = replace(
                before,
                spec=before.spec.model_copy(update={"enabled": enabled}),
                enabled=enabled,
                version=version + 1,
                decided_until=before.decided_until if before.enabled else max(now, before.decided_until),
                updated_at=now,
            )
            _require_written(connection, before, schedules.replace(connection, after, version=version))
            if not enabled:
                schedules.drop_queued(connection, before.schedule_id, reason=SWITCHED_OFF, now=now)
            _note(
                connection,
                after,
                what="switched on" if enabled else "switched off",
                command="SetScheduleEnabled",
                actor=actor,
                now=now,
            )
            return _view(connection, after)

        return await self._change(write)

    async def delete(self, schedule: str, *, version: int, actor: str) -> None:
        """Removes a schedule. What it began goes on, and its occurrences stay on record.

        Raises:
            NotFoundError: ``SCHEDULE_NOT_FOUND``.
            ConflictError: ``STALE_VERSION``.
        """
        now = self._clock.now()

        def write(connection: Connection) -> None:
            before = _named(connection, schedule)
            _require_version(before, version)
            _require_written(connection, before, schedules.remove(connection, before.schedule_id, version=version))
            schedules.drop_queued(connection, before.schedule_id, reason=DELETED, now=now)
            secrets.forget(connection, before.schedule_id)
            _note(connection, before, what="deleted", command="DeleteSchedule", actor=actor, now=now)

        await self._change(write)

    async def run_now(self, schedule: str, *, request_id: str, actor: str) -> str:
        """Begins its rollout now, beside its occurrences, also when it is switched off. Returns the rollout's id; the
        same request gets the same.

        Raises:
            NotFoundError: ``SCHEDULE_NOT_FOUND``.
            InvalidInputError: ``INVALID_ROLLOUT``: its rollout cannot begin as things are; ``BAD_REQUEST_ID``.
        """
        if len(request_id) > MAX_REQUEST_ID:
            raise InvalidInputError("BAD_REQUEST_ID", f"at most {MAX_REQUEST_ID} characters.")
        stored = await self._named(schedule)
        key = f"{stored.schedule_id}/{request_id or self._new_id('q')}"

        def read(connection: Connection) -> tuple[tuple[Rollout, str] | None, RolloutSpec]:
            return stored_rollouts.by_request(connection, key), secrets.whole(connection, stored)

        before, spec = await self._database.run(read)
        if before is not None:  # also where it could not begin any more
            return before[0].rollout_id
        prepared = await self._rollouts.prepare(spec)
        now = self._clock.now()

        def write(connection: Connection) -> tuple[Rollout, bool]:
            found = stored_rollouts.by_request(connection, key)
            if found is not None:
                return found[0], False
            subject = f"schedule {stored.spec.name}"
            events.add_audit(connection, AuditLine(at=now, actor=actor, command="RunSchedule", subject=subject))
            rollout = self._rollouts.create(
                connection, prepared, now=now, request_id=key, actor=actor, schedule_id=stored.schedule_id
            )
            return rollout, True

        def follow(written: tuple[Rollout, bool]) -> None:
            if written[1]:
                self._rollouts.adopt(written[0])

        rollout, _ = await self._database.run(write, after=follow)
        return rollout.rollout_id

    # Helpers.

    async def _named(self, schedule: str) -> Schedule:
        return await self._database.run(lambda connection: _named(connection, schedule))

    async def _prepare(
        self, checked: CheckedSchedule, rollout: RolloutSpec
    ) -> tuple[tuple[SpecIssue, ...], tuple[SpecIssue, ...], Prepared | None]:
        """Errors and warnings of the whole document, and its rollout as it could begin now."""
        try:
            prepared = await self._rollouts.prepare(rollout)
        except InvalidInputError as error:
            issues = [each.under("/rollout") for each in error.issues if isinstance(each, SpecIssue)]
            if not issues:
                raise
            return tuple(in_order([*checked.errors, *issues], checked.document)), checked.warnings, None
        lacking = [each.under("/rollout") for each in secrets.lacking(prepared.kept, rollout)]
        warnings = (*checked.warnings, *(each.under("/rollout") for each in prepared.warnings))
        return tuple(in_order([*checked.errors, *lacking], checked.document)), warnings, prepared

    async def _asked(self, checked: CheckedSchedule, *, before: Schedule | None) -> _Asked:
        """What is to be stored.

        Raises:
            InvalidInputError: ``INVALID_SCHEDULE`` with all issues.
        """
        require_none(checked.errors, code=INVALID_SCHEDULE, what="the schedule")
        assert checked.spec is not None  # there are no errors
        rollout = checked.spec.rollout
        if before is not None:
            kept = await self._database.run(lambda connection: secrets.load(connection, before.schedule_id))
            rollout = secrets.restored(rollout, before.spec.rollout, kept)
        errors, warnings, prepared = await self._prepare(checked, rollout)
        require_none(errors, code=INVALID_SCHEDULE, what="the schedule")
        assert prepared is not None  # there are no errors
        return _Asked(checked.spec.model_copy(update={"rollout": prepared.spec}), prepared.kept, warnings)

    async def _change(self, write: Callable[[Connection], T]) -> T:
        def follow(_: T) -> None:
            self._stored()
            self._runner.wake()

        try:
            return await self._database.run(write, after=follow)
        except IntegrityError as error:
            raise ConflictError(
                "SCHEDULE_EXISTS", "there is a schedule of this name already.", hint="Choose another name."
            ) from error


@dataclass(frozen=True, slots=True)
class _Asked:
    """A document to be stored: without its secrets, and these."""

    spec: ScheduleSpec
    kept: Kept
    warnings: tuple[SpecIssue, ...]


def _preview(spec: ScheduleSpec, schedule_id: str, *, anchor: datetime, after: datetime, count: int) -> SchedulePreview:
    coming = planned(Timetable(spec, anchor=anchor), schedule_id, after=after, count=count or PREVIEWED)
    return SchedulePreview(occurrences=tuple(coming), time_zone=spec.time_zone)


def _view(connection: Connection, schedule: Schedule) -> ScheduleView:
    return _shown(schedule, _last(connection, schedule))


def _last(connection: Connection, schedule: Schedule) -> Occurrence | None:
    return next(iter(schedules.history(connection, schedule.schedule_id, before=None, limit=1)), None)


def _shown(schedule: Schedule, last: Occurrence | None) -> ScheduleView:
    coming = None
    if schedule.enabled:
        with suppress(ValueError):  # a zone that another tz database lacks; the runner says so
            timetable = Timetable(schedule.spec, anchor=schedule.created_at)
            found = planned(timetable, schedule.schedule_id, after=schedule.decided_until, count=1)
            coming = found[0] if found else None
    return ScheduleView(schedule=schedule, when=when_text(schedule.spec), next=coming, last=last)


def _named(connection: Connection, name: str) -> Schedule:
    found = schedules.named(connection, name)
    if found is None:
        near = nearest(name, schedules.names(connection))
        hint = f"Did you mean {near!r}?" if near else "List the schedules with: droidfleet schedule list"
        raise NotFoundError("SCHEDULE_NOT_FOUND", f"unknown schedule: {name!r}.", hint=hint)
    return found


def _require_version(schedule: Schedule, version: int) -> None:
    if schedule.version != version:
        raise ConflictError(
            "STALE_VERSION",
            f"schedule {schedule.spec.name!r} is in version {schedule.version}, not {version}:"
            " somebody changed it since it was read.",
            hint="Look at it again, and repeat the command when it still makes sense.",
        )


def _require_written(connection: Connection, before: Schedule, written: bool) -> None:
    if not written:
        now = schedules.get(connection, before.schedule_id)
        _require_version(now or replace(before, version=0), before.version)


def _refuse_taken(connection: Connection, name: str, schedule_id: str) -> None:
    taken = schedules.named(connection, name)
    if taken is not None and taken.schedule_id != schedule_id:
        raise ConflictError(
            "SCHEDULE_EXISTS",
            f"there is a schedule {name!r} already.",
            hint="Choose another name, or change it with: droidfleet schedule update",
        )


def _note(connection: Connection, schedule: Schedule, *, what: str, command: str, actor: str, now: datetime) -> None:
    subject = f"schedule {schedule.spec.name}"
    event = FleetEvent(occurred_at=now, recorded_at=now, kind="ScheduleChanged", summary=f"{subject} {what}")
    events.add(connection, [event])
    details = f"version {schedule.version}"
    events.add_audit(connection, AuditLine(at=now, actor=actor, command=command, subject=subject, details=details))
