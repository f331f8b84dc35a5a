"""Ready-made selectors for the nodes of one screen, and why others would not do. Pure.

Offered is only what the `Matcher` itself answers with exactly that node; never a point, never an xpath. In this order,
each kind only where those before it gave none that lasts:

1. one field: ``text``, ``description``, ``resourceId``, ``hint``, or the lasting beginning of a changing text;
2. two fields, then one with the class or with ``clickable``;
3. a relation: ``within`` a named node, ``has`` a named one, beside or under one of its row, ``within`` a row that has
   one, beside or under any;
4. the class alone, and ``index``, which count on there being no further such node.

What is unique now and will not last (a price, an id that was made up) is offered after what lasts, and says why.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Literal

from droidfleet_shared.protocol.selector import MAX_INDEX, Selector
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.matching import Ambiguous, Matched, Matcher, in_one_column, on_one_line
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.stability import changing_text, lasting_prefix, made_up_id

MAX_OFFERED = 6
MAX_REJECTED = 6
MAX_LEVELS = 8
"""Ancestors that are tried as a frame; further up a frame holds most of the screen."""

MAX_ANCHORS = 4
"""Neighbours that are tried in each direction, the nearest first."""

MAX_RELATED = 3
"""Selectors with a relation for one node: each costs a match."""

MAX_CHARACTERS = 200
"""Of a text in a selector; whole paragraphs name nothing that anybody can read."""

_COUNTS = "counts on there being no further such node"
_IN_FIELD = "it is what a field holds or asks for, and changes when somebody types"
_FIELDS = ("EditText", "AutoCompleteTextView")

Fields = tuple[tuple[str, str | bool], ...]
"""Literal fields of a selector, by their protocol names."""

Place = int
"""A node's number in document order."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A selector that names exactly the node. ``note``: why it may not next time, a clause; empty if it should last."""

    selector: Selector
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A selector that comes to mind and does not name the node alone; ``why`` is a clause for people."""

    selector: Selector
    why: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What there is for one node, the best first. Both are empty for a node that nobody sees."""

    offered: tuple[Suggestion, ...] = ()
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class _Base:
    fields: Fields
    members: frozenset[Place]
    note: str = ""


_Relation = Literal["within", "has", "rightOf", "below", "leftOf", "above"]


