"""What the drafts of a controller are made with. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from droidfleet_designer.loop.limits import Limits

MAX_EXPLORING = 4
"""Explorations at a time: each has a phone, and a model that is paid for."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The model as people are told of it. ``base_url``: of its server, without any secret; ``practice``: it works by
    rules, and is no language model."""

    name: str
    base_url: str
    sees: bool
    practice: bool


@dataclass(frozen=True, slots=True)
class DraftBounds:
    """How much may be explored, and how far. ``exploring``: at a time."""

    limits: Limits = field(default_factory=Limits)
    exploring: int = MAX_EXPLORING


def most_money(limits: Limits) -> float | None:
    """What one draft costs at most: its own bound, else all tokens at the dearer price; None: the price is unknown."""
    if limits.max_money is not None or limits.prices is None:
        return limits.max_money
    return limits.max_tokens / 1_000_000 * max(limits.prices)
