"""The words for where a rollout, a wave and a member stand."""

from __future__ import annotations

from enum import StrEnum


class RolloutState(StrEnum):
    """Where a rollout stands. ``reason_code`` says why, where there are several whys."""

    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    """Nothing new starts until somebody promotes it: the first wave, or the next one (`WaveState.PASSED`)."""
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """Nothing new starts. By a person (PAUSED_BY_OPERATOR) or a rule (BELOW_THRESHOLD, TOO_MANY_FAILURES, ...)."""
    CANCELLING = "CANCELLING"
    """Nothing new starts, what was started is being ended."""
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    """Everything ran, and the last wave stayed below its gate."""
    CANCELLED = "CANCELLED"
    ABORTED = "ABORTED"
    """Ended at once; what still ran was fenced, and its results are never counted."""


TERMINAL = frozenset({RolloutState.SUCCEEDED, RolloutState.FAILED, RolloutState.CANCELLED, RolloutState.ABORTED})


class ReasonCode(StrEnum):
    """Why a rollout is in its state."""

    NONE = ""
    APPROVAL_NEEDED = "APPROVAL_NEEDED"
    """The first wave waits for a person."""
    WAVE_APPROVAL_NEEDED = "WAVE_APPROVAL_NEEDED"
    """The next wave waits for a person."""
    PAUSED_BY_OPERATOR = "PAUSED_BY_OPERATOR"
    BELOW_THRESHOLD = "BELOW_THRESHOLD"
    SAMPLE_TOO_SMALL = "SAMPLE_TOO_SMALL"
    TOO_MANY_FAILURES = "TOO_MANY_FAILURES"
    NO_PROGRESS = "NO_PROGRESS"
    DRY_RUN_FAILED = "DRY_RUN_FAILED"
    CANCELLED_BY_OPERATOR = "CANCELLED_BY_OPERATOR"
    ABORTED_BY_OPERATOR = "ABORTED_BY_OPERATOR"
    WINDOW_CLOSED = "WINDOW_CLOSED"
    """The stop of its schedule's window."""
    REPLACED = "REPLACED"
    """Its schedule's next occurrence came (`overlap: CANCEL_RUNNING`)."""
    MEMBERS_GONE = "MEMBERS_GONE"
    """All members were removed."""


class MemberState(StrEnum):
    """Where one phone of a rollout stands."""

    WAITING = "WAITING"
    """Not started: its wave is closed, or a limit holds it back."""
    STARTED = "STARTED"
    """An execution of it exists that has not ended."""
    RETRYING = "RETRYING"
    """The last one failed, the next is due at ``retry_at``."""
    ENDED = "ENDED"


class Outcome(StrEnum):
    """How a member ended. Every one but SKIPPED and REMOVED is counted in the ratio."""

    NONE = ""
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    SILENT = "SILENT"
    """Never reported by its deadline (the execution is LOST)."""
    UNKNOWN = "UNKNOWN"
    """OUTCOME_UNKNOWN: nobody knows whether the action happened."""
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"
    """Also what was never started when its rollout was cancelled or aborted."""
    EXPIRED = "EXPIRED"
    """Not started in time, or offline under FAIL."""
    SKIPPED = "SKIPPED"
    """Offline, or expired, under SKIP."""
    REMOVED = "REMOVED"
    """Left the target of a CONTINUOUS rollout."""


FAILURES = frozenset(
    {Outcome.FAILED, Outcome.TIMED_OUT, Outcome.SILENT, Outcome.UNKNOWN, Outcome.REJECTED, Outcome.EXPIRED}
)
"""What `maxFailures` counts. A cancelled one is a person's doing: it is no success and no failure."""

UNCOUNTED = frozenset({Outcome.SKIPPED, Outcome.REMOVED})


class WaveState(StrEnum):
    """Where a wave stands; it follows from the rollout's open wave and its members."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    SOAKING = "SOAKING"
    PASSED = "PASSED"
    """Its gate is passed."""
    FAILED = "FAILED"
    """It completed below its gate, or exceeded its failures."""


class Control(StrEnum):
    """What people (and schedules) ask of a rollout."""

    PAUSE = "PAUSE"
    RESUME = "RESUME"
    PROMOTE = "PROMOTE"
    """Open the next wave by hand, the first one included."""
    CANCEL = "CANCEL"
    """Withdraw what has not begun; what runs ends at its next step boundary."""
    ABORT = "ABORT"
    """End at once: also fence what runs."""
