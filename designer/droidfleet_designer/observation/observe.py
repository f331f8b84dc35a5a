"""One look as a model reads it: a header and flat numbered lines, in reading order. Pure.

A line is ``NUMBER KIND[!] WORDS (STATE) -> SELECTOR``. ``!``: a word there speaks of an effect that cannot be undone.
Words are quoted (`quoting`), ``desc`` before those that are a content description, ``#id`` after those whose node has
a resource id that should last. The selector is left out where it is ``{"text": first words}``, or ``{"description":
first words}`` after ``desc``. ``~>`` instead of ``->``: it may not name the same thing next time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from droidfleet_designer.observation.elements import Thing, Things, is_field, things_on
from droidfleet_designer.observation.naming import Namer, danger_on
from droidfleet_designer.observation.quoting import FROM_THE_SCREEN, MAX_QUOTED, quoted, quoted_json
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.fields import held_text
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Node, Screen
from droidfleet_shared.screen.snapshot import Snapshot
from droidfleet_shared.screen.stability import made_up_id
from droidfleet_shared.screen.suggest import Suggestion
from droidfleet_shared.screen.touch import Covered, touch_point

MAX_TOKENS = 3_200
"""Of one observation, by the estimate below; a full screen of an app needs some 2,000."""

MAX_TIGHT = 48
"""Characters of a quoted text where the whole would be too long."""

ASCII_PER_TOKEN = 2.5
"""Prose has more than 4; ids, JSON and numbers, of which this text is full, some 3."""

TOKENS_PER_OTHER = 1.3
"""A Chinese character takes one token with newer vocabularies and up to two with older ones."""

_NAME = re.compile(r"[A-Za-z0-9_.$]{1,150}")
_ID = re.compile(r"[A-Za-z0-9_.\-]{1,40}")


@dataclass(frozen=True, slots=True)
class Element:
    """A numbered line's thing.

    ``selector`` named exactly it on this look; None: nothing does. ``note``: why it may not next time, a clause; empty
    if it should last. ``words`` are the screen's own, normalised, labels joined by ``|``: quote them before a model
    reads them. ``bounds`` is the visible part. ``danger``: the word on it, in it or around it that speaks of an effect
    which cannot be undone, else empty.
    """

    number: int
    selector: Selector | None
    note: str
    words: str
    kind: str
    bounds: Bounds
    danger: str
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """A numbered look. ``elements`` are those that ``text`` lists, by their number from 1."""

    number: int
    snapshot_id: str
    text: str
    elements: Mapping[int, Element]


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of one node: its text or its description, normalised, and its id where it should last."""

    text: str
    described: bool
    id: str


@dataclass(frozen=True, slots=True)
class _Seen:
    thing: Thing
    words: tuple[_Words, ...]
    holds: str
    states: tuple[str, ...]
    name: Suggestion | None
    danger: str


def observe(snapshot: Snapshot, *, number: int, words: EffectWords) -> Observation:
    """What a snapshot shows, as the ``number``-th observation of an exploration.

    Raises:
        ScreenUnreadableError: the snapshot's window is not a hierarchy.
    """
    matcher = snapshot.matcher()
    found = things_on(matcher)
    namer = Namer(matcher)
    seen = [_seen(thing, matcher, namer, words) for thing in found.all]
    header = _header(matcher.screen, number)
    room = MAX_TOKENS - _tokens("\n".join(header))
    listed, lines = _fitting(seen, room)
    elements = {place: _element(place, each, matcher) for place, each in enumerate(listed, 1)}
    text = "\n".join([*header, *lines, *_footer(matcher.screen, found, seen, listed)])
    return Observation(number, f"s{number}", text, elements)


def estimated_tokens(text: str) -> float:
    """About how many tokens a text of an observation is; rather too many than too few."""
    return _tokens(text)


# What is seen of a thing ----------------------------------------------------------------------------------------------


def _seen(thing: Thing, matcher: Matcher, namer: Namer, words: EffectWords) -> _Seen:
    node = thing.node
    return _Seen(
        thing=thing,
        words=_words(thing),
        holds=normalise(held_text(node)) if is_field(node) and not node.password else "",
        states=tuple(_states(thing, matcher)),
        name=namer.name(thing),
        danger=danger_on(thing, words),
    )


def _words(thing: Thing) -> tuple[_Words, ...]:
    """What a thing is called, without repetitions: its own words, then those of its labels. Never what a field holds."""
    node = thing.node
    asked = [_Words(normalise(node.hint), described=False, id=_lasting_id(node))] if is_field(node) else []
    own = [] if is_field(node) else [_Words(normalise(node.text), described=False, id=_lasting_id(node))]
    own.append(_Words(normalise(node.description), described=True, id=_lasting_id(node)))
    inner = [] if node.password else [said for label in thing.labels for said in _said(label)]
    distinct: dict[str, _Words] = {}
    for each in [*asked, *own, *inner]:
        if each.text:
            distinct.setdefault(each.text, each)
    return tuple(distinct.values())


def _said(node: Node) -> Iterable[_Words]:
    yield _Words(normalise(node.text), described=False, id=_lasting_id(node))
    yield _Words(normalise(node.description), described=True, id=_lasting_id(node))


