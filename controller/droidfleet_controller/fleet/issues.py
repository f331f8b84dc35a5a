"""One thing that is wrong with what somebody asks of the fleet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    """``path``: where, in words or as the name of a field; ``message``: what was found and what was expected; ``hint``:
    what to write instead, may be empty."""

    path: str
    code: str
    message: str
    hint: str = ""
