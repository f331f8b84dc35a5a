"""What programs read of rollouts and schedules: as `documents`, of the shapes that docs/cli.md promises. Pure."""

from __future__ import annotations

from droidfleet.v1 import execution_pb2, rollout_pb2, schedule_pb2
from droidfleet_controller.cli.documents import Document, issue_documents, object_of, time_of, word_of

TERMINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "ABORTED"})

HELD = frozenset({"PAUSED", "AWAITING_APPROVAL"})
"""Nothing starts until a person says so."""


def rollout_state(item: rollout_pb2.Rollout) -> str:
    """The state's bare word, ``AWAITING_APPROVAL``."""
    return word_of(rollout_pb2.RolloutState.Name, item.state, "ROLLOUT_STATE_")


def wave_state(wave: rollout_pb2.Wave) -> str:
    """The state's bare word, ``SOAKING``."""
    return word_of(rollout_pb2.WaveState.Name, wave.state, "WAVE_STATE_")


def member_state(member: rollout_pb2.RolloutMember) -> str:
    """The state's bare word, ``RETRYING``."""
    return word_of(rollout_pb2.MemberState.Name, member.state, "MEMBER_STATE_")


def outcome_of(value: rollout_pb2.MemberOutcome.ValueType) -> str:
    """The outcome's bare word, ``TIMED_OUT``; ``UNSPECIFIED`` for none."""
    return word_of(rollout_pb2.MemberOutcome.Name, value, "MEMBER_OUTCOME_")


def occurrence_state(item: schedule_pb2.Occurrence) -> str:
    """The state's bare word, ``OVERLAPPED``."""
    return word_of(schedule_pb2.OccurrenceState.Name, item.state, "OCCURRENCE_STATE_")


def outcomes_of(wave: rollout_pb2.Wave) -> dict[str, int]:
    """How many members ended how, by the bare word."""
    return {outcome_of(each.outcome): each.count for each in wave.outcomes if each.count}


def rollout_document(item: rollout_pb2.Rollout) -> Document:
    """A rollout."""
    return {
        "rolloutId": item.rollout_id,
        "name": item.name or None,
        "taskId": item.task_id,
        "revision": item.revision,
        "state": rollout_state(item),
        "reasonCode": item.reason_code or None,
        "reason": item.reason or None,
        "version": item.version,
        "wave": item.wave,
        "waves": [_wave(wave) for wave in item.waves],
        "waits": [{"why": each.why, "sentence": each.sentence, "until": time_of(each.until)} for each in item.waits],
        "confirmation": _confirmation(item.confirmation) if item.HasField("confirmation") else None,
        "failures": [_signature(each) for each in item.failures],
        "startedLastMinute": item.started_last_minute,
        "endedLastMinute": item.ended_last_minute,
        "createdAt": time_of(item.created_at),
        "updatedAt": time_of(item.updated_at),
        "endedAt": time_of(item.ended_at),
        "scheduleId": item.schedule_id or None,
        "spec": object_of(item.spec_json),
    }


def _wave(wave: rollout_pb2.Wave) -> Document:
    live = wave.live
    return {
        "number": wave.number,
        "state": wave_state(wave),
        "members": wave.members,
        "waiting": wave.waiting,
        "retrying": wave.retrying,
        "live": {
            "queued": live.queued,
            "assigned": live.assigned,
            "accepted": live.accepted,
            "running": live.running,
        },
        "outcomes": outcomes_of(wave),
        "gate": wave.gate,
        "successesNeeded": wave.successes_needed,
        "stopsAtFailure": wave.stops_at_failure or None,
    }


def _confirmation(item: rollout_pb2.Confirmation) -> Document:
    return {"asked": item.asked, "confirmed": item.confirmed, "offline": item.offline}


def _signature(item: rollout_pb2.FailureSignature) -> Document:
    return {
        "code": item.code,
        "stepId": item.step_id or None,
        "screen": item.screen or None,
        "phones": item.phones,
        "breakerOpen": item.breaker_open,
        "executionId": item.execution_id or None,
        "pictureSha256": item.picture_sha256 or None,
    }