def _states(thing: Thing, matcher: Matcher) -> Iterable[str]:
    node, turned = thing.node, thing.toggle or thing.node
    if not node.enabled:
        yield "disabled"
    if turned.checkable:
        yield "checked" if turned.checked else "unchecked"
    if node.selected:
        yield "selected"
    if node.focused or any(part.focused for part in thing.parts):
        yield "focused"
    if node.password:
        yield "password"
    if node.scrollable and thing.kind != "list":
        yield "scrollable"
    if node.long_clickable and not node.clickable:
        yield "long press"
    if not thing.usable:
        return
    keyboard = matcher.screen.keyboard
    if keyboard is not None and keyboard.contains(*matcher.visible_bounds(node).center):
        yield "under the keyboard"
    elif isinstance(touch_point(matcher, node), Covered):
        yield "covered"


def _lasting_id(node: Node) -> str:
    short = node.resource_id.rpartition(":id/")[2]
    return short if _ID.fullmatch(short) and not made_up_id(short) else ""


def _element(number: int, seen: _Seen, matcher: Matcher) -> Element:
    return Element(
        number=number,
        selector=seen.name.selector if seen.name is not None else None,
        note=seen.name.note if seen.name is not None else "",
        words=" | ".join(each.text for each in seen.words),
        kind=seen.thing.kind,
        bounds=matcher.visible_bounds(seen.thing.node),
        danger=seen.danger,
        states=seen.states,
    )


# The text -------------------------------------------------------------------------------------------------------------


def _header(screen: Screen, number: int) -> list[str]:
    where = _java_name(screen.package) if screen.package else "no app in front"
    if screen.activity:
        where += f" {_java_name(screen.activity.removeprefix(screen.package) if screen.package else screen.activity)}"
    facts = [where, f"{screen.display.right - screen.display.left}x{screen.display.bottom - screen.display.top}"]
    if screen.keyboard is not None:
        facts.append("keyboard shown")
    if screen.over:
        facts.append(f"{_count(len(screen.over), 'other window')} over it")
    return [f"Screen {number}: {', '.join(facts)}", FROM_THE_SCREEN]


def _footer(screen: Screen, found: Things, seen: Sequence[_Seen], listed: Sequence[_Seen]) -> list[str]:
    lines: list[str] = []
    if screen.root is None:
        lines.append("No window of an app is in front, so nothing can be named.")
    elif not seen:
        lines.append("Nothing in this window has words or can be used by name: look at the picture.")
    kept = {id(each) for each in listed}
    missing = Counter(each.thing.usable for each in seen if id(each) not in kept)
    if missing:
        left_out = [_count(missing[False], "text")] if missing[False] else []
        left_out += [f"{_count(missing[True], 'thing')} that can be used"] if missing[True] else []
        lines.append(
            f"Left out, for there is too much on this screen: {' and '.join(left_out)}. Search for them by text."
        )
    if found.frames:
        lines.append(f"Not listed: {_count(found.frames, 'frame')} around a listed button.")
    return lines


def _fitting(seen: Sequence[_Seen], room: float) -> tuple[list[_Seen], list[str]]:
    """What is listed, with its lines: all, else all with shorter texts, else what can be used before what says."""
    listed = list(seen)
    for most in (MAX_QUOTED, MAX_TIGHT):
        lines = [_line(number, each, most) for number, each in enumerate(listed, 1)]
        if sum(map(_tokens, lines)) <= room:
            return listed, lines
    kept: set[int] = set()
    for each, line in sorted(zip(listed, lines, strict=True), key=lambda pair: not pair[0].thing.usable):
        cost = _tokens(line)
        if cost <= room:
            room -= cost
            kept.add(id(each))
    listed = [each for each in listed if id(each) in kept]
    return listed, [_line(number, each, MAX_TIGHT) for number, each in enumerate(listed, 1)]


def _line(number: int, seen: _Seen, most: int) -> str:
    node = seen.thing.node
    selector = _shown_selector(seen, most)
    parts = [f"{number} {seen.thing.kind}{'!' if seen.danger else ''}"]
    by_id = seen.name is not None and bool(selector) and seen.name.selector.resource_id is not None
    for each in seen.words:
        identity = f"#{each.id}" if each.id and not by_id else ""
        parts.append(f"{'desc ' if each.described else ''}{quoted(each.text, most=most)}{identity}")
    if not seen.words and not by_id and (identity := _lasting_id(node)):
        parts.append(f"#{identity}")
    if seen.holds:
        parts.append(f"holds {quoted(seen.holds, most=most)}")
    if seen.states:
        parts.append(f"({', '.join(seen.states)})")
    if selector:
        parts.append(selector)
    return " ".join(parts)


def _shown_selector(seen: _Seen, most: int) -> str:
    """The arrow and the selector; only ``~`` or nothing where the first words alone say which it is."""
    if seen.name is None:
        return "-> none"
    given = seen.name.selector.model_dump(mode="json", by_alias=True, exclude_none=True)
    first = seen.words[0] if seen.words else None
    if first is not None and quoted(first.text, most=most) == quoted(first.text, most=None):
        meant = {"description" if first.described else "text": first.text}
        if given == meant and not is_field(seen.thing.node):
            return "~" if seen.name.note else ""
    return f"{'~>' if seen.name.note else '->'} {quoted_json(given)}"


def _java_name(name: str) -> str:
    return name if _NAME.fullmatch(name) else quoted(name)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _tokens(text: str) -> float:
    plain = sum(character.isascii() for character in text)
    return plain / ASCII_PER_TOKEN + (len(text) - plain) * TOKENS_PER_OTHER
