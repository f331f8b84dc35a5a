"""What a gate says of the counts of a wave. Exact: integers are compared by cross-multiplication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from droidfleet_controller.rollouts.amounts import HUNDRED_PERCENT, Amount, Count, Percent
from droidfleet_controller.rollouts.planner.tally import Tally
from droidfleet_controller.rollouts.rollout import ALL_CODES
from droidfleet_controller.rollouts.spec import Gate
from droidfleet_controller.rollouts.states import ReasonCode


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit of failures that was exceeded. ``code``: `ALL_CODES`, or the failure's."""

    code: str
    failures: int
    limit: str


def verdict(gate: Gate, tally: Tally) -> ReasonCode:
    """Why a complete wave does not pass; NONE: it passes."""
    sample = min(gate.min_sample, tally.members - tally.removed)
    if tally.results == 0 or tally.results < sample:
        return ReasonCode.SAMPLE_TOO_SMALL
    if tally.succeeded * HUNDRED_PERCENT < gate.min_success_percent.hundredths * tally.counted:
        return ReasonCode.BELOW_THRESHOLD
    return ReasonCode.NONE


def excess(gate: Gate, tally: Tally, acknowledged: Mapping[str, int]) -> Excess | None:
    """The limit of failures that is exceeded, by more than somebody has acknowledged; None: none is."""
    failed = tally.failed
    if (
        gate.max_failures is not None
        and failed > acknowledged.get(ALL_CODES, 0)
        and _exceeds(failed, gate.max_failures, tally.counted)
    ):
        return Excess(ALL_CODES, failed, str(gate.max_failures))
    for code, limit in gate.max_failures_by_code.items():
        if tally.failures[code] > max(limit, acknowledged.get(code, 0)):
            return Excess(code, tally.failures[code], str(limit))
    return None


def _exceeds(failures: int, limit: Amount, members: int) -> bool:
    match limit:
        case Count():
            return failures > limit.value
        case Percent():
            return failures * HUNDRED_PERCENT > limit.hundredths * members
        case _:
            assert_never(limit)
