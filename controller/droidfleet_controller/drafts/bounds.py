"""Refusing what an exploration may not keep any more, and what comes after its end. Pure."""

from __future__ import annotations

from droidfleet_shared.errors import ExhaustedError, PreconditionError


def require_room(what: str, amount: int, most: int) -> None:
    """Refuses more than the bound.

    Raises:
        ExhaustedError: ``EXPLORATION_FULL``.
    """
    if amount > most:
        raise ExhaustedError(
            "EXPLORATION_FULL",
            f"the exploration would keep {amount:,} {what}; at most {most:,}.",
            hint="Describe a smaller task, or several.",
        )


def exploration_over(draft_id: str) -> PreconditionError:
    """Nothing is logged any more."""
    return PreconditionError("EXPLORATION_OVER", f"the exploration of draft {draft_id!r} has ended.")
