"""What validation reports: issues and the outcome of validating one document."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.codes import ValidationCode, WarningCode
from droidfleet_shared.protocol.pointers import Json, Place, pointer
from droidfleet_shared.protocol.task import TaskTemplate

MAX_ISSUES = 200
"""Errors in one answer; a longer list helps nobody."""

MAX_ISSUE_CHARACTERS = 500_000
"""Their paths and texts together, so that an answer fits into a message whatever the keys of the document."""

TaskT = TypeVar("TaskT", bound=TaskTemplate)


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong, or worth a look.

    ``path`` is a JSON Pointer to something that is in the document (for a missing field: the object that lacks it).
    ``code`` is a stable word: of validation, or of whoever else looks at documents. ``message`` says what was found and
    what was expected, ``hint`` what to write instead; may be empty.
    """

    path: str
    code: StrEnum
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """An issue before it is reported: its place is still a tuple, so that findings can be sorted and compared."""

    place: Place
    code: ValidationCode | WarningCode
    message: str
    hint: str = ""

    def issue(self) -> Issue:
        """The finding as it is reported."""
        return Issue(pointer(self.place), self.code, self.message, self.hint)


@dataclass(frozen=True, slots=True)
class Validation(Generic[TaskT]):
    """The outcome. ``task`` is there exactly when ``errors`` is empty.

    ``document`` is the raw tree as written, for whoever stores or changes the document; None when it is not JSON.
    ``errors`` and ``warnings`` are in document order; warnings stop nothing.
    """

    task: TaskT | None
    errors: tuple[Issue, ...]
    warnings: tuple[Issue, ...]
    document: Json

    @property
    def valid(self) -> bool:
        """Whether the document may be saved and run."""
        return not self.errors

    def require(self) -> TaskT:
        """The task.

        Raises:
            InvalidInputError: ``INVALID_TASK``, with every issue in ``issues``.
        """
        if self.task is not None:
            return self.task
        first = self.errors[0]
        more = f" (and {len(self.errors) - 1} more)" if len(self.errors) > 1 else ""
        raise InvalidInputError(
            "INVALID_TASK",
            f"the document is not valid: {first.path or 'document'}: {first.code}: {first.message}{more}",
            hint=first.hint,
            issues=self.errors,
        )
