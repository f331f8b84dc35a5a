"""What is wrong with a rollout or schedule document, or worth a look: everything, and each thing in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.issues import MAX_ISSUES


class IssueCode(StrEnum):
    """The stable words of issues."""

    BAD_JSON = "BAD_JSON"
    TOO_LARGE = "TOO_LARGE"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    MISSING_FIELD = "MISSING_FIELD"
    WRONG_TYPE = "WRONG_TYPE"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    BAD_VALUE = "BAD_VALUE"
    CONFLICTING_FIELDS = "CONFLICTING_FIELDS"
    TOO_MANY_ERRORS = "TOO_MANY_ERRORS"
    # Of the target.
    BAD_QUERY = "BAD_QUERY"
    GROUP_NOT_FOUND = "GROUP_NOT_FOUND"
    EMPTY_GROUP = "EMPTY_GROUP"
    NO_MATCH = "NO_MATCH"
    DEVICE_NOT_FOUND = "DEVICE_NOT_FOUND"
    DUPLICATE_DEVICE = "DUPLICATE_DEVICE"
    TOO_MANY_MEMBERS = "TOO_MANY_MEMBERS"
    NO_MEMBER = "NO_MEMBER"
    """Values for phones that do not belong to the rollout; only worth a look."""
    # Of the waves.
    WAVES_DO_NOT_FIT = "WAVES_DO_NOT_FIT"
    # Of the task and its values.
    TASK_NOT_FOUND = "TASK_NOT_FOUND"
    INVALID_TASK = "INVALID_TASK"
    UNKNOWN_INPUT = "UNKNOWN_INPUT"
    MISSING_INPUT = "MISSING_INPUT"
    # Of times.
    BAD_CRON = "BAD_CRON"
    NEVER_FIRES = "NEVER_FIRES"
    UNKNOWN_ZONE = "UNKNOWN_ZONE"
    BAD_TIME = "BAD_TIME"
    BAD_WINDOW = "BAD_WINDOW"
    # Worth a look.
    LACKS_CAPABILITY = "LACKS_CAPABILITY"
    OFFLINE = "OFFLINE"
    NOT_REPEATABLE = "NOT_REPEATABLE"
    """Tries are asked for of a task that may not be repeated once it has acted."""


@dataclass(frozen=True, slots=True)
class SpecIssue:
    """One thing that is wrong, or worth a look. ``path``: a JSON Pointer to something that is in the document (for a
    missing field: the object that lacks it); ``hint``: what to write or do instead, may be empty."""

    path: str
    code: IssueCode
    message: str
    hint: str = ""

    def under(self, prefix: str) -> SpecIssue:
        """The same in a document that holds this one at ``prefix``, a JSON Pointer."""
        return replace(self, path=prefix + self.path)


def require_none(issues: Sequence[SpecIssue], *, code: str, what: str) -> None:
    """Refuses a document with issues. ``what``: for people, as "the rollout".

    Raises:
        InvalidInputError: ``code``, with every issue in ``issues``.
    """
    if not issues:
        return
    first = issues[0]
    more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
    raise InvalidInputError(
        code,
        f"{what} cannot be carried out: {first.path or 'document'}: {first.code}: {first.message}{more}",
        hint=first.hint,
        issues=issues,
    )


def cut(issues: Sequence[SpecIssue]) -> tuple[SpecIssue, ...]:
    """As many issues as an answer should hold; a last one says that there are more."""
    if len(issues) <= MAX_ISSUES:
        return tuple(issues)
    more = SpecIssue(
        "", IssueCode.TOO_MANY_ERRORS, f"there are {len(issues) - MAX_ISSUES} more issues", "Mend these first."
    )
    return (*issues[:MAX_ISSUES], more)
