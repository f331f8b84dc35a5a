"""What a run of a command line program left behind, and the shape of the fixtures that run one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str


class Command(Protocol):
    """Runs a program with these arguments and this standard input."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ran: ...
