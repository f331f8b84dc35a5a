"""Rollouts and schedules as a controller might answer with them, for the command line's tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from droidfleet.v1 import rollout_pb2, schedule_pb2

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)

SUCCEEDED = rollout_pb2.MEMBER_OUTCOME_SUCCEEDED
FAILED = rollout_pb2.MEMBER_OUTCOME_FAILED
SKIPPED = rollout_pb2.MEMBER_OUTCOME_SKIPPED


def wave(
    number: int = 1,
    state: rollout_pb2.WaveState.ValueType = rollout_pb2.WAVE_STATE_OPEN,
    *,
    members: int = 10,
    outcomes: Mapping[rollout_pb2.MemberOutcome.ValueType, int] | None = None,
    running: int = 0,
    retrying: int = 0,
) -> rollout_pb2.Wave:
    """A wave; what is not said to be elsewhere waits."""
    counts = outcomes or {}
    return rollout_pb2.Wave(
        number=number,
        state=state,
        members=members,
        waiting=members - sum(counts.values()) - running - retrying,
        retrying=retrying,
        live=rollout_pb2.LiveCounts(running=running),
        outcomes=[rollout_pb2.OutcomeCount(outcome=outcome, count=count) for outcome, count in counts.items()],
        gate=f"advances at 9 of {members}; pauses at the 3rd failure",
        successes_needed=9,
        stops_at_failure=3,
    )


def rollout(
    state: rollout_pb2.RolloutState.ValueType = rollout_pb2.ROLLOUT_STATE_RUNNING,
    *waves: rollout_pb2.Wave,
    version: int = 3,
    reason_code: str = "",
    reason: str = "",
) -> rollout_pb2.Rollout:
    """`ro-1`, which runs shop-order."""
    message = rollout_pb2.Rollout(
        rollout_id="ro-1",
        name="spring",
        task_id="shop-order",
        revision=2,
        state=state,
        reason_code=reason_code,
        reason=reason,
        version=version,
        wave=1,
        waves=waves,
        spec_json='{"task": "shop-order"}',
        started_last_minute=4,
        ended_last_minute=2,
    )
    message.created_at.FromDatetime(NOON)
    message.updated_at.FromDatetime(NOON + timedelta(minutes=1))
    return message


def failure() -> rollout_pb2.FailureSignature:
    """A failure on three phones that is not retried any more."""
    return rollout_pb2.FailureSignature(
        code="TARGET_AMBIGUOUS",
        step_id="add-to-cart",
        screen="com.example.shop/.Cart",
        phones=3,
        breaker_open=True,
        execution_id="x-7",
    )


def plan(*, valid: bool = True) -> rollout_pb2.PlanRolloutResponse:
    """A plan for four phones in two waves."""
    return rollout_pb2.PlanRolloutResponse(
        valid=valid,
        plan=rollout_pb2.RolloutPlan(
            task_id="shop-order",
            revision=2,
            members=4,
            offline=["phone-04"],
            busy=1,
            backlog=2,
            bound_s=95.0,
            waves=[
                rollout_pb2.PlannedWave(
                    number=1, devices=["phone-03"], gate="advances at 1 of 1", successes_needed=1, stops_at_failure=0
                ),
                rollout_pb2.PlannedWave(
                    number=2,
                    devices=["phone-01", "phone-02", "phone-04"],
                    gate="advances at 3 of 3; pauses at the 1st failure",
                    successes_needed=3,
                    stops_at_failure=1,
                ),
            ],
        ),
    )


def planned(at: datetime, *, note: str = "") -> schedule_pb2.PlannedOccurrence:
    """An occurrence to come."""
    message = schedule_pb2.PlannedOccurrence(local=f"{at:%Y-%m-%d %H:%M:%S}+01:00 CET", note=note)
    message.at.FromDatetime(at)
    return message


def schedule(*, enabled: bool = True, version: int = 5) -> schedule_pb2.Schedule:
    """`nightly`, which begins shop-order."""
    message = schedule_pb2.Schedule(
        schedule_id="sc-1",
        name="nightly",
        spec_json='{"name": "nightly", "rollout": {"task": "shop-order"}, "when": {"cron": "30 2 * * *"}}',
        enabled=enabled,
        version=version,
        when="30 2 * * * in Europe/Berlin",
        last=occurrence(),
    )
    if enabled:
        message.next.CopyFrom(planned(NOON))
    return message


def occurrence(
    state: schedule_pb2.OccurrenceState.ValueType = schedule_pb2.OCCURRENCE_STATE_STARTED, *, reason: str = ""
) -> schedule_pb2.Occurrence:
    """What became of a time of `nightly`."""
    message = schedule_pb2.Occurrence(schedule_id="sc-1", state=state, reason=reason, rollout_id="ro-1")
    message.intended_at.FromDatetime(NOON - timedelta(days=1))
    message.decided_at.FromDatetime(NOON - timedelta(days=1))
    return message
