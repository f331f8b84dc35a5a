"""From any error to what the user reads. Nothing else does it.

Decides on types, gRPC status and our metadata (`droidfleet-code`, `droidfleet-hint`, `droidfleet-hint-bin`,
`droidfleet-issues-bin`); never on a message.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import grpc

from droidfleet_controller.api.metadata import CODE_KEY, HINT_BYTES_KEY, HINT_KEY, ISSUES_KEY
from droidfleet_controller.cli.text import escape
from droidfleet_shared.errors import (
    ConflictError,
    DeniedError,
    DroidfleetError,
    ExhaustedError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_ISSUE_FIELDS = ("path", "code", "message", "hint")

_ERRORS: Mapping[grpc.StatusCode, type[DroidfleetError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidInputError,
    grpc.StatusCode.OUT_OF_RANGE: InvalidInputError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: ConflictError,
    grpc.StatusCode.ABORTED: ConflictError,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: UnavailableError,
    grpc.StatusCode.PERMISSION_DENIED: DeniedError,
    grpc.StatusCode.UNAUTHENTICATED: DeniedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ExhaustedError,
    grpc.StatusCode.UNIMPLEMENTED: PreconditionError,
}


def from_rpc(error: grpc.RpcError, *, address: str) -> DroidfleetError:
    """The domain error behind a failed call to the controller at ``address``."""
    status = error.code()
    metadata: dict[str, str | bytes] = {item.key: item.value for item in error.trailing_metadata() or ()}
    code = _as_text(metadata.get(CODE_KEY, ""))
    if not code:
        return _without_code(status, address=address, details=error.details() or "")
    kind = _ERRORS.get(status, DroidfleetError)
    hint = _as_text(metadata.get(HINT_BYTES_KEY) or metadata.get(HINT_KEY, ""))
    message = (error.details() or "").removeprefix(f"{code}: ")
    if issubclass(kind, InvalidInputError):
        return kind(code, message, hint=hint, issues=_issues(metadata.get(ISSUES_KEY, b"")))
    return kind(code, message, hint=hint)


def _without_code(status: grpc.StatusCode, *, address: str, details: str) -> DroidfleetError:
    """What gRPC itself reports: nobody there, no answer in time, or something that is not our controller."""
    if status is grpc.StatusCode.UNAVAILABLE:
        return UnavailableError(
            "CONTROLLER_UNAVAILABLE",
            f"no controller answers at {address}.",
            hint="Start it with `droidfleet serve`, or name another with --api HOST:PORT (or DROIDFLEET_API).",
        )
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return UnavailableError(
            "DEADLINE_EXCEEDED",
            f"the controller at {address} did not answer in time.",
            hint="See its log and its /readyz; the request may have been carried out.",
        )
    if status is grpc.StatusCode.UNIMPLEMENTED:
        return PreconditionError(
            "NOT_SUPPORTED",
            f"what answers at {address} does not know this call.",
            hint="Upgrade the older of droidfleet and its controller, or correct --api.",
        )
    kind = _ERRORS.get(status, DroidfleetError)
    return kind(status.name, details or "the call failed.", hint=f"It was answered by {address}.")


def text_of(error: DroidfleetError) -> str:
    """What the user reads: ``CODE: message``, one line an issue, then ``hint: ...``. Safe to print."""
    issues = [issue_text(issue) for issue in error.issues] if isinstance(error, InvalidInputError) else []
    lines = [f"{error.code}: {escape(error.message)}", *issues]
    # With issues the error's own hint is the first one's, which stands there already.
    if error.hint and not any(text.endswith(f"\n    {escape(error.hint)}") for text in issues):
        lines.append(f"hint: {escape(error.hint)}")
    return "\n".join(lines)


def issue_text(issue: object) -> str:
    """One validation issue: ``/steps/0/tmeoutMs UNKNOWN_FIELD: message``, and the hint on a line below. Safe to print.

    ``issue`` has the validator's four fields, as attributes (the validator's own, the API's) or as items (JSON).
    """
    path, code, message, hint = (
        str(issue.get(name, "") if isinstance(issue, dict) else getattr(issue, name, "")) for name in _ISSUE_FIELDS
    )
    return escape(f"{path or '(document)'} {code}: {message}") + (f"\n    {escape(hint)}" if hint else "")


def _issues(raw: str | bytes) -> tuple[object, ...]:
    """The issues in our metadata; a controller that writes them otherwise costs the list, never the error."""
    try:
        issues = json.loads(raw or "[]")
    except ValueError:
        return ()
    return tuple(issues) if isinstance(issues, list) else ()


def _as_text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