class Suggester:
    """Suggestions for any number of nodes of one screen; what they share is computed once."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        root = matcher.screen.root
        self._nodes: list[Node] = list(root.walk()) if root is not None else []
        self._place = {id(node): place for place, node in enumerate(self._nodes)}
        self._end = self._ends()
        self._visible = {self._place[id(node)] for node in matcher.visible_nodes()}
        self._groups: dict[tuple[str, str | bool], frozenset[Place]] = self._grouped()
        self._known_bases: dict[Place, list[_Base]] = {}
        self._names: dict[Place, Selector | None] = {}
        self._anchors: list[tuple[Place, Selector, Bounds]] | None = None

    def suggest(self, node: Node) -> Suggestions:
        """The suggestions for a node of this screen."""
        place = self._place[id(node)]
        if place not in self._visible:
            return Suggestions()
        bases = self._bases(place)
        rejected = [
            Rejected(_selector(base.fields), _matches(base.fields, len(base.members)))
            for base in bases
            if len(base.members) > 1
        ]
        offered: list[Suggestion] = []
        for tier, most in (
            (self._single, MAX_OFFERED),
            (self._pairs, MAX_OFFERED),
            (self._related, MAX_RELATED),
            (self._counted, MAX_OFFERED),
        ):
            fitting = (each for each in tier(place, bases) if self._names_it(each.selector, node))
            offered += islice(fitting, most)
            if any(not each.note for each in offered):
                break
        # By whether they last; else as they came.
        offered.sort(key=lambda each: bool(each.note))
        return Suggestions(tuple(offered[:MAX_OFFERED]), tuple(rejected[:MAX_REJECTED]))

    # What is seen of a node ---------------------------------------------------------------------------------------

    def _bases(self, place: Place) -> list[_Base]:
        """What may be said of a node in one field, the best first."""
        if place not in self._known_bases:
            self._known_bases[place] = [
                base for base in self._said(place) if len(str(base.fields[0][1])) <= MAX_CHARACTERS
            ]
        return self._known_bases[place]

    def _said(self, place: Place) -> Iterator[_Base]:
        node = self._nodes[place]
        text = normalise(node.text)
        if text and not (_is_field(node) or node.password):
            note = _IN_FIELD if self._in_field(node) else changing_text(text)
            yield self._base(("text", text), note)
            prefix = lasting_prefix(text) if note and note != _IN_FIELD else ""
            if prefix:
                members = (each for each in self._visible if normalise(self._nodes[each].text).startswith(prefix))
                yield _Base((("textStartsWith", prefix),), frozenset(members))
        description = normalise(node.description)
        if description:
            yield self._base(("description", description), changing_text(description))
        if node.resource_id:
            short = _short(node.resource_id)
            note = made_up_id(short)
            yield self._base(("resourceId", short), note)
            if self._members(("resourceId", node.resource_id)) != self._members(("resourceId", short)):
                yield self._base(("resourceId", node.resource_id), note)
        hint = normalise(node.hint)
        if hint:
            yield self._base(("hint", hint), changing_text(hint))

    def _base(self, field: tuple[str, str], note: str) -> _Base:
        return _Base((field,), self._members(field), note)

    @staticmethod
    def _in_field(node: Node) -> bool:
        """Whether the node stands inside a text field, as some toolkits draw what was typed."""
        above = node.parent
        while above is not None and not _is_field(above):
            above = above.parent
        return above is not None

    def _members(self, field: tuple[str, str | bool]) -> frozenset[Place]:
        return self._groups.get(field, frozenset())

    def _class(self, place: Place) -> _Base | None:
        field = ("className", self._nodes[place].class_name)
        return _Base((field,), self._members(field), _COUNTS) if field[1].strip() else None

    # The tiers ----------------------------------------------------------------------------------------------------

    def _single(self, place: Place, bases: list[_Base]) -> Iterator[Suggestion]:
        for base in bases:
            if len(base.members) == 1:
                yield Suggestion(_selector(base.fields), base.note)

    def _pairs(self, place: Place, bases: list[_Base]) -> Iterator[Suggestion]:
        several = [base for base in bases if len(base.members) > 1]
        also = [self._class(place), *self._clickable(place)]
        pairs = [*combinations(several, 2), *((base, more) for more in also if more is not None for base in several)]
        for one, other in pairs:
            if one.fields[0][0] != other.fields[0][0] and len(one.members & other.members) == 1:
                note = one.note or (other.note if other.note != _COUNTS else "")
                yield Suggestion(_selector(one.fields + other.fields), note)

    def _clickable(self, place: Place) -> Iterator[_Base]:
        if self._nodes[place].clickable:
            yield _Base((("clickable", True),), self._members(("clickable", True)))

    def _related(self, place: Place, bases: list[_Base]) -> Iterator[Suggestion]:
        own_class = self._class(place)
        for base in [*(base for base in bases if not base.note), *([own_class] if own_class is not None else [])]:
            for relation, other in self._relations(place, base):
                yield Suggestion(_selector(base.fields, relation, other))

    def _counted(self, place: Place, bases: list[_Base]) -> Iterator[Suggestion]:
        own_class = self._class(place)
        if own_class is not None and len(own_class.members) == 1:
            yield Suggestion(_selector(own_class.fields), f"it {_COUNTS}")
        counted = next((base for base in [*bases, *([own_class] if own_class else [])] if len(base.members) > 1), None)
        if counted is None:
            return
        # The matcher's own order, not one of ours that might differ.
        outcome = self._matcher.match(_selector(counted.fields), touch=False)
        for index, node in enumerate(outcome.candidates if isinstance(outcome, Ambiguous) else ()):
            if node is self._nodes[place] and index <= MAX_INDEX:
                selector = _selector(counted.fields).model_copy(update={"index": index})
                yield Suggestion(
                    selector, "it counts in reading order, so another match before it changes what it means"
                )

    # Relations ----------------------------------------------------------------------------------------------------

    def _relations(self, place: Place, base: _Base) -> Iterator[tuple[_Relation, Selector]]:
        frames = [up for up in self._above(place) if len(self._inside(base.members, up)) == 1]
        for up in frames:
            if (name := self._name(up)) is not None:
                yield "within", name
                break
        for anchor, name, _ in self._anchors_in(place):
            if self._holders(base.members, anchor) == {place}:
                yield "has", name
                break
        # The outermost frame that holds it alone is its row or card: neighbours beyond belong to something else.
        row = range(frames[-1], self._end[frames[-1]]) if frames else range(0)
        yield from self._beside(place, base.members, lambda anchor: anchor in row)
        for up in frames:
            if (name := self._row(up, apart_from=place)) is not None:
                yield "within", name
                break
        yield from self._beside(place, base.members, lambda anchor: anchor not in row)

    def _above(self, place: Place) -> list[Place]:
        """Visible ancestors, the nearest first; the window's root is no frame."""
        above: list[Place] = []
        node = self._nodes[place].parent
        while node is not None and node.parent is not None and len(above) < MAX_LEVELS:
            up = self._place[id(node)]
            if up in self._visible:
                above.append(up)
            node = node.parent
        return above

    def _row(self, up: Place, *, apart_from: Place) -> Selector | None:
        """The frame, named by a label in it: ``{"resourceId": "row", "has": {"text": "Green tea"}}``."""
        bases = [base for base in self._bases(up) if not base.note and base.fields[0][0] == "resourceId"]
        own_class = self._class(up)
        for base in [*bases, *([own_class] if own_class is not None else [])]:
            for anchor, name, _ in self._anchors_in(up):
                apart = not apart_from <= anchor < self._end[apart_from]
                if apart and self._holders(base.members, anchor) == {up}:
                    return _selector(base.fields, "has", name)
        return None

    def _beside(
        self, place: Place, members: frozenset[Place], wanted: Callable[[Place], bool]
    ) -> Iterator[tuple[_Relation, Selector]]:
        mine = self._bounds(place)
        for relation, holds in _SIDES:
            near = [
                (_distance(mine, bounds), anchor, name, bounds)
                for anchor, name, bounds in self._labels()
                if anchor != place and wanted(anchor) and holds(mine, bounds)
            ]
            # No two have one number, so selectors are never compared.
            for _, _, name, bounds in sorted(near)[:MAX_ANCHORS]:
                if [each for each in members if holds(self._bounds(each), bounds)] == [place]:
                    yield relation, name
                    break

    # What is shared -----------------------------------------------------------------------------------------------

    def _name(self, place: Place) -> Selector | None:
        """A lasting selector of one or two fields; None when there is none."""
        if place not in self._names:
            bases = self._bases(place)
            names = (each for tier in (self._single, self._pairs) for each in tier(place, bases) if not each.note)
            self._names[place] = next(
                (each.selector for each in names if self._names_it(each.selector, self._nodes[place])), None
            )
        return self._names[place]

    def _labels(self) -> list[tuple[Place, Selector, Bounds]]:
        """The nodes with a text or a description that have a lasting name, in document order."""
        if self._anchors is None:
            self._anchors = [
                (place, name, self._bounds(place))
                for place in sorted(self._visible)
                if self._nodes[place].text or self._nodes[place].description
                if (name := self._name(place)) is not None
            ]
        return self._anchors

    def _anchors_in(self, place: Place) -> list[tuple[Place, Selector, Bounds]]:
        """The labels below a node, the first few."""
        labels = self._labels()
        first = bisect(labels, place, key=lambda label: label[0])
        return [label for label in labels[first : first + MAX_ANCHORS] if label[0] < self._end[place]]

    def _names_it(self, selector: Selector, node: Node) -> bool:
        """Whether the matcher answers with this node alone; one that must be touched it then finds too, if enabled."""
        outcome = self._matcher.match(selector, touch=False)
        return isinstance(outcome, Matched) and outcome.node is node

    def _holders(self, members: frozenset[Place], anchor: Place) -> set[Place]:
        return {each for each in members if each < anchor < self._end[each]}

    def _inside(self, members: frozenset[Place], up: Place) -> list[Place]:
        return [each for each in members if up < each < self._end[up]]

    def _bounds(self, place: Place) -> Bounds:
        return self._matcher.visible_bounds(self._nodes[place])

    def _ends(self) -> list[Place]:
        """For each node the number after the last one below it."""
        ends = [place + 1 for place in range(len(self._nodes))]
        for place in reversed(range(len(self._nodes))):
            parent = self._nodes[place].parent
            if parent is not None:
                up = self._place[id(parent)]
                ends[up] = max(ends[up], ends[place])
        return ends

    def _grouped(self) -> dict[tuple[str, str | bool], frozenset[Place]]:
        groups: dict[tuple[str, str | bool], set[Place]] = {}
        for place in self._visible:
            node = self._nodes[place]
            seen: dict[tuple[str, str | bool], str] = {
                ("text", normalise(node.text)): node.text,
                ("description", normalise(node.description)): node.description,
                ("hint", normalise(node.hint)): node.hint,
                ("resourceId", node.resource_id): node.resource_id,
                ("resourceId", _short(node.resource_id)): node.resource_id,
                ("className", node.class_name): node.class_name,
                ("clickable", node.clickable): "clickable",
            }
            for field, raw in seen.items():
                if raw:
                    groups.setdefault(field, set()).add(place)
        return {field: frozenset(places) for field, places in groups.items()}


