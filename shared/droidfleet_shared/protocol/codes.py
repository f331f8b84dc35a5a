"""The stable words of protocol v1. A word once released never changes its meaning; nobody decides on a message."""

from __future__ import annotations

from enum import StrEnum


class ValidationCode(StrEnum):
    """What can be wrong with a document (protocol section 7)."""

    BAD_JSON = "BAD_JSON"
    TOO_LARGE = "TOO_LARGE"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    MISSING_FIELD = "MISSING_FIELD"
    WRONG_TYPE = "WRONG_TYPE"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    BAD_VALUE = "BAD_VALUE"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    UNKNOWN_ACTION = "UNKNOWN_ACTION"
    DUPLICATE_ID = "DUPLICATE_ID"
    UNKNOWN_STEP = "UNKNOWN_STEP"
    BACKWARD_GOTO = "BACKWARD_GOTO"
    TOO_DEEP = "TOO_DEEP"
    TOO_MANY_STEPS = "TOO_MANY_STEPS"
    EMPTY_STEPS = "EMPTY_STEPS"
    EMPTY_SELECTOR = "EMPTY_SELECTOR"
    CONFLICTING_FIELDS = "CONFLICTING_FIELDS"
    UNKNOWN_REFERENCE = "UNKNOWN_REFERENCE"
    BAD_REGEX = "BAD_REGEX"
    BAD_XPATH = "BAD_XPATH"
    UNKNOWN_ARTIFACT = "UNKNOWN_ARTIFACT"
    BAD_ARTIFACT = "BAD_ARTIFACT"
    TOO_MANY_ERRORS = "TOO_MANY_ERRORS"


class WarningCode(StrEnum):
    """What is worth a look and stops nothing."""

    IRREVERSIBLE_EFFECT = "IRREVERSIBLE_EFFECT"
    POINT_SELECTOR = "POINT_SELECTOR"
    LONG_BOUND = "LONG_BOUND"
    """The bound on time is longer than anybody may have meant."""
    SECRET_IN_DOCUMENT = "SECRET_IN_DOCUMENT"  # noqa: S105 - a word, not a secret
    """A secret's value stands in the document itself."""


class StepCode(StrEnum):
    """How a step, and by its failing step a task, ended. ``OK`` exactly when ``successful`` is true."""

    OK = "OK"
    PACKAGE_MISMATCH = "PACKAGE_MISMATCH"
    ACTIVITY_MISMATCH = "ACTIVITY_MISMATCH"
    TARGET_NOT_FOUND = "TARGET_NOT_FOUND"
    TARGET_DISABLED = "TARGET_DISABLED"
    TARGET_AMBIGUOUS = "TARGET_AMBIGUOUS"
    CONDITION_NOT_MET = "CONDITION_NOT_MET"
    ACTION_FAILED = "ACTION_FAILED"
    AFTER_NOT_MET = "AFTER_NOT_MET"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    SCREEN_UNREADABLE = "SCREEN_UNREADABLE"
    DEVICE_UNAVAILABLE = "DEVICE_UNAVAILABLE"
    VALUE_MISSING = "VALUE_MISSING"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    """The agent lacks what the task needs (the extra `vision`); nothing was run."""
    CANCELLED = "CANCELLED"
    # Codes of a task only.
    INVALID_TASK = "INVALID_TASK"
    AGENT_MISMATCH = "AGENT_MISMATCH"
    TASK_TIMEOUT = "TASK_TIMEOUT"
    AGENT_RESTARTED = "AGENT_RESTARTED"


OPTIONAL_SKIPS = frozenset(
    {
        StepCode.PACKAGE_MISMATCH,
        StepCode.ACTIVITY_MISMATCH,
        StepCode.TARGET_NOT_FOUND,
        StepCode.TARGET_DISABLED,
        StepCode.CONDITION_NOT_MET,
        StepCode.ACTION_FAILED,
        StepCode.AFTER_NOT_MET,
    }
)
"""The failures that ``optional: true`` turns into a skip (protocol section 3, rule 6)."""


ON_FAILURE_APPLIES = OPTIONAL_SKIPS | {StepCode.VALUE_MISSING, StepCode.SCREEN_UNREADABLE}
"""The failures after which `onFailure` may go on. Never `TARGET_AMBIGUOUS` (a guess would follow), `OUTCOME_UNKNOWN`
(what follows may rest on what did not happen), `DEVICE_UNAVAILABLE` or `CANCELLED`."""


class Detail(StrEnum):
    """What kind of success it was, or a finer word beside a failure's code."""

    NONE = ""
    DISPATCHED_UNVERIFIED = "DISPATCHED_UNVERIFIED"
    VERIFIED = "VERIFIED"
    SEEN = "SEEN"
    EXTRACTED = "EXTRACTED"
    ALREADY_VISIBLE = "ALREADY_VISIBLE"
    SKIPPED_OPTIONAL = "SKIPPED_OPTIONAL"
    SKIPPED_BY_CHANCE = "SKIPPED_BY_CHANCE"
    """`probability` decided against the step."""
    WHEN_FALSE = "WHEN_FALSE"
    SETTLED_BY_AFTER = "SETTLED_BY_AFTER"
    """Nobody knew whether the action happened, and `after` showed that it did."""
    ALREADY_FOREGROUND = "ALREADY_FOREGROUND"
    IN_FRONT = "IN_FRONT"
    """OPEN: the app came to the front."""
    STOPPED = "STOPPED"
    HELD = "HELD"
    """A condition held."""
    DELAYED = "DELAYED"
    CAPTURED = "CAPTURED"
    END_REACHED = "END_REACHED"
    """Two equal looks around a scroll: there is nothing further."""
    BOUND_REACHED = "BOUND_REACHED"
    """`maxScrolls`, `maxIterations` or `maxDurationMs`."""
    UNTIL_HELD = "UNTIL_HELD"
    DONE = "DONE"
    """A container ran its steps."""
    THEN = "THEN"
    ELSE = "ELSE"
    JUMPED = "JUMPED"
    NOT_JUMPED = "NOT_JUMPED"
    FAILURES_CONTINUED = "FAILURES_CONTINUED"
    """The task succeeded although steps failed whose `onFailure` let it go on."""
