"""The parts of a report as plain documents: camelCase, times in ISO 8601 in UTC, what is not known null. Pure.

Names mean what they mean in the answers of the command line (docs/cli.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from droidfleet_controller.rollouts.report.material import ReportMember, ShownFailure
from droidfleet_controller.rollouts.rollout import Decision, MembershipChange
from droidfleet_controller.rollouts.views import RolloutView, WaveView

Record = dict[str, object]


def instant(at: datetime | None) -> str | None:
    """To the millisecond, ``2026-03-01T12:00:00.000Z``."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rollout_record(view: RolloutView) -> Record:
    """The rollout itself, with the document that it was started with. Secrets are not in it."""
    rollout = view.rollout
    confirmation = view.confirmation
    return {
        "rolloutId": rollout.rollout_id,
        "name": rollout.spec.name or None,
        "taskId": rollout.subject.task_id,
        "revision": rollout.subject.revision,
        "state": rollout.state.value,
        "reasonCode": rollout.reason_code.value or None,
        "reason": rollout.reason or None,
        "version": rollout.version,
        "wave": rollout.wave,
        "waits": [
            {"why": each.why.value, "sentence": each.sentence, "until": instant(each.until)} for each in view.waits
        ],
        "confirmation": None
        if confirmation is None
        else {
            "asked": confirmation.asked,
            "confirmed": confirmation.confirmed,
            "offline": confirmation.offline,
        },
        "createdAt": instant(rollout.created_at),
        "updatedAt": instant(rollout.updated_at),
        "endedAt": instant(rollout.ended_at),
        "scheduleId": rollout.schedule_id or None,
        "intendedAt": instant(rollout.intended_at),
        "actor": rollout.actor or None,
        "spec": rollout.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
    }


def wave_record(wave: WaveView) -> Record:
    """A wave with its gate as numbers."""
    return {
        "number": wave.number,
        "state": wave.state.value,
        "members": wave.members,
        "waiting": wave.waiting,
        "retrying": wave.retrying,
        "outcomes": {outcome.value: count for outcome, count in wave.outcomes.items() if count},
        "gate": wave.gate,
        "successesNeeded": wave.successes_needed,
        "stopsAtFailure": wave.stops_at_failure or None,
    }


def failure_record(failure: ShownFailure) -> Record:
    """A way of failing, with phones that stand for all."""
    signature = failure.signature
    return {
        "code": signature.code,
        "stepId": signature.step_id or None,
        "screen": signature.screen or None,
        "phones": failure.count,
        "breakerOpen": failure.breaker_open,
        "examples": [
            {
                "device": shown.phone.device,
                "executionId": shown.phone.execution_id or None,
                "reason": shown.phone.reason or None,
                "pictureSha256": shown.phone.picture_sha256 or None,
            }
            for shown in failure.phones
        ],
    }


def decision_record(decision: Decision) -> Record:
    """A decision with its numbers."""
    return {
        "at": instant(decision.at),
        "rule": decision.rule.value,
        "wave": decision.wave,
        "numbers": dict(decision.numbers),
        "sentence": decision.sentence,
    }


def membership_record(change: MembershipChange) -> Record:
    """A line of the membership log."""
    return {
        "at": instant(change.at),
        "device": change.device,
        "movement": change.movement.value,
        "wave": change.wave,
        "reason": change.reason or None,
    }


def member_record(found: ReportMember) -> Record:
    """A phone with what its last execution read."""
    member, state, result = found.view.member, found.view.execution_state, found.result
    signature = member.signature
    return {
        "device": member.device,
        "place": member.place,
        "wave": member.wave,
        "state": member.state.value,
        "outcome": member.outcome.value or None,
        "tries": member.tries,
        "executionId": member.execution_id or None,
        "executionState": None if state is None else state.value,
        "reason": member.reason or None,
        "signature": None
        if signature is None
        else {"code": signature.code, "stepId": signature.step_id or None, "screen": signature.screen or None},
        "startedAt": instant(member.started_at),
        "endedAt": instant(member.ended_at),
        "durationMs": None if result is None else result.duration_ms,
        "outputs": outputs(found),
    }


def outputs(found: ReportMember) -> Mapping[str, object]:
    """What the phone's last execution read."""
    return {} if found.result is None else found.result.outputs
