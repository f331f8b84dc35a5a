"""Whether a failed try may be made again, and when."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.amounts import HUNDRED_PERCENT, MAX_DURATION, Percent
from droidfleet_controller.rollouts.spec import Retry
from droidfleet_shared.protocol.codes import StepCode

BUDGET_SHARE = Percent(1_000)
"""Retries of what was begun; more is a storm that repeats what fails anyway."""

BUDGET_FLOOR = 10
"""So many retries an hour are no storm, however little is begun."""

BUDGET_MINUTES = 60

RETRIED_STATES = frozenset({ExecutionState.FAILED, ExecutionState.TIMED_OUT, ExecutionState.LOST})
"""Not EXPIRED: its phone had its time; not REJECTED: the agent will say it again; not CANCELLED: somebody wanted it."""

NEVER_RETRIED = frozenset(
    {
        StepCode.TARGET_AMBIGUOUS,  # another look would show as many
        # What is wrong with the task, its values or this agent stays wrong.
        StepCode.INVALID_TASK,
        StepCode.VALUE_MISSING,
        StepCode.NOT_SUPPORTED,
        StepCode.AGENT_MISMATCH,
        StepCode.CANCELLED,
    }
)

_HASH_BITS = 32
_MICROSECOND = timedelta(microseconds=1)


class RetryBudget:
    """Shared by all rollouts: the retries of the last hour stay below a share of what was begun in it, or below
    `BUDGET_FLOOR`. Counted by whole minutes: the hour is this minute and the 59 before it.

    `decide` of a plan notes what it decides. ``history``: what began before, ascending: the instant, how many began
    then, and how many of those were retries.
    """

    def __init__(self, history: Iterable[tuple[datetime, int, int]] = (), *, share: Percent = BUDGET_SHARE) -> None:
        self._share = share
        self._minutes: deque[tuple[datetime, int, int]] = deque()
        self.begun = 0
        self.retries = 0
        for at, begun, retries in history:
            self.note(at, begun=begun, retries=retries)

    @property
    def limit(self) -> int:
        """The number of retries in the hour that has to stay above them."""
        return max(BUDGET_FLOOR, self._share.of_up(self.begun))

    def allows(self, now: datetime) -> bool:
        """Whether one more retry may be decided."""
        self._forget(now)
        return self.retries < self.limit

    def note(self, now: datetime, *, begun: int = 0, retries: int = 0) -> None:
        """Notes that so many began, or so many retries were decided. Instants ascend; an earlier one counts as the
        last one."""
        self._forget(now)
        minute = now.replace(second=0, microsecond=0)
        if self._minutes and self._minutes[-1][0] >= minute:
            minute, already, before = self._minutes.pop()
            self._minutes.append((minute, already + begun, before + retries))
        else:
            self._minutes.append((minute, begun, retries))
        self.begun += begun
        self.retries += retries

    def _forget(self, now: datetime) -> None:
        while self._minutes and self._minutes[0][0] + timedelta(minutes=BUDGET_MINUTES) <= now:
            _, begun, retries = self._minutes.popleft()
            self.begun -= begun
            self.retries -= retries


def never_retried(
    retry: Retry, *, state: ExecutionState, code: str, may_have_acted: bool, repeatable: bool
) -> str | None:
    """Why a failure of this kind is not tried again, whatever its number; None: it may be."""
    if state not in RETRIED_STATES or code in NEVER_RETRIED:
        return f"{code or state.value} is never tried again"
    if retry.only_codes and code not in retry.only_codes:
        return f"retry.onlyCodes does not list {code}"
    if not repeatable:
        if code == StepCode.OUTCOME_UNKNOWN or state is ExecutionState.LOST:
            return "nobody knows what it did, and the task does not say repeatable"
        if may_have_acted:
            return "it may have acted, and the task does not say repeatable"
    return None


def delay(retry: Retry, *, failed_try: int, rollout_id: str, device: str) -> timedelta:
    """How long after its failure the next try is due; ``failed_try`` counts from 1. At most `MAX_DURATION`, and up to
    ``jitter`` on top, by a hash of the rollout, the device and the try."""
    grown = retry.delay // _MICROSECOND * Fraction(str(retry.backoff)) ** (failed_try - 1)
    bounded = min(int(grown), MAX_DURATION // _MICROSECOND)
    digest = hashlib.sha256(f"{rollout_id}\n{device}\n{failed_try}".encode()).digest()
    share = int.from_bytes(digest[: _HASH_BITS // 8])
    jitter = bounded * retry.jitter.hundredths * share // (HUNDRED_PERCENT << _HASH_BITS)
    return timedelta(microseconds=bounded + jitter)
