"""What every change of a draft asks first. Each raises with what to do instead."""

from __future__ import annotations

from sqlalchemy import Connection

from droidfleet_controller.drafts.record import DraftState, StoredDraft, draft_not_found
from droidfleet_controller.store import drafts
from droidfleet_shared.errors import ConflictError, PreconditionError


def required(connection: Connection, draft_id: str) -> StoredDraft:
    """A draft that there is.

    Raises:
        NotFoundError: ``DRAFT_NOT_FOUND``.
    """
    draft = drafts.get(connection, draft_id)
    if draft is None:
        raise draft_not_found(draft_id)
    return draft


def require_reviewable(draft: StoredDraft) -> None:
    """Refuses a draft that is no person's to change (yet, or any more).

    Raises:
        PreconditionError: ``DRAFT_OVER``, ``DRAFT_EXPLORING``, ``DRAFT_EMPTY``.
    """
    if draft.state in (DraftState.ACCEPTED, DraftState.DISCARDED):
        raise over(draft)
    if draft.state is DraftState.EXPLORING:
        raise PreconditionError(
            "DRAFT_EXPLORING",
            f"draft {draft.draft_id!r} is still being explored.",
            hint="Wait for its end, or stop it.",
        )
    if not draft.text:
        raise PreconditionError(
            "DRAFT_EMPTY",
            f"the exploration of draft {draft.draft_id!r} ended without a task: {draft.code or draft.state.value}.",
            hint="Start another; say more exactly what the phone should do.",
        )


def require_not_begun(draft: StoredDraft) -> None:
    """Refuses to change a draft of which something may have been created already.

    Raises:
        PreconditionError: ``DRAFT_HALF_ACCEPTED``.
    """
    if draft.accepted is not None:
        raise PreconditionError(
            "DRAFT_HALF_ACCEPTED",
            f"draft {draft.draft_id!r} was being accepted, and its end is not known.",
            hint="Accept it again in the same way: what was created is found, and only the rest is created.",
        )


def require_version(draft: StoredDraft, version: int) -> None:
    """Refuses a change of what somebody else changed meanwhile.

    Raises:
        ConflictError: ``STALE_VERSION``.
    """
    if draft.version != version:
        raise ConflictError(
            "STALE_VERSION",
            f"draft {draft.draft_id!r} is in version {draft.version}, not {version} any more.",
            hint="Look at it again, and decide on what it is now.",
        )


def written(done: bool, draft_id: str) -> None:
    """Refuses a write that came after another one.

    Raises:
        ConflictError: ``STALE_VERSION``.
    """
    if not done:
        raise ConflictError("STALE_VERSION", f"draft {draft_id!r} changed just now.", hint="Look at it again.")


def over(draft: StoredDraft) -> PreconditionError:
    """It was accepted or discarded."""
    return PreconditionError(
        "DRAFT_OVER",
        f"draft {draft.draft_id!r} was {draft.state.value.lower()}.",
        hint="Start another one.",
    )
