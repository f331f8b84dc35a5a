"""Reads rollouts for people: the records with what is counted about them, as things are at this moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.rollout import DRY_RUN_WAVE, Rollout, Waiting
from droidfleet_controller.rollouts.spec import Gate
from droidfleet_controller.rollouts.states import (
    TERMINAL,
    UNCOUNTED,
    MemberState,
    Outcome,
    ReasonCode,
    RolloutState,
    WaveState,
)
from droidfleet_controller.rollouts.views import Confirmation, Failure, LiveCounts, RolloutView, WaveView
from droidfleet_controller.rollouts.waves import numbers
from droidfleet_controller.store import rollout_counts, rollouts
from droidfleet_controller.store.rollout_counts import MemberCount
from droidfleet_shared.errors import NotFoundError

MAX_FAILURES_SHOWN = 10

LAST_MINUTE = timedelta(seconds=60)

_PAUSED_AT_GATE = frozenset(
    {
        ReasonCode.BELOW_THRESHOLD,
        ReasonCode.SAMPLE_TOO_SMALL,
        ReasonCode.TOO_MANY_FAILURES,
        ReasonCode.DRY_RUN_FAILED,
    }
)


@dataclass(frozen=True, slots=True)
class _WaveCounts:
    """What is counted of one wave."""

    counts: Sequence[MemberCount]

    def total(self, *states: MemberState) -> int:
        return sum(each.count for each in self.counts if not states or each.state in states)

    def live(self, *states: ExecutionState) -> int:
        return sum(each.count for each in self.counts if each.execution_state in states)

    @property
    def outcomes(self) -> Counter[Outcome]:
        found: Counter[Outcome] = Counter()
        for each in self.counts:
            if each.state is MemberState.ENDED:
                found[each.outcome] += each.count
        return found


def view(
    connection: Connection, rollout_id: str, *, now: datetime, waits: Sequence[Waiting], offline: Container[str]
) -> RolloutView:
    """A rollout as it stands. ``waits``: what its planner says; ``offline``: phones that cannot be heard now.

    Raises:
        NotFoundError: ``ROLLOUT_NOT_FOUND``.
    """
    rollout = require(connection, rollout_id)
    since = now - LAST_MINUTE
    lately = rollout_counts.lately(connection, rollout_id, since)
    return RolloutView(
        rollout=rollout,
        waves=tuple(_waves(rollout, rollout_counts.of_members(connection, rollout_id))),
        waits=tuple(waits),
        confirmation=_confirmation(connection, rollout, offline),
        failures=tuple(_failures(connection, rollout)),
        started_last_minute=lately.started,
        ended_last_minute=lately.ended,
    )


def require(connection: Connection, rollout_id: str) -> Rollout:
    """A rollout.

    Raises:
        NotFoundError: ``ROLLOUT_NOT_FOUND``.
    """
    found = rollouts.get(connection, rollout_id)
    if found is None:
        raise NotFoundError(
            "ROLLOUT_NOT_FOUND",
            f"no rollout {rollout_id!r}.",
            hint="List rollouts with: droidfleet rollout list",
        )
    return found


def _waves(rollout: Rollout, counts: Iterable[MemberCount]) -> Iterable[WaveView]:
    by_wave: dict[int, list[MemberCount]] = {}
    for each in counts:
        by_wave.setdefault(each.wave, []).append(each)
    for number in sorted(by_wave):
        wave = _WaveCounts(by_wave[number])
        outcomes = wave.outcomes
        members = wave.total()
        counted = members - sum(outcomes[outcome] for outcome in UNCOUNTED)
        gate = rollout.spec.waves[number - 1].gate if number > DRY_RUN_WAVE else Gate()
        needs = numbers(gate, counted)
        is_dry_run = number == DRY_RUN_WAVE
        yield WaveView(
            number=number,
            state=_state(rollout, number, wave, passed=outcomes[Outcome.SUCCEEDED] >= needs.successes_needed),
            members=members,
            waiting=wave.total(MemberState.WAITING),
            retrying=wave.total(MemberState.RETRYING),
            live=LiveCounts(
                queued=wave.live(ExecutionState.QUEUED),
                assigned=wave.live(ExecutionState.ASSIGNED),
                accepted=wave.live(ExecutionState.ACCEPTED),
                running=wave.live(ExecutionState.RUNNING, ExecutionState.PAUSED),
            ),
            outcomes=outcomes,
            gate="must succeed before the first wave" if is_dry_run else needs.sentence,
            successes_needed=needs.successes_needed,
            stops_at_failure=0 if is_dry_run else needs.stops_at_failure,
        )


def _state(rollout: Rollout, number: int, wave: _WaveCounts, *, passed: bool) -> WaveState:
    complete = wave.total() == wave.total(MemberState.ENDED)
    settled = WaveState.PASSED if passed else WaveState.FAILED
    if number > rollout.wave:
        return WaveState.CLOSED
    if number < rollout.wave or rollout.state in TERMINAL:
        return settled
    if rollout.state is RolloutState.PAUSED and rollout.reason_code in _PAUSED_AT_GATE:
        return WaveState.FAILED
    if not complete:
        return WaveState.OPEN
    if rollout.state is RolloutState.RUNNING and rollout.memory.soak_until is not None:
        return WaveState.SOAKING
    return settled


def _confirmation(connection: Connection, rollout: Rollout, offline: Container[str]) -> Confirmation | None:
    if rollout.state not in rollouts.ENDING:
        return None
    found = rollout_counts.asked_to_end(connection, rollout.rollout_id)
    return Confirmation(
        asked=found.asked,
        confirmed=found.asked - len(found.unconfirmed),
        offline=sum(device in offline for device in found.unconfirmed),
    )


def _failures(connection: Connection, rollout: Rollout) -> Iterable[Failure]:
    memory = rollout.memory
    most = sorted(memory.signatures.items(), key=lambda item: (-item[1], str(item[0])))[:MAX_FAILURES_SHOWN]
    examples = rollout_counts.examples(connection, rollout.rollout_id, [signature for signature, _ in most])
    pictures = rollout_counts.pictures(connection, examples.values())
    for signature, phones in most:
        execution_id = examples.get(signature, "")
        yield Failure(
            signature=signature,
            phones=phones,
            breaker_open=signature in memory.open_breakers,
            execution_id=execution_id,
            picture_sha256=pictures.get(execution_id, ""),
        )
