"""The console blocks of a Markdown page: what a reader types, what comes back, and which files the page has them save.

Output is compared by kind: numbers, ids and times count as such, the words must be there, in order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

COLUMNS = "104"
"""The width of the terminal whose output the pages show; what is wider is wrapped."""

_BLOCK = re.compile(r"^```(console|json|text)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"`([\w.-]+\.(?:json|txt))`[^`\n]*:\s*$")
_ID = re.compile(r"\b(?=[0-9a-z-]*\d)(?=[0-9a-z-]*[a-z])[0-9a-z][0-9a-z-]{11,}\b", re.I)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_RULE = re.compile(r"[─━]+")
_BAR = re.compile(r"[━╸╺]+")


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of a page, and the lines that the page shows below it."""

    command: str
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Saved:
    """A file that the page has its reader save."""

    name: str
    text: str


def steps(page: Path) -> list[Typed | Saved]:
    """What the reader does, in order."""
    text = page.read_text()
    found: list[Typed | Saved] = []
    for block in _BLOCK.finditer(text):
        if block.group(1) != "console":
            named = _FILE.search(text[: block.start()].rstrip("\n"))
            if named:
                found.append(Saved(named.group(1), block.group(2)))
            continue
        for part in re.split(r"^\$ ", block.group(2), flags=re.M)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            found.append(Typed(command, tuple(line for line in shown if line.strip())))
    return found


def kind(line: str) -> str:
    """A line without what differs from run to run."""
    line = _ID.sub("ID", _RULE.sub("-", _BAR.sub("", line)))
    return " ".join(_NUMBER.sub("N", line).split())


def first_missing(shown: tuple[str, ...], written: str) -> str | None:
    """The first shown line that the output has none of its kind for, after those found before.

    ``...`` stands for any lines, and at the end of a line for any rest.
    """
    actual = iter([kind(line) for line in written.splitlines()])
    for line in shown:
        wanted, cut, _ = line.partition("...")
        if not any(kind(wanted) == found or (cut and found.startswith(kind(wanted))) for found in actual):
            return line
    return None
