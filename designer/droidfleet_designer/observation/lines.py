"""Writes what was seen as lines for a model, within a length. Pure.

A line is ``NUMBER KIND[!] WORDS (STATE) -> SELECTOR``. ``!``: a word there speaks of an effect that cannot be undone.
Words are quoted (`quoting`), ``desc`` before those that are a content description, ``#id`` after those whose node has
a resource id that should last. The selector is left out where it is ``{"text": first words}``, or ``{"description":
first words}`` after ``desc``. ``~>`` instead of ``->``, or a last ``~``: it may not name the same thing next time.
`prompts/observation.*.md` tells the same to the model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from droidfleet_designer.observation.elements import Thing, Things, is_field
from droidfleet_designer.observation.naming import written
from droidfleet_designer.observation.quoting import FROM_THE_SCREEN, MAX_QUOTED, quoted, quoted_json
from droidfleet_designer.observation.seen import Seen, lasting_id
from droidfleet_shared.screen.node import Screen
from droidfleet_shared.screen.suggest import Suggestion

MAX_TOKENS = 3_200
"""Of one observation, by the estimate below; a full screen of an app needs some 2,000."""

MAX_LISTED = 250
"""Lines. Naming takes time that grows with the square of what is alike, and so many things of a few words fill the
observation anyhow."""

MAX_TIGHT = 48
"""Characters of a quoted text where the whole would be too long."""

ASCII_PER_TOKEN = 2.5
"""Prose has more than 4; ids, JSON and numbers, of which this text is full, some 3."""

TOKENS_PER_OTHER = 1.3
"""A Chinese character takes one token with newer vocabularies and up to two with older ones."""

TOKENS_PER_ESCAPE = 1.5
"""More than its characters say: ``\\u003c`` is four tokens."""

_NAME = re.compile(r"[A-Za-z0-9_.$]{1,150}")


def header(screen: Screen, number: int) -> list[str]:
    """The lines that come first: which screen it is, and what quotes mean."""
    where = _java_name(screen.package) if screen.package else "no app in front"
    if screen.activity:
        where += f" {_java_name(screen.activity.removeprefix(screen.package) if screen.package else screen.activity)}"
    facts = [where, f"{screen.display.right - screen.display.left}x{screen.display.bottom - screen.display.top}"]
    if screen.keyboard is not None:
        facts.append("keyboard shown")
    if screen.over:
        facts.append(f"{_count(len(screen.over), 'other window')} over it")
    return [f"Screen {number}: {', '.join(facts)}", FROM_THE_SCREEN]


def first(things: Sequence[Thing]) -> list[Thing]:
    """The first so many, what can be used before what says; in their order."""
    if len(things) <= MAX_LISTED:
        return list(things)
    first = sorted(things, key=lambda thing: not thing.usable)[:MAX_LISTED]
    kept = {id(thing) for thing in first}
    return [thing for thing in things if id(thing) in kept]


def footer(screen: Screen, found: Things, listed: Sequence[Seen]) -> list[str]:
    """The lines that come last: what is missing, and why. None mostly."""
    lines: list[str] = []
    if screen.root is None:
        lines.append("No window of an app is in front, so nothing can be named.")
    elif not found.all:
        lines.append("Nothing in this window has words or can be used by name: look at the picture.")
    kept = {id(each.thing) for each in listed}
    missing = Counter(thing.usable for thing in found.all if id(thing) not in kept)
    if missing:
        left_out = [_count(missing[False], "text")] if missing[False] else []
        left_out += [f"{_count(missing[True], 'thing')} that can be used"] if missing[True] else []
        lines.append(
            f"Left out, for there is too much on this screen: {' and '.join(left_out)}. Search for them by text."
        )
    if found.frames:
        lines.append(f"Not listed: {_count(found.frames, 'frame')} around a listed button.")
    return lines


def fitting(seen: Sequence[Seen], room: float) -> tuple[list[Seen], list[str]]:
    """What is listed, with its lines: all, else all with shorter texts, else what can be used before what says."""
    listed = list(seen)
    for most in (MAX_QUOTED, MAX_TIGHT):
        lines = [_line(number, each, most) for number, each in enumerate(listed, 1)]
        if sum(map(estimated_tokens, lines)) <= room:
            return listed, lines
    kept: set[int] = set()
    for each, line in sorted(zip(listed, lines, strict=True), key=lambda pair: not pair[0].thing.usable):
        cost = estimated_tokens(line)
        if cost <= room:
            room -= cost
            kept.add(id(each))
    listed = [each for each in listed if id(each) in kept]
    return listed, [_line(number, each, MAX_TIGHT) for number, each in enumerate(listed, 1)]


def _line(number: int, seen: Seen, most: int) -> str:
    parts = [f"{number} {seen.thing.kind}{'!' if seen.danger else ''}"]
    said_by_words = _said_by_words(seen)
    by_id = not said_by_words and seen.name is not None and seen.name.selector.resource_id is not None
    for place, each in enumerate(seen.words):
        # Words that are the selector are never cut: with it beside them they would be longer than whole.
        limit = None if place == 0 and said_by_words else most
        identity = f"#{each.id}" if each.id and not by_id else ""
        parts.append(f"{'desc ' if each.described else ''}{quoted(each.text, most=limit)}{identity}")
    if not seen.words and not by_id and (identity := lasting_id(seen.thing.node)):
        parts.append(f"#{identity}")
    if seen.holds:
        parts.append(f"holds {quoted(seen.holds, most=most)}")
    if seen.states:
        parts.append(f"({', '.join(seen.states)})")
    noted = seen.name is not None and bool(seen.name.note)
    if not said_by_words:
        parts.append(f"{'~>' if noted else '->'} {_selector(seen.name)}")
    elif noted:
        parts.append("~")
    return " ".join(parts)


def _said_by_words(seen: Seen) -> bool:
    """Whether the selector is nothing but the first words."""
    if seen.name is None or not seen.words or is_field(seen.thing.node):
        return False
    first = seen.words[0]
    return written(seen.name.selector) == {"description" if first.described else "text": first.text}


def _selector(name: Suggestion | None) -> str:
    return quoted_json(written(name.selector)) if name is not None else "none"


def _java_name(name: str) -> str:
    return name if _NAME.fullmatch(name) else quoted(name)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def estimated_tokens(text: str) -> float:
    """About how many tokens a text takes, rather too many than too few."""
    plain = len(text.encode("ascii", "ignore"))
    return plain / ASCII_PER_TOKEN + (len(text) - plain) * TOKENS_PER_OTHER + text.count("\\") * TOKENS_PER_ESCAPE
