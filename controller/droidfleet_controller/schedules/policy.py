"""What becomes of occurrences whose time has come: misfires, overlap, windows. Pure: facts in, one step out.

The service carries the step out in one transaction and asks again, so that nothing is decided on facts that have
changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import assert_never

from droidfleet_controller.schedules.occurrences import Timed, Timetable
from droidfleet_controller.schedules.preview import begin_at
from droidfleet_controller.schedules.schedule import Occurrence, OccurrenceState, Schedule
from droidfleet_controller.schedules.spec import MAX_QUEUED, Misfire, Overlap

GRACE = timedelta(minutes=1)
"""An occurrence that is no later than this is on time: a restart of the controller takes less."""

MAX_LISTED = 200
"""Occurrences that are put on record one by one after a downtime, the newest; those before are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a step is decided on. ``due``: undecided occurrences that should have begun, the oldest first, `MAX_LISTED`
    at most; ``more``: there are older ones; ``queued``: those that wait, the oldest first; ``running``: the rollouts
    of its occurrences that go on."""

    schedule: Schedule
    due: tuple[Timed, ...]
    more: bool
    queued: tuple[Occurrence, ...]
    running: tuple[str, ...]
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Put these on record; none of them begins now."""

    occurrences: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Begin the rollout of an occurrence, after these were cancelled."""

    timed: Timed
    cancel: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQueued:
    """Begin the rollout of an occurrence that waited."""

    occurrence: Occurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """Put on record what became of one that waited."""

    occurrence: Occurrence


_MAY_RUN = frozenset({OccurrenceState.STARTED, OccurrenceState.QUEUED})

Step = Record | Begin | BeginQueued | Settle


def due(schedule: Schedule, timetable: Timetable, now: datetime) -> tuple[tuple[Timed, ...], bool]:
    """The undecided occurrences that should have begun: ``Facts.due`` and ``Facts.more``. They begin in their order:
    one whose jitter is over waits for the one before."""
    found = list(islice(timetable.between(schedule.decided_until, now), MAX_LISTED + 1))
    more = len(found) > MAX_LISTED
    if more:
        found, more = timetable.newest(schedule.decided_until, now, limit=MAX_LISTED)
    jitter = schedule.spec.jitter
    return tuple(takewhile(lambda each: begin_at(schedule.schedule_id, each, jitter) <= now, found)), more


def next_step(facts: Facts) -> Step | None:
    """What to do next; None: nothing."""
    if facts.queued:
        first = facts.queued[0]
        if first.stop_at is not None and first.stop_at <= facts.now:
            reason = "WINDOW_CLOSED: its window closed while it waited for the one before."
            return Settle(occurrence=settled(first, OccurrenceState.OVERLAPPED, reason, facts.now))
        if not facts.running:
            return BeginQueued(occurrence=first)
    if not facts.due:
        return None
    missed = _missed(facts)
    if missed:
        return Record(occurrences=missed)
    return _overlap(facts, facts.due[0])


def _missed(facts: Facts) -> tuple[Occurrence, ...]:
    """Those at the head of what is due that do not begin any more."""
    schedule, now = facts.schedule, facts.now
    wanted = _wanted(facts)
    missed: list[Occurrence] = []
    for each in takewhile(lambda each: each not in wanted, facts.due):
        if each.stop_at is not None and each.stop_at <= now:
            reason = "WINDOW_CLOSED: its window closed before a controller could begin it."
        else:
            reason = f"LATE: no controller began it in time, and misfire is {schedule.spec.misfire}."
        if facts.more and not missed:
            reason += " Those before it are not listed."
        missed.append(_occurrence(schedule, each, OccurrenceState.MISSED, reason, now))
    return tuple(missed)


def _wanted(facts: Facts) -> Sequence[Timed]:
    """Those of the due ones that should begin still."""
    spec, now = facts.schedule.spec, facts.now
    possible = [each for each in facts.due if each.stop_at is None or each.stop_at > now]
    on_time = [each for each in possible if begin_at(facts.schedule.schedule_id, each, spec.jitter) + GRACE >= now]
    late = [each for each in possible if each not in on_time]
    match spec.misfire:
        case Misfire.SKIP:
            return on_time
        case Misfire.LAST:
            return on_time or late[-1:]
        case Misfire.ALL:
            return [*late[-spec.catch_up_limit :], *on_time]
        case _ as unreachable:
            assert_never(unreachable)


def _overlap(facts: Facts, timed: Timed) -> Step:
    if not facts.running and not facts.queued:
        return Begin(timed=timed)
    schedule, now = facts.schedule, facts.now
    match schedule.spec.overlap:
        case Overlap.ALLOW:
            return Begin(timed=timed)
        case Overlap.CANCEL_RUNNING:
            return Begin(timed=timed, cancel=facts.running)
        case Overlap.SKIP:
            reason = f"OVERLAP: {facts.running[0] if facts.running else 'one before'} still goes on."
            state = OccurrenceState.OVERLAPPED
        case Overlap.QUEUE if len(facts.queued) < MAX_QUEUED:
            reason = f"OVERLAP: it waits for {facts.running[0] if facts.running else 'one before'}."
            state = OccurrenceState.QUEUED
        case Overlap.QUEUE:
            reason = f"QUEUE_FULL: {MAX_QUEUED} wait already."
            state = OccurrenceState.OVERLAPPED
        case _ as unreachable:
            assert_never(unreachable)
    return Record(occurrences=(_occurrence(schedule, timed, state, reason, now),))


def started(schedule: Schedule, timed: Timed, rollout_id: str, now: datetime) -> Occurrence:
    """The record of an occurrence that begins."""
    return _occurrence(schedule, timed, OccurrenceState.STARTED, "", now, rollout_id=rollout_id)


def failed(schedule: Schedule, timed: Timed, reason: str, now: datetime) -> Occurrence:
    """The record of an occurrence whose rollout could not be started."""
    return _occurrence(schedule, timed, OccurrenceState.FAILED, reason, now)


def settled(
    queued: Occurrence, state: OccurrenceState, reason: str, now: datetime, *, rollout_id: str = ""
) -> Occurrence:
    """The record of an occurrence that waited."""
    stop_at = queued.stop_at if state in _MAY_RUN else None
    return replace(queued, state=state, reason=reason, rollout_id=rollout_id, stop_at=stop_at, decided_at=now)


def _occurrence(
    schedule: Schedule, timed: Timed, state: OccurrenceState, reason: str, now: datetime, *, rollout_id: str = ""
) -> Occurrence:
    return Occurrence(
        schedule_id=schedule.schedule_id,
        intended_at=timed.at,
        state=state,
        reason=reason,
        rollout_id=rollout_id,
        stop_at=timed.stop_at if state in _MAY_RUN else None,
        decided_at=now,
    )
