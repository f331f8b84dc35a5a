"""The exit codes of all three programs: one table (docs/cli.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from droidfleet_shared.errors import DroidfleetError, Kind


class ExitCode(IntEnum):
    """What a program tells its caller by how it ends."""

    OK = 0
    FAILED = 1
    INVALID = 2
    UNAVAILABLE = 3
    REFUSED = 4
    INTERNAL = 5
    INTERRUPTED = 130


_OF_KIND: Mapping[Kind, ExitCode] = {
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
    return _OF_KIND[error.kind]