def _right_of(mine: Bounds, anchor: Bounds) -> bool:
    return mine.left >= anchor.right and on_one_line(mine, anchor)


def _left_of(mine: Bounds, anchor: Bounds) -> bool:
    return mine.right <= anchor.left and on_one_line(mine, anchor)


def _below(mine: Bounds, anchor: Bounds) -> bool:
    return mine.top >= anchor.bottom and in_one_column(mine, anchor)


def _above(mine: Bounds, anchor: Bounds) -> bool:
    return mine.bottom <= anchor.top and in_one_column(mine, anchor)


_SIDES: tuple[tuple[_Relation, Callable[[Bounds, Bounds], bool]], ...] = (
    ("rightOf", _right_of),
    ("below", _below),
    ("leftOf", _left_of),
    ("above", _above),
)


def _distance(mine: Bounds, anchor: Bounds) -> int:
    across = max(mine.left - anchor.right, anchor.left - mine.right, 0)
    down = max(mine.top - anchor.bottom, anchor.top - mine.bottom, 0)
    return across + down


def _is_field(node: Node) -> bool:
    """Whether the node takes text: all common toolkits call it so."""
    return node.class_name.endswith(_FIELDS)


def _short(resource_id: str) -> str:
    """The part of an id that follows its ``:id/``, or all of it."""
    return resource_id.rpartition(":id/")[2] or resource_id


def _selector(fields: Fields, relation: _Relation | None = None, other: Selector | None = None) -> Selector:
    given: dict[str, object] = dict(fields)
    if relation is not None:
        given[relation] = other
    return Selector.model_validate(given)


def _matches(fields: Fields, count: int) -> str:
    said = " and ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in fields)
    return f"{said} matches {count} nodes"
