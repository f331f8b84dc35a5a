"""The one error tree. Every error a user can meet has a stable code, says where, and says what to do next.

Raise these; map them once: the API's interceptor to a gRPC status, the command line to text and an exit code. Nobody
decides on ``str(e)``: decide on the type or on ``code``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

Kind = Literal[
    "invalid",  # the request is wrong and will stay wrong: gRPC INVALID_ARGUMENT
    "not_found",  # the thing named does not exist: NOT_FOUND
    "conflict",  # it exists already or changed meanwhile: ALREADY_EXISTS, ABORTED
    "precondition",  # not in this state: FAILED_PRECONDITION
    "unavailable",  # may work later: UNAVAILABLE
    "denied",  # not allowed: PERMISSION_DENIED
    "exhausted",  # a bound was reached: RESOURCE_EXHAUSTED
    "internal",  # a defect of ours: INTERNAL
]


class DroidfleetError(Exception):
    """Base of every error that reaches a user.

    ``code`` is a stable word in capitals (``DEVICE_NOT_FOUND``); ``message`` says what was wrong and what was expected;
    ``hint`` says what to do next; ``details`` holds further facts as plain strings, never secrets.
    """

    kind: ClassVar[Kind] = "internal"

    def __init__(self, code: str, message: str, *, hint: str = "", details: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{code}: {message}" + (f" {hint}" if hint else ""))
        self.code = code
        self.message = message
        self.hint = hint
        self.details: Mapping[str, str] = dict(details or {})


def first_domain_error(group: BaseExceptionGroup[BaseException]) -> DroidfleetError | None:
    """The first error in a group that a user can read; the others mostly follow from it."""
    for error in group.exceptions:
        found = first_domain_error(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, DroidfleetError):
            return found
    return None


class InvalidInputError(DroidfleetError):
    """The caller's input is wrong. ``issues`` lists everything that is wrong with it, not only the first."""

    kind = "invalid"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        details: Mapping[str, str] | None = None,
        issues: Sequence[object] = (),
    ) -> None:
        super().__init__(code, message, hint=hint, details=details)
        self.issues = tuple(issues)


class NotFoundError(DroidfleetError):
    """The thing named does not exist."""

    kind = "not_found"


class ConflictError(DroidfleetError):
    """It exists already, somebody else holds it, or it changed since it was read."""

    kind = "conflict"


class PreconditionError(DroidfleetError):
    """The request is well-formed, and the thing is not in a state that allows it."""

    kind = "precondition"


class UnavailableError(DroidfleetError):
    """A part that is needed does not answer; the same request may work later."""

    kind = "unavailable"


class DeniedError(DroidfleetError):
    """Not allowed, or refused because it would be unsafe."""

    kind = "denied"


class ExhaustedError(DroidfleetError):
    """A stated bound (size, queue, quota) was reached."""

    kind = "exhausted"
