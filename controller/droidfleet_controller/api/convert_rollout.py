"""Between records of rollouts and protobuf messages, both ways; the one place that knows both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from droidfleet.v1 import rollout_pb2
from droidfleet_controller.api.convert import execution_state, issues_to_pb, timestamp
from droidfleet_controller.rollouts.report.service import ReportForm
from droidfleet_controller.rollouts.rollout import Decision, MembershipChange, Waiting
from droidfleet_controller.rollouts.states import Control, MemberState, Outcome, RolloutState, WaveState
from droidfleet_controller.rollouts.views import (
    Failure,
    MemberView,
    PlannedRollout,
    PlannedWave,
    Preflight,
    RolloutView,
    StartedRollout,
    WaveView,
)

if TYPE_CHECKING:
    from droidfleet_controller.rollouts.spec import SpecModel

# Enums: the API's words are ours with a prefix.


def rollout_state(state: RolloutState) -> rollout_pb2.RolloutState.ValueType:
    """A state as the API spells it."""
    return rollout_pb2.RolloutState.Value(f"ROLLOUT_STATE_{state.value}")


def rollout_state_from(value: rollout_pb2.RolloutState.ValueType) -> RolloutState:
    """A state of the API.

    Raises:
        ValueError: unspecified, or of a newer API; so do the others.
    """
    return RolloutState(rollout_pb2.RolloutState.Name(value).removeprefix("ROLLOUT_STATE_"))


def wave_state(state: WaveState) -> rollout_pb2.WaveState.ValueType:
    """A state as the API spells it."""
    return rollout_pb2.WaveState.Value(f"WAVE_STATE_{state.value}")


def member_state(state: MemberState) -> rollout_pb2.MemberState.ValueType:
    """A state as the API spells it."""
    return rollout_pb2.MemberState.Value(f"MEMBER_STATE_{state.value}")


def member_state_from(value: rollout_pb2.MemberState.ValueType) -> MemberState:
    """A state of the API."""
    return MemberState(rollout_pb2.MemberState.Name(value).removeprefix("MEMBER_STATE_"))


def outcome(found: Outcome) -> rollout_pb2.MemberOutcome.ValueType:
    """An outcome as the API spells it."""
    word = "UNSPECIFIED" if found is Outcome.NONE else found.value
    return rollout_pb2.MemberOutcome.Value(f"MEMBER_OUTCOME_{word}")


def outcome_from(value: rollout_pb2.MemberOutcome.ValueType) -> Outcome:
    """An outcome of the API; unspecified is none of them."""
    return Outcome(rollout_pb2.MemberOutcome.Name(value).removeprefix("MEMBER_OUTCOME_"))


def control_from(value: rollout_pb2.RolloutControl.ValueType) -> Control:
    """What somebody wants done."""
    return Control(rollout_pb2.RolloutControl.Name(value).removeprefix("ROLLOUT_CONTROL_"))


def report_form_from(value: rollout_pb2.ReportFormat.ValueType) -> ReportForm:
    """The form of a report."""
    return ReportForm(rollout_pb2.ReportFormat.Name(value).removeprefix("REPORT_FORMAT_"))


# What was asked for.


def spec_json(spec: SpecModel) -> str:
    """A document as JSON text, with the fields that have a default and were left out."""
    return spec.model_dump_json(by_alias=True, exclude_none=True)


# Before the start.


def preflight_to_pb(found: Preflight) -> rollout_pb2.PlanRolloutResponse:
    """What a rollout would do."""
    return rollout_pb2.PlanRolloutResponse(
        valid=found.valid,
        errors=issues_to_pb(found.errors),
        warnings=issues_to_pb(found.warnings),
        plan=None if found.plan is None else plan_to_pb(found.plan),
    )


def plan_to_pb(plan: PlannedRollout) -> rollout_pb2.RolloutPlan:
    """A plan with its waves."""
    return rollout_pb2.RolloutPlan(
        task_id=plan.task_id,
        revision=plan.revision,
        waves=[_planned_wave(wave) for wave in plan.waves],
        members=plan.members,
        offline=plan.offline,
        busy=plan.busy,
        backlog=plan.backlog,
        bound_s=plan.bound_s,
    )


def _planned_wave(wave: PlannedWave) -> rollout_pb2.PlannedWave:
    return rollout_pb2.PlannedWave(
        number=wave.number,
        devices=wave.devices,
        gate=wave.gate,
        successes_needed=wave.successes_needed,
        stops_at_failure=wave.stops_at_failure,
    )


def started_to_pb(started: StartedRollout) -> rollout_pb2.StartRolloutResponse:
    """A rollout that began."""
    return rollout_pb2.StartRolloutResponse(
        rollout=rollout_to_pb(started.view), warnings=issues_to_pb(started.warnings)
    )


# While it goes on.


def rollout_to_pb(view: RolloutView) -> rollout_pb2.Rollout:
    """A rollout as it stands."""
    message = listed_to_pb(view)
    message.spec_json = spec_json(view.rollout.spec)
    message.waves.extend(wave_to_pb(wave) for wave in view.waves)
    message.waits.extend(_wait(wait) for wait in view.waits)
    message.failures.extend(_failure(failure) for failure in view.failures)
    if view.confirmation is not None:
        message.confirmation.asked = view.confirmation.asked
        message.confirmation.confirmed = view.confirmation.confirmed
        message.confirmation.offline = view.confirmation.offline
    return message


def listed_to_pb(view: RolloutView) -> rollout_pb2.Rollout:
    """A rollout as lists have it: without document, waves, waits and failures."""
    rollout = view.rollout
    return rollout_pb2.Rollout(
        rollout_id=rollout.rollout_id,
        name=rollout.spec.name,
        task_id=rollout.subject.task_id,
        revision=rollout.subject.revision,
        state=rollout_state(rollout.state),
        reason_code=rollout.reason_code.value,
        reason=rollout.reason,
        version=rollout.version,
        wave=rollout.wave,
        started_last_minute=view.started_last_minute,
        ended_last_minute=view.ended_last_minute,
        created_at=timestamp(rollout.created_at),
        updated_at=timestamp(rollout.updated_at),
        ended_at=None if rollout.ended_at is None else timestamp(rollout.ended_at),
        schedule_id=rollout.schedule_id,
    )


def wave_to_pb(wave: WaveView) -> rollout_pb2.Wave:
    """A wave as it stands."""
    live = wave.live
    return rollout_pb2.Wave(
        number=wave.number,
        state=wave_state(wave.state),
        members=wave.members,
        waiting=wave.waiting,
        retrying=wave.retrying,
        live=rollout_pb2.LiveCounts(
            queued=live.queued, assigned=live.assigned, accepted=live.accepted, running=live.running
        ),
        outcomes=[
            rollout_pb2.OutcomeCount(outcome=outcome(found), count=count)
            for found, count in wave.outcomes.items()
            if count
        ],
        gate=wave.gate,
        successes_needed=wave.successes_needed,
        stops_at_failure=wave.stops_at_failure,
    )


def _wait(wait: Waiting) -> rollout_pb2.RolloutWait:
    until = None if wait.until is None else timestamp(wait.until)
    return rollout_pb2.RolloutWait(why=wait.why.value, sentence=wait.sentence, until=until)


def _failure(failure: Failure) -> rollout_pb2.FailureSignature:
    signature = failure.signature
    return rollout_pb2.FailureSignature(
        code=signature.code,
        step_id=signature.step_id,
        screen=signature.screen,
        phones=failure.phones,
        breaker_open=failure.breaker_open,
        execution_id=failure.execution_id,
        picture_sha256=failure.picture_sha256,
    )


def member_to_pb(view: MemberView) -> rollout_pb2.RolloutMember:
    """A phone of a rollout."""
    member = view.member
    message = rollout_pb2.RolloutMember(
        device=member.device,
        place=member.place,
        wave=member.wave,
        state=member_state(member.state),
        outcome=outcome(member.outcome),
        tries=member.tries,
        execution_id=member.execution_id,
        reason=member.reason,
        started_at=None if member.started_at is None else timestamp(member.started_at),
        ended_at=None if member.ended_at is None else timestamp(member.ended_at),
        retry_at=None if member.retry_at is None else timestamp(member.retry_at),
    )
    if view.execution_state is not None:
        message.execution_state = execution_state(view.execution_state)
    return message


def decision_to_pb(decision: Decision) -> rollout_pb2.RolloutDecision:
    """A decision with its numbers."""
    return rollout_pb2.RolloutDecision(
        at=timestamp(decision.at),
        rule=decision.rule.value,
        wave=decision.wave,
        numbers_json=json.dumps(dict(decision.numbers), ensure_ascii=False),
        sentence=decision.sentence,
    )


def membership_to_pb(change: MembershipChange) -> rollout_pb2.RolloutMembershipChange:
    """A line of the membership log."""
    return rollout_pb2.RolloutMembershipChange(
        at=timestamp(change.at),
        device=change.device,
        movement=change.movement.value,
        wave=change.wave,
        reason=change.reason,
    )
