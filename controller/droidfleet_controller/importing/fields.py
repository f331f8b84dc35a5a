"""Reading the fields of one object of a file as people really write them: numbers as texts, other cases, nulls.

What is meant without doubt is taken and noted; what is not is refused with what to write instead.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping, Sequence

from droidfleet_controller.importing.report import ImportCode, Scope
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.suggestions import folded
from droidfleet_shared.protocol.wording import described, listed, name, shown

_NUMBER = re.compile(r"[+-]?(\d{1,15}(\.\d{0,15})?|\.\d{1,15})")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NEAR = 0.7
"""How alike two words must be, from 0 to 1, for one to be taken for a misspelling of the other."""


def closest(found: str, words: Collection[str], synonyms: Mapping[str, str] | None = None) -> str | None:
    """The word that was probably meant by ``found``; ``synonyms`` gives words by other words for them."""
    spellings = {folded(word): synonyms[word] for word in synonyms} if synonyms else {}
    spellings |= {folded(word): word for word in words}
    near = difflib.get_close_matches(folded(found), spellings, n=1, cutoff=_NEAR)
    return spellings[near[0]] if near else None


def meant(found: str, words: Collection[str], synonyms: Mapping[str, str] | None = None) -> str:
    """A hint: what was probably meant, and what there is."""
    near = closest(found, words, synonyms)
    everything = f"There are {listed([name(word) for word in words])}."
    return f"Did you mean {name(near)}? {everything}" if near else everything


class Fields:
    """The fields of one object. Reading one that is wrong reports it and gives None."""

    def __init__(
        self,
        scope: Scope,
        place: Place,
        holder: Mapping[str, Json],
        names: Sequence[str],
        *,
        what: str,
        example: str,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        """``what`` names the object for people, ``example`` shows one as it should be.

        ``elsewhere`` says of fields that stand in other places where that is, as a sentence.
        """
        self.scope = scope
        self.place = place
        self._what = what
        self._example = example
        self.unknown = False
        """Whether a field was refused that is none here: what seems to be missing may be meant by it."""
        self._given: dict[str, tuple[str, Json]] = {}
        by_fold = {folded(known): known for known in names}
        for key, value in holder.items():
            known = key if key in names else by_fold.get(folded(key))
            if known is None:
                self.unknown = True
                hint = (elsewhere or {}).get(folded(key)) or meant(key, names) if names else "It has no fields."
                message = f"{name(key)} is no field of {what}; nothing is left out silently"
                scope.refused((*place, key), ImportCode.UNKNOWN_FIELD, message, f"{hint} Or take it out.")
                continue
            if known in self._given:
                message = f"{name(known)} is given twice, as {name(self._given[known][0])} and {name(key)}"
                scope.refused((*place, key), ImportCode.BAD_VALUE, message, "Keep one of them.")
                continue
            if known != key:
                scope.normalised((*place, key), ImportCode.SPELLING, f"{name(key)} is read as {name(known)}")
            if value is None:
                scope.normalised(
                    (*place, key), ImportCode.NOT_NEEDED, f"{name(key)} is null, which is read as not given"
                )
                continue
            self._given[known] = (key, value)

    def __contains__(self, field: str) -> bool:
        return field in self._given

    def at(self, field: str) -> Place:
        """Where a field stands; the object itself when it is not given."""
        return (*self.place, self._given[field][0]) if field in self._given else self.place

    def raw(self, field: str) -> Json:
        """The value as written; None when it is not given."""
        return self._given[field][1] if field in self._given else None

    def missing(self, *fields: str) -> None:
        """Refuses the object because it lacks one of these fields."""
        message = f"{self._what} has no {listed([name(field) for field in fields], 'or')}"
        self.scope.refused(self.place, ImportCode.MISSING_FIELD, message, f"For example: {self._example}")

    def refuse(self, field: str, code: ImportCode, message: str, hint: str = "") -> None:
        """Refuses the value of a field."""
        self.scope.refused(self.at(field), code, message, hint or f"For example: {self._example}")

    def text(self, field: str, *, required: bool = False) -> str | None:
        """A text; a number is taken as it is written."""
        value = self.raw(field)
        if value is None:
            if required:
                self.missing(field)
            return None
        if isinstance(value, str):
            return value
        if isinstance(value, bool | list | dict):
            self.refuse(field, ImportCode.WRONG_TYPE, f"{name(field)} is {described(value)}; expected a text")
            return None
        self._spelling(field, f"{shown(value)} is read as the text {shown(str(value))}")
        return str(value)

    def truth(self, field: str) -> bool | None:
        """True or false, also as text or as 1 and 0."""
        value = self.raw(field)
        if value is None or isinstance(value, bool):
            return value
        read = _TRUTH.get(str(value).strip().lower()) if isinstance(value, str | int) else None
        if read is None:
            self.refuse(field, ImportCode.WRONG_TYPE, f"{name(field)} is {described(value)}; expected true or false")
            return None
        self._spelling(field, f"{shown(value)} is read as {str(read).lower()}")
        return read

    def number(
        self, field: str, *, low: float, high: float, unit: str, required: bool = False, advice: str = ""
    ) -> float | None:
        """A number within bounds, both included, in ``unit`` (a word for people)."""
        value = self.raw(field)
        if value is None:
            if required:
                self.missing(field)
            return None
        number = self._number(field, value)
        if number is None:
            return None
        if not low <= number <= high:
            message = f"{name(field)} is {shown(value)}; expected {_plain(low)} to {_plain(high)} {unit}"
            self.refuse(field, ImportCode.OUT_OF_RANGE, message, advice)
            return None
        return number

    def whole(self, field: str, *, low: int, high: int, unit: str, required: bool = False) -> int | None:
        """A whole number within bounds; a fraction is rounded and noted."""
        number = self.number(field, low=low, high=high, unit=unit, required=required)
        if number is None:
            return None
        rounded = round(number)
        if rounded != number:
            message = f"{name(field)} must be a whole number here: {_plain(number)} is rounded to {rounded}"
            self.scope.normalised(self.at(field), ImportCode.DIFFERS, message)
        return rounded

    def word(
        self, field: str, words: Mapping[str, str], *, required: bool = False, synonyms: Mapping[str, str] | None = None
    ) -> str | None:
        """What ``words`` has for the word of a field, whatever its case."""
        found = self.text(field, required=required)
        if found is None:
            return None
        if found in words:
            return words[found]
        by_fold = {folded(word): word for word in words}
        word = by_fold.get(folded(found)) if folded(found) else None
        if word is None:
            hint = meant(found, list(words), synonyms)
            self.refuse(field, ImportCode.BAD_VALUE, f"{name(field)} is {shown(found)}, which is not known", hint)
            return None
        if not self.scope.only_texts:
            self._spelling(field, f"{shown(found)} is read as {shown(word)}")
        return words[word]

    def _number(self, field: str, value: Json) -> float | None:
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            self._spelling(field, f"the text {shown(value)} is read as a number")
            return float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(field, ImportCode.WRONG_TYPE, f"{name(field)} is {described(value)}; expected a number")
            return None
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(field, ImportCode.OUT_OF_RANGE, f"{name(field)} is {shown(value)}, which is too large")
            return None
        return number

    def _spelling(self, field: str, message: str) -> None:
        if not self.scope.only_texts:
            self.scope.normalised(self.at(field), ImportCode.SPELLING, f"{name(field)}: {message}")


def _plain(number: float) -> str:
    return f"{number:g}" if abs(number) < 1 else f"{number:.10g}"