def member_document(item: rollout_pb2.RolloutMember) -> Document:
    """A phone of a rollout."""
    execution = word_of(execution_pb2.ExecutionState.Name, item.execution_state, "EXECUTION_STATE_")
    return {
        "device": item.device,
        "place": item.place,
        "wave": item.wave,
        "state": member_state(item),
        "outcome": outcome_of(item.outcome) if item.outcome else None,
        "tries": item.tries,
        "executionId": item.execution_id or None,
        "executionState": execution if item.execution_state else None,
        "reason": item.reason or None,
        "startedAt": time_of(item.started_at),
        "endedAt": time_of(item.ended_at),
        "retryAt": time_of(item.retry_at),
    }


def decision_document(item: rollout_pb2.RolloutDecision) -> Document:
    """A decision with its numbers."""
    return {
        "at": time_of(item.at),
        "rule": item.rule,
        "wave": item.wave,
        "numbers": object_of(item.numbers_json),
        "sentence": item.sentence,
    }


def membership_document(item: rollout_pb2.RolloutMembershipChange) -> Document:
    """A line of the membership log."""
    return {
        "at": time_of(item.at),
        "device": item.device,
        "movement": item.movement,
        "wave": item.wave,
        "reason": item.reason or None,
    }


def plan_document(answer: rollout_pb2.PlanRolloutResponse) -> Document:
    """What a rollout would do, and what is wrong with it."""
    plan = answer.plan
    return {
        "valid": answer.valid,
        "errors": issue_documents(answer.errors),
        "warnings": issue_documents(answer.warnings),
        "plan": None
        if not answer.HasField("plan")
        else {
            "taskId": plan.task_id,
            "revision": plan.revision,
            "members": plan.members,
            "offline": list(plan.offline),
            "busy": plan.busy,
            "backlog": plan.backlog,
            "boundMs": round(plan.bound_s * 1000),
            "waves": [
                {
                    "number": wave.number,
                    "devices": list(wave.devices),
                    "gate": wave.gate,
                    "successesNeeded": wave.successes_needed,
                    "stopsAtFailure": wave.stops_at_failure or None,
                }
                for wave in plan.waves
            ],
        },
    }


def schedule_document(item: schedule_pb2.Schedule) -> Document:
    """A schedule."""
    return {
        "scheduleId": item.schedule_id,
        "name": item.name,
        "enabled": item.enabled,
        "version": item.version,
        "when": item.when,
        "next": planned_document(item.next) if item.HasField("next") else None,
        "last": occurrence_document(item.last) if item.HasField("last") else None,
        "createdAt": time_of(item.created_at),
        "updatedAt": time_of(item.updated_at),
        "spec": object_of(item.spec_json),
    }


def planned_document(item: schedule_pb2.PlannedOccurrence) -> Document:
    """An occurrence to come."""
    return {
        "at": time_of(item.at),
        "local": item.local,
        "stopAt": time_of(item.stop_at),
        "note": item.note or None,
    }


def occurrence_document(item: schedule_pb2.Occurrence) -> Document:
    """What became of an occurrence."""
    return {
        "scheduleId": item.schedule_id,
        "intendedAt": time_of(item.intended_at),
        "state": occurrence_state(item),
        "reason": item.reason or None,
        "rolloutId": item.rollout_id or None,
        "stopAt": time_of(item.stop_at),
        "decidedAt": time_of(item.decided_at),
    }


def preview_document(answer: schedule_pb2.PreviewScheduleResponse) -> Document:
    """The next occurrences, and what is wrong with the document."""
    return {
        "valid": answer.valid,
        "errors": issue_documents(answer.errors),
        "warnings": issue_documents(answer.warnings),
        "occurrences": [planned_document(item) for item in answer.occurrences],
    }
