"""Finds the screen in what a tool told, as `observation.lines` writes it. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool told: ``before`` the screen, its ``header`` line, and its ``lines``; both empty: there is none."""

    before: str
    header: str = ""
    lines: tuple[str, ...] = ()


def told_of(text: str, snapshot: str) -> Told:
    """Takes a tool's text apart. ``snapshot``: the id of the look that it shows (``s7``); empty: it shows none."""
    begin = f"Screen {snapshot[1:]}:" if snapshot else None
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if begin is not None and line.startswith(begin):
            return Told("\n".join(lines[:place]), line, tuple(lines[place + 1 :]))
    return Told(text)


def shortened(text: str, snapshot: str, *, keep: Collection[int], note: str) -> str:
    """The text with its screen in one line, a note that the rest is left out, and the numbered lines to ``keep``."""
    told = told_of(text, snapshot)
    if not told.header:
        return text
    kept = [line for line in told.lines if (number := line.partition(" ")[0]).isdecimal() and int(number) in keep]
    return "\n".join([*([told.before] if told.before else []), f"{told.header} {note}", *kept])
