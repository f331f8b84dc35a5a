"""One look as a model reads it, with numbers by which it may name what it saw. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from droidfleet_designer.observation.elements import saying, things_on
from droidfleet_designer.observation.lines import MAX_TOKENS, estimated_tokens, first, fitting, footer, header
from droidfleet_designer.observation.naming import Namer
from droidfleet_designer.observation.seen import Seen, see
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Element:
    """A numbered line's thing.

    ``selector`` named exactly it on this look; None: nothing does. `naming.written` is how a step writes it.
    ``note``: why it may not next time, a clause; empty if it should last. ``words`` are the screen's own, normalised,
    labels joined by ``|``: quote them before a model reads them. ``bounds`` is the visible part. ``danger``: the word
    on it, in it or around it that speaks of an effect which cannot be undone, else empty.
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


def observe(snapshot: Snapshot, *, number: int, words: EffectWords, containing: str = "") -> Observation:
    """What a snapshot shows, as the ``number``-th observation of an exploration.

    ``containing``: only the things that say this, in any case.

    Raises:
        ScreenUnreadableError: the snapshot's window is not a hierarchy.
    """
    matcher = snapshot.matcher()
    found = things_on(matcher)
    if containing:
        found = saying(found, containing)
    namer = Namer(matcher)
    seen = [see(thing, matcher, namer, words) for thing in first(found.all)]
    above = header(matcher.screen, number)
    room = MAX_TOKENS - estimated_tokens("\n".join(above))
    listed, lines = fitting(seen, room)
    elements = {place: _element(place, each, matcher) for place, each in enumerate(listed, 1)}
    text = "\n".join([*above, *lines, *footer(matcher.screen, found, listed)])
    return Observation(number, f"s{number}", text, elements)


def _element(number: int, seen: Seen, matcher: Matcher) -> Element:
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
