"""What the author probably meant: misspelt and foreign names of fields, actions and words.

Names only; whether something is an error was decided before. Every hint is a sentence that can stand alone.
"""

from __future__ import annotations

import difflib
import heapq
import itertools
from collections.abc import Collection, Iterable

from droidfleet_shared.protocol import synonyms
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.wording import listed, name

_LONGEST_NAME = 64
"""Longer words are no misspelling of ours, and comparing them takes time."""

_MAX_COMPARED = 200
"""Words compared with one: as many as a task has steps. A document that is refused may have thousands."""

_FINALISTS = 5
"""Words compared in full: those that share the most letters. It takes time that grows with the square of the length."""


def folded(word: str) -> str:
    """The word without what spellings differ in: case, underscores, dashes and spaces."""
    return "".join(char for char in word[:_LONGEST_NAME].lower() if char.isalnum())


def meant_action(found: str) -> str | None:
    """The action that was probably meant."""
    return _closest(found, {each: synonyms.ACTIONS.get(each, ()) for each in IMPLEMENTED_ACTIONS})


def closest(found: str, words: Iterable[str]) -> str | None:
    """The one of some words of ours that was probably meant; their spelling counts loosely."""
    return _closest(found, {each: synonyms.VALUES.get(each, ()) for each in words})


def nearest(found: str, words: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The word that is most like ``found``, of any origin; None when none is at least ``cutoff`` like it."""
    if len(found) > _LONGEST_NAME:
        return None
    matcher = difflib.SequenceMatcher(b=found, autojunk=False)
    likely: list[tuple[float, str]] = []
    for word in itertools.islice(words, _MAX_COMPARED):
        if len(word) <= _LONGEST_NAME:
            matcher.set_seq1(word)
            if matcher.real_quick_ratio() >= cutoff and (bound := matcher.quick_ratio()) >= cutoff:
                likely.append((bound, word))
    best: tuple[float, str] = (cutoff, "")
    for bound, word in heapq.nlargest(_FINALISTS, likely):
        if bound > best[0] or not best[1]:
            matcher.set_seq1(word)
            best = max(best, (matcher.ratio(), word))
    return best[1] or None


def action_hint(found: str | None) -> str:
    """What to write as an action instead of ``found`` (None: nothing was written)."""
    everything = f"The actions are {listed([name(each) for each in IMPLEMENTED_ACTIONS])}."
    meant = meant_action(found) if found is not None else None
    if meant is None:
        return everything
    return f"Did you mean {name(meant)}? {everything}"


def field_hint(
    found: str, *, where: str, fields: Iterable[str], given: Collection[str], elsewhere: dict[str, str]
) -> str:
    """The hint for an unknown field of a ``task``, ``step`` or ``selector`` that may have ``fields``.

    ``given`` are the fields that the object has already: they are not what was meant.
    ``elsewhere`` says of fields that stand in other places where that is, as a clause (`in the selector`).
    """
    allowed = list(fields)
    theirs = synonyms.FIELDS.get(where, {})
    missing = [each for each in allowed if each not in given]
    if meant := _closest(found, {each: theirs.get(each, ()) for each in missing}, cutoff=0.84):
        return f"Did you mean {name(meant)}?"
    if clause := elsewhere.get(folded(found)):
        return clause
    if meant := _closest(found, dict.fromkeys(missing, ())):
        return f"Did you mean {name(meant)}?"
    return f"The fields here are {listed([name(each) for each in allowed])}."


def _closest(found: str, known: dict[str, tuple[str, ...]], *, cutoff: float = 0.7) -> str | None:
    spellings = {folded(each): each for each in known}
    # An action's own fields come after those of every step, and are meant sooner.
    for each, others in reversed(known.items()):
        for synonym in others:
            spellings.setdefault(folded(synonym), each)
    near = nearest(folded(found), spellings, cutoff=cutoff)
    return spellings[near] if near is not None else None
