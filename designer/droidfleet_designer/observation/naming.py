"""By which selector a thing of a screen is named, and which word on it warns of an effect that lasts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from droidfleet_designer.observation.elements import MAX_LABELS, Thing, holder_of, is_field, says
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.matching import Matched, Matcher
from droidfleet_shared.screen.node import Node
from droidfleet_shared.screen.stability import changing_text
from droidfleet_shared.screen.suggest import MAX_CHARACTERS, Suggester, Suggestion
from droidfleet_shared.screen.touch import Covered, touch_point

ONLY_LIST = "it counts on there being no other list"

LEVELS = 3
"""Ancestors in which the words for a wordless button are looked for: beyond them is another row."""


def written(selector: Selector) -> dict[str, JsonValue]:
    """The selector as a task writes it: its JSON fields, and a ``${`` of the screen so that it is no reference."""
    fields: dict[str, JsonValue] = selector.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {name: _literal(value) for name, value in fields.items()}


class Namer:
    """Names the things of one screen."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._suggester = Suggester(matcher)

    def name(self, thing: Thing) -> Suggestion | None:
        """The best selector: by a text where one will do, the thing's own or a label's; None: there is none.

        A row with a switch is named by the switch: it tells whether it is on, and a tap on it reaches the row.
        """
        return self._by_switch(thing) or self._by_words(thing) or self._otherwise(thing)

    def _by_switch(self, thing: Thing) -> Suggestion | None:
        if thing.toggle is None or not self._stands_for(thing.toggle, thing.node):
            return None
        best = self._best(thing.toggle)
        return best if best is not None and not best.note else None

    def _by_words(self, thing: Thing) -> Suggestion | None:
        if is_field(thing.node):
            return None
        if (own := self._plain(thing.node)) is not None:
            return own
        named = ((label, self._plain(label)) for label in thing.labels)
        return next((name for label, name in named if name is not None and self._stands_for(label, thing.node)), None)

    def _otherwise(self, thing: Thing) -> Suggestion | None:
        own = self._best(thing.node)
        # What a list holds now scrolls away.
        if own is not None and not own.note and not (thing.node.scrollable and own.selector.has is not None):
            return own
        if thing.node.scrollable:
            return self._if_it_names(Selector(scrollable=True), thing.node, note=ONLY_LIST) or own
        named = (name.selector for label in thing.labels if (name := self._plain(label)) is not None)
        holding = (self._if_it_names(Selector(clickable=True, has=name), thing.node) for name in named)
        return next((each for each in holding if each is not None), own)

    def _plain(self, node: Node) -> Suggestion | None:
        """The node's text or description alone, where that names it and should last."""
        text, description = normalise(node.text), normalise(node.description)
        if text and not node.password and len(text) <= MAX_CHARACTERS and not changing_text(text):
            found = self._if_it_names(Selector(text=text), node)
            if found is not None:
                return found
        if description and len(description) <= MAX_CHARACTERS and not changing_text(description):
            return self._if_it_names(Selector(description=description), node)
        return None

    def _if_it_names(self, selector: Selector, node: Node, *, note: str = "") -> Suggestion | None:
        outcome = self._matcher.match(selector, touch=False)
        return Suggestion(selector, note) if isinstance(outcome, Matched) and outcome.node is node else None

    def _best(self, node: Node) -> Suggestion | None:
        return next(iter(self._suggester.suggest(node).offered), None)

    def _stands_for(self, part: Node, whole: Node) -> bool:
        """Whether a tap on the part is one on the whole, and both can be tapped or neither."""
        return part.enabled == whole.enabled and not isinstance(touch_point(self._matcher, part), Covered)


def danger_on(thing: Thing, words: EffectWords) -> str:
    """The first word that speaks of an effect which cannot be undone, on the thing, in it, or around it; else empty.

    What somebody typed into a field does not count, nor does a list's content.
    """
    return next((word for text in _texts(thing) if (word := words.found_in(text))), "")


def _literal(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _literal(each) for name, each in value.items()}
    return value.replace("${", "$${") if isinstance(value, str) else value


def _texts(thing: Thing) -> Iterator[str]:
    node = thing.node
    yield from _of(node, typed=is_field(node))
    for part in thing.parts:
        yield from _of(part, typed=False)
    around = holder_of(node)
    if around is not None and not around.scrollable:
        yield from _of(around, typed=is_field(around))
    if thing.usable and not (thing.labels or says(node) or node.scrollable):
        yield from _beside(node)


def _of(node: Node, *, typed: bool) -> Iterator[str]:
    if not typed:
        yield node.text
    yield node.description
    yield node.hint
    yield node.resource_id.rpartition("/")[2]


def _beside(node: Node) -> Iterator[str]:
    """The words next to a button without any, as a bin stands beside the name of what it deletes."""
    above = node.parent
    for _ in range(LEVELS):
        if above is None or above.parent is None:
            return
        labels = [each for each in above.walk() if says(each)]
        if labels:
            for label in labels if len(labels) <= MAX_LABELS else ():
                yield label.text
                yield label.description
            return
        above = above.parent
