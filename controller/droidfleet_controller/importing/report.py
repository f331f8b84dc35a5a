"""What an import says of each thing that it found: mapped, normalised or refused, and where that stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from droidfleet_shared.protocol.pointers import Json, Place

MAX_REFUSED = 200
"""Refusals in one report; a longer list helps nobody."""

MAX_NOTES = 1_000
"""Everything else in one report: more than the largest task can give."""


class What(StrEnum):
    """What became of it."""

    MAPPED = "mapped"
    """It means the same in the new task."""
    NORMALISED = "normalised"
    """It was written differently, or means something close; the message says what differs."""
    REFUSED = "refused"
    """It has no counterpart or is wrong, so there is no new task."""


class ImportCode(StrEnum):
    """Stable words for what was found. A refusal may also bear a code of the project's validator."""

    # Mapped.
    STEP = "STEP"
    # Normalised.
    SPELLING = "SPELLING"
    """The same thing, spelt differently: `"3"` for 3, `CLICK` for `click`."""
    ID_GIVEN = "ID_GIVEN"
    """A step had no id, or one that cannot be used."""
    ASSUMED = "ASSUMED"
    """A unit or a default that the file does not say."""
    DIFFERS = "DIFFERS"
    """The new task does something close, not the same."""
    NOT_NEEDED = "NOT_NEEDED"
    """Nothing has to be written for it."""
    KEPT_ASIDE = "KEPT_ASIDE"
    """It has no place in a task document and stands in the report alone."""
    INPUT_DECLARED = "INPUT_DECLARED"
    """A variable became an input of the task."""
    # Refused.
    BAD_JSON = "BAD_JSON"
    BAD_YAML = "BAD_YAML"
    TOO_LARGE = "TOO_LARGE"
    UNKNOWN_FORM = "UNKNOWN_FORM"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    """A type of step or a command that is not known."""
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    MISSING_FIELD = "MISSING_FIELD"
    WRONG_TYPE = "WRONG_TYPE"
    BAD_VALUE = "BAD_VALUE"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    EMPTY_SELECTOR = "EMPTY_SELECTOR"
    EMPTY_STEPS = "EMPTY_STEPS"
    TOO_DEEP = "TOO_DEEP"
    TOO_MANY_STEPS = "TOO_MANY_STEPS"
    UNKNOWN_KEY = "UNKNOWN_KEY"
    BAD_CRON = "BAD_CRON"
    BAD_REGEX = "BAD_REGEX"
    POINT_NOT_ALLOWED = "POINT_NOT_ALLOWED"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    """Protocol v1 has nothing that does it."""
    JAVASCRIPT = "JAVASCRIPT"
    FILE_NOT_FOLLOWED = "FILE_NOT_FOLLOWED"
    TOO_MANY_ERRORS = "TOO_MANY_ERRORS"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was found.

    ``place``: a JSON Pointer into a JSON document, or ``FILE:LINE`` of a Maestro flow. ``message`` says what was found
    and what became of it, ``hint`` what to do about it; may be empty.
    """

    place: str
    code: str
    what: What
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """The outcome. ``document`` is a valid task template exactly when nothing was refused.

    ``aside`` holds what the file says about when and where the task runs, by its own names: dispatch's business.
    """

    document: dict[str, Json] | None
    report: tuple[Entry, ...]
    aside: dict[str, Json] = field(default_factory=dict)

    def count(self, what: What) -> int:
        """How many entries are of that kind."""
        return sum(entry.what is what for entry in self.report)


class Reporter:
    """Collects entries in the order of the file, within bounds."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._refused = 0

    @property
    def refused(self) -> bool:
        """Whether anything was."""
        return self._refused > 0

    @property
    def refusals(self) -> int:
        """How many there were; past the bounds it no longer grows."""
        return self._refused

    @property
    def full(self) -> bool:
        """Whether no more refusals are listed, so that looking for them is of no use."""
        return self._refused > MAX_REFUSED

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All so far."""
        return tuple(self._entries)

    def add(self, entry: Entry) -> None:
        """Keeps an entry; past the bounds only that there were more refusals."""
        if entry.what is not What.REFUSED:
            if len(self._entries) - self._refused < MAX_NOTES:
                self._entries.append(entry)
            return
        if self._refused < MAX_REFUSED:
            self._entries.append(entry)
        elif self._refused == MAX_REFUSED:
            message = f"there is more that is wrong than the {MAX_REFUSED} things that are listed"
            self._entries.append(Entry("", ImportCode.TOO_MANY_ERRORS, What.REFUSED, message, "Mend these first."))
        self._refused = min(self._refused + 1, MAX_REFUSED + 1)


@dataclass(frozen=True, slots=True)
class Scope:
    """A reporter for one file. ``show`` turns places in it into what people find there.

    ``only_texts``: the form has no numbers and truth values of its own, so that writing them as text is no sloppiness.
    """

    reporter: Reporter
    show: Callable[[Place], str]
    only_texts: bool = False

    def mapped(self, place: Place, message: str) -> None:
        """It means the same in the new task."""
        self.reporter.add(Entry(self.show(place), ImportCode.STEP, What.MAPPED, message))

    def normalised(self, place: Place, code: ImportCode, message: str, hint: str = "") -> None:
        """It is in the new task in another form."""
        self.reporter.add(Entry(self.show(place), code, What.NORMALISED, message, hint))

    def refused(self, place: Place, code: str, message: str, hint: str = "") -> None:
        """There will be no new task."""
        self.reporter.add(Entry(self.show(place), code, What.REFUSED, message, hint))
