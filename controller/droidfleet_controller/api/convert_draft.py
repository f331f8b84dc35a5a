"""Drafts, their logs and trials as protobuf messages; the one place that knows both."""

from __future__ import annotations

from droidfleet.v1 import draft_pb2
from droidfleet_controller.api.convert import issues_to_pb, result_to_pb, timestamp
from droidfleet_controller.drafts.accepting import Use
from droidfleet_controller.drafts.log import Heard
from droidfleet_controller.drafts.record import DraftState, StoredDraft, StoredEntry, Trial
from droidfleet_controller.drafts.settings import DraftBounds, ModelFacts, most_money
from droidfleet_shared.errors import InvalidInputError

_STATES = {state: draft_pb2.DraftState.Value(f"DRAFT_STATE_{state.value}") for state in DraftState}
_FROM_PB = {value: state for state, value in _STATES.items()}
_USES = {
    draft_pb2.DRAFT_USE_UNSPECIFIED: Use.TASK,
    draft_pb2.DRAFT_USE_TASK: Use.TASK,
    draft_pb2.DRAFT_USE_ROLLOUT: Use.ROLLOUT,
    draft_pb2.DRAFT_USE_SCHEDULE: Use.SCHEDULE,
}


def draft_to_pb(draft: StoredDraft) -> draft_pb2.Draft:
    """A draft with everything but its log."""
    accepted = draft.accepted if draft.state is DraftState.ACCEPTED else None
    return draft_pb2.Draft(
        draft_id=draft.draft_id,
        state=_STATES[draft.state],
        version=draft.version,
        brief_json=draft.brief.model_dump_json(by_alias=True, exclude_none=True),
        draft_json=draft.text,
        issues=issues_to_pb(draft.issues),
        code=draft.code,
        message=draft.message,
        model=draft.model,
        spent_tokens=draft.spent_tokens,
        max_tokens=draft.max_tokens,
        spent_money=draft.spent_money,
        currency=draft.currency,
        last_sequence=draft.last_sequence,
        created_at=timestamp(draft.created_at),
        updated_at=timestamp(draft.updated_at),
        created_by=draft.created_by,
        accepted=draft_pb2.AcceptedDraft(
            task_id=accepted.task_id,
            revision=accepted.revision,
            schedule=accepted.schedule,
            rollout_id=accepted.rollout_id,
        )
        if accepted is not None
        else None,
        pending_approval_id=draft.pending_approval_id,
        trials=[trial_to_pb(trial) for trial in draft.trials],
    )


def trial_to_pb(trial: Trial) -> draft_pb2.DraftTrial:
    """A trial."""
    return draft_pb2.DraftTrial(
        at=timestamp(trial.at),
        version=trial.version,
        step_id=trial.step_id,
        withheld=trial.withheld,
        result=result_to_pb(trial.result),
        execution_id=trial.execution_id,
    )


def followed_to_pb(item: StoredEntry | Heard) -> draft_pb2.FollowDraftResponse:
    """What a follower is sent."""
    if isinstance(item, Heard):
        return draft_pb2.FollowDraftResponse(delta=item.text)
    return draft_pb2.FollowDraftResponse(
        entry=draft_pb2.DraftLogEntry(
            sequence=item.sequence, at=timestamp(item.at), kind=item.kind, entry_json=item.body
        )
    )


def model_to_pb(model: ModelFacts | None, bounds: DraftBounds) -> draft_pb2.GetModelResponse:
    """The model, and what a draft may cost."""
    limits = bounds.limits
    return draft_pb2.GetModelResponse(
        configured=model is not None,
        model=model.name if model is not None else "",
        base_url=model.base_url if model is not None else "",
        vision=model is not None and model.sees,
        practice=model is not None and model.practice,
        max_tokens=limits.max_tokens,
        max_turns=limits.max_turns,
        max_money=most_money(limits),
        currency=limits.currency,
    )


def state_of(value: draft_pb2.DraftState.ValueType) -> DraftState:
    """A state that a caller names.

    Raises:
        InvalidInputError: ``BAD_STATE``.
    """
    if value not in _FROM_PB:
        raise InvalidInputError("BAD_STATE", f"states: {value} is no state of a draft.")
    return _FROM_PB[value]


def use_of(value: draft_pb2.DraftUse.ValueType) -> Use:
    """What a caller wants a draft for.

    Raises:
        InvalidInputError: ``BAD_USE``.
    """
    if value not in _USES:
        raise InvalidInputError("BAD_USE", f"use: {value} is nothing that a draft is accepted for.")
    return _USES[value]
