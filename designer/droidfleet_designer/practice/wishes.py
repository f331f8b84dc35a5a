"""What a person wished for, as far as it was understood: one value for each thing to do. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

HIDDEN = "***"
"""Stands for a secret."""


@dataclass(frozen=True, slots=True)
class Name:
    """What a person calls a thing on a screen. ``quoted``: in quotes, so as it is written there. ``others``: the same
    without an article or a word for its kind, which may or may not belong to the name."""

    text: str
    quoted: bool = False
    others: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """All that may be meant."""
        return (self.text, *self.others)


@dataclass(frozen=True, slots=True)
class Open:
    """Open an app, by its label or package; ``app``: it is called one, so it is nothing on the screen."""

    name: Name
    app: bool = False


@dataclass(frozen=True, slots=True)
class Tap:
    """Tap something."""

    name: Name


@dataclass(frozen=True, slots=True)
class LongPress:
    """Press something for a while."""

    name: Name


@dataclass(frozen=True, slots=True)
class Type:
    """Type into a field; None: the only one there is."""

    text: str
    field: Name | None


@dataclass(frozen=True, slots=True)
class Search:
    """Type into the field for searching, and press Enter."""

    text: str


@dataclass(frozen=True, slots=True)
class ScrollTo:
    """Scroll until something is seen."""

    name: Name


@dataclass(frozen=True, slots=True)
class Check:
    """See that something is shown; ``waiting``: wait for it."""

    name: Name
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Read what something says."""

    name: Name


@dataclass(frozen=True, slots=True)
class Turn:
    """Turn a switch on or off, or leave it so."""

    name: Name
    on: bool


@dataclass(frozen=True, slots=True)
class Back:
    """Press Back."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for a while."""

    milliseconds: int


Wish = Open | Tap | LongPress | Type | Search | ScrollTo | Check | Read | Turn | Back | Pause


@dataclass(frozen=True, slots=True)
class Again:
    """Do it more than once: so many ``times``, or for so long. ``chance``: percent of a round in which it is done.
    ``rest``: with all that follows it. ``pause``: milliseconds between rounds, least and most."""

    times: int | None = None
    milliseconds: int | None = None
    chance: int | None = None
    rest: bool = False
    pause: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of the description that was understood."""

    said: str
    wish: Wish
    again: Again | None = None

    def hidden(self) -> Clause:
        """The same with nothing of what is typed: a secret is written down nowhere."""
        typed = self.wish.text if isinstance(self.wish, Type) else ""
        return replace(self, said=self.said.replace(typed, HIDDEN)) if typed else self


@dataclass(frozen=True, slots=True)
class Understood:
    """A description, taken apart. ``rest``: from the first part on that was not understood; empty: all was.

    ``schedule`` and ``target`` are as in a draft; None: nothing was said of it.
    """

    clauses: tuple[Clause, ...]
    rest: str = ""
    schedule: Mapping[str, JsonValue] | None = None
    target: Mapping[str, JsonValue] | None = None
