"""How far an exploration may go. Values only; each has its reason."""

from __future__ import annotations

from dataclasses import dataclass

TOKENS_A_MILLION = 1_000_000
"""Prices are for so many."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one exploration.

    ``max_turns`` to ``currency`` are shown to people before it begins, and hold for it even if the server is configured
    otherwise meanwhile; the others hold from now on.

    Raises:
        ValueError: ``max_money`` without ``prices``, which nobody could keep to.
    """

    max_turns: int = 60
    """Answers of the model. Drafts of ten steps took some 15."""

    max_tokens: int = 400_000
    """In and out, altogether. Twenty turns of the longest conversation."""

    max_money: float | None = None
    """In ``currency``. None: no bound but the tokens'."""

    prices: tuple[float, float] | None = None
    """Money per million tokens, input and output. None: not known."""

    currency: str = "USD"

    max_output_tokens: int = 8_000
    """Of one answer: room for a task of 40 steps with a thought before it."""

    min_output_tokens: int = 1_000
    """With less room than this a model is not asked: it could hand over no task, and the answer would be cut."""

    max_context_tokens: int = 40_000
    """Past this, older screens are told in one line. Models read more, and find less in it."""

    answer_s: float = 120.0
    """For one try to get an answer: a long task of a slow model takes a minute."""

    patience_s: float = 600.0
    """For an answer with all that is tried for it: a rate limit by the minute passes, one by the day does not."""

    max_tries: int = 8
    """Of one answer."""

    approval_s: float = 600.0
    """For a person to allow a call."""

    max_calls_a_turn: int = 8
    """Later ones were decided on a screen that is long gone."""

    max_bad_turns: int = 3
    """In a row without one right call: then the model does not know how to call a tool."""

    max_resubmissions: int = 3
    """Of a task that was found wrong."""

    max_repeats: int = 3
    """The same call on the same screen: at the one before it is told, at this it ends."""

    max_offline: int = 3
    """Calls in a row that the phone did not answer."""

    max_resumes: int = 20
    """Processes that went on with it: more, and it is what ends them."""

    def __post_init__(self) -> None:
        if self.max_money is not None and self.prices is None:
            raise ValueError("max_money needs prices")
