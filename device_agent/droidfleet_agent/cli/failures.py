"""From any error to what the user of `droidfleet-agent` reads, and the exit code. Never decides on a message."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from droidfleet_shared.errors import DroidfleetError, InvalidInputError, Kind


class ExitCode(IntEnum):
    """The same table for `droidfleet`, `droidfleet-agent` and `droidfleet-phone` (docs/cli.md)."""

    OK = 0
    FAILED = 1
    INVALID = 2
    UNAVAILABLE = 3
    REFUSED = 4
    INTERNAL = 5
    INTERRUPTED = 130


_EXIT_CODES: Mapping[Kind, ExitCode] = {
    "invalid": ExitCode.INVALID,
    "not_found": ExitCode.REFUSED,
    "conflict": ExitCode.REFUSED,
    "precondition": ExitCode.REFUSED,
    "denied": ExitCode.REFUSED,
    "exhausted": ExitCode.REFUSED,
    "unavailable": ExitCode.UNAVAILABLE,
    "internal": ExitCode.INTERNAL,
}


def exit_code(error: DroidfleetError) -> ExitCode:
    """The documented exit code of an error."""
    return _EXIT_CODES[error.kind]


def error_text(error: DroidfleetError) -> str:
    """``CODE: message``, one line for each issue, and what to do next. Safe to print on a terminal."""
    lines = [f"{error.code}: {error.message}"]
    if isinstance(error, InvalidInputError):
        for issue in error.issues:
            where, code, message, hint = (str(getattr(issue, name, "")) for name in ("path", "code", "message", "hint"))
            lines.append(f"  {where or '(document)'} {code}: {message}")
            if hint:
                lines.append(f"      {hint}")
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return "\n".join(printable(line) for line in lines)


def printable(text: str) -> str:
    """The text on one line, with whatever could act on a terminal written as an escape. Text from a screen is data."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "backslashreplace").decode()
        for character in text
    )
