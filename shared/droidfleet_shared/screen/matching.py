"""Decides which node of one screen a selector means. Pure; never picks one of several.

A *candidate* is a node that matches and that a person could see: visible, and its bounds, clipped to the display and to
the scrolling containers around it, have an area. For an action that touches it, it must also be enabled. Rules of
protocol section 5 that need a precise meaning:

- Reading order: by the top edge of the visible part, then the left edge, then document order.
- ``index`` counts all visible matches, enabled or not, so that the choice does not move when a button is switched off.
- ``resourceId`` equals the whole id, or what follows its ``:id/``.
- A relation's own selector must match exactly one visible node of the window (``has``: exactly one below the
  candidate); none makes the whole selector match nothing, several make it ambiguous, whatever else matches.
- ``leftOf: B`` holds for a node that ends where B begins or before, and stands on the same line: the heights of the two
  overlap by at least half of the smaller one. ``rightOf`` is its mirror; ``above`` and ``below`` the same with columns.
  How near the two are plays no part.
- Texts are compared in the normal form of `droidfleet_shared.protocol.text`, the selector's as the dump would write
  them (each half of an emoji is a dot there). In a pattern an emoji means itself or those two dots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from droidfleet_shared.protocol.regexes import compile_pattern
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.text import dump_form, normalise
from droidfleet_shared.screen.node import Bounds, Node, Screen
from droidfleet_shared.screen.sights import NOTHING_SEEN, Sights, is_visual, seen_nodes
from droidfleet_shared.screen.xpath import WindowTree

MAX_XPATH_NODES = 1_500
"""libxml2 has no time limit: the costliest expression that the validator accepts takes a second on so many nodes, and
four times as long on twice as many. Large real screens have some hundreds."""

SAME_LINE_SHARE = 0.5
"""Part of the smaller node's extent that two nodes must share to stand on one line or in one column. Half: baselines of
a label and its field differ by some pixels, and the rows of a dense list must not count as one line."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Exactly one candidate. ``visible_bounds`` is the part of it that can be touched."""

    node: Node
    visible_bounds: Bounds


@dataclass(frozen=True, slots=True)
class NotFound:
    """No candidate. ``reason`` is a clause for people: ``nothing matches`` or finer."""

    reason: str


@dataclass(frozen=True, slots=True)
class Disabled:
    """Only disabled nodes match, and the target must be touched."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several candidates, in reading order: of the selector, or of the relation that ``reason`` names."""

    candidates: tuple[Node, ...]
    reason: str


Outcome = Matched | NotFound | Disabled | Ambiguous

_Predicate = Callable[[Node], bool]


class _UnclearError(Exception):
    """A relation's selector does not name exactly one node; carries the outcome of the whole."""

    def __init__(self, outcome: NotFound | Ambiguous) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class _Matches:
    visible: list[Node]
    hidden: int


class Matcher:
    """Matches any number of selectors against one screen; what they share is computed once, when it is first needed.

    ``sights``: what was seen on the picture of that screen, for visual selectors.
    """

    def __init__(self, screen: Screen, sights: Sights = NOTHING_SEEN) -> None:
        self.screen = screen
        self.sights = sights
        self._nodes: list[Node] = list(screen.root.walk()) if screen.root is not None else []
        self._order = {id(node): position for position, node in enumerate(self._nodes)}
        self._normal: dict[str, str] = {}
        self._clipped: dict[int, Bounds] = {}
        self._tree: WindowTree | None = None

    def match(self, selector: Selector, *, touch: bool) -> Outcome:
        """The one node that the selector means, or why there is none. ``touch``: the target must be enabled."""
        try:
            matches = self._matches(selector, path="")
        except _UnclearError as unclear:
            return unclear.outcome
        visible = matches.visible
        if selector.index is not None:
            if selector.index >= len(visible):
                return NotFound(_none(matches) if not visible else f"index {selector.index} of {len(visible)} matches")
            visible = visible[selector.index : selector.index + 1]
        candidates = [node for node in visible if node.enabled] if touch else visible
        if len(candidates) == 1:
            return Matched(candidates[0], self.visible_bounds(candidates[0]))
        if candidates:
            return Ambiguous(tuple(candidates), f"{len(candidates)} nodes match")
        return Disabled(tuple(visible)) if visible else NotFound(_none(matches))

    def any_visible(self, selector: Selector) -> bool:
        """Whether the selector has at least one visible match (with ``index``: that many).

        A relation that names no single node makes it false: nothing is known to be there.
        """
        try:
            return len(self._matches(selector, path="").visible) > (selector.index or 0)
        except _UnclearError:
            return False

    def all_visible(self, selector: Selector) -> list[Node] | Ambiguous | NotFound:
        """Every visible match in reading order (with ``index``: that one), or which relation is not clear."""
        try:
            visible = self._matches(selector, path="").visible
        except _UnclearError as unclear:
            return unclear.outcome
        return visible if selector.index is None else visible[selector.index : selector.index + 1]

    def inside(self, selector: Selector, around: Node) -> list[Node] | Ambiguous | NotFound:
        """The same below one node; ``index`` counts there."""
        try:
            visible = [node for node in self._matches(selector, path="").visible if _is_below(node, around)]
        except _UnclearError as unclear:
            return unclear.outcome
        return visible if selector.index is None else visible[selector.index : selector.index + 1]

    def in_tree(self, node: Node) -> bool:
        """Whether the node stands in the window's tree; what was seen on the picture does not."""
        return id(node) in self._order

    def visible_bounds(self, node: Node) -> Bounds:
        """The node's bounds, clipped to the display and to the scrolling containers around it."""
        known = self._clipped.get(id(node))
        if known is None:
            known = node.bounds.clipped(self.screen.display)
            above = node.parent
            while above is not None:
                if above.scrollable and above.bounds.area:
                    known = known.clipped(above.bounds)
                above = above.parent
            self._clipped[id(node)] = known
        return known

    def visible_nodes(self) -> Iterable[Node]:
        """Every node that a person could see, in document order."""
        return (node for node in self._nodes if self._is_visible(node))

    # The selector's fields --------------------------------------------------------------------------------------

    def _matches(self, selector: Selector, *, path: str) -> _Matches:
        """All visible matches in reading order, without regard to ``index``.

        Raises:
            _UnclearError: a relation does not name exactly one node.
        """
        if is_visual(selector):
            return _Matches(seen_nodes(selector, self.screen, self.sights), 0)
        if selector.xpath is not None:
            found: list[Node] = self._window_tree().find(selector.xpath)
        else:
            found = self._nodes
            for holds in (*self._literals(selector), *self._relations(selector, path)):
                found = [node for node in found if holds(node)]
            if selector.has is not None:
                found = self._having(found, selector.has, f"{path}has")
        visible = [node for node in found if self._is_visible(node)]
        return _Matches(self._in_reading_order(visible), len(found) - len(visible))

    def _literals(self, selector: Selector) -> list[_Predicate]:
        tests: list[_Predicate] = []
        if (identity := selector.resource_id) is not None:
            suffix = f":id/{identity}"
            tests.append(lambda node: node.resource_id == identity or node.resource_id.endswith(suffix))
        if (class_name := selector.class_name) is not None:
            tests.append(lambda node: node.class_name == class_name)
        if (package := selector.package_name) is not None:
            tests.append(lambda node: node.package == package)
        for name in ("enabled", "checked", "selected", "focused", "clickable", "scrollable", "password"):
            wanted = getattr(selector, name)
            if wanted is not None:
                tests.append(_has_flag(name, wanted))
        tests += self._texts(
            lambda node: node.text,
            selector.text,
            selector.text_contains,
            selector.text_starts_with,
            selector.text_matches,
        )
        tests += self._texts(
            lambda node: node.description,
            selector.description,
            selector.description_contains,
            selector.description_starts_with,
            selector.description_matches,
        )
        tests += self._texts(lambda node: node.hint, selector.hint, None, None, None)
        return tests

    def _texts(
        self,
        read: Callable[[Node], str],
        equal: str | None,
        contains: str | None,
        starts_with: str | None,
        pattern: str | None,
    ) -> list[_Predicate]:
        tests: list[_Predicate] = []
        if equal is not None:
            whole = _wanted(equal)
            tests.append(lambda node: bool(whole) and self._normalised(read(node)) == whole)
        if contains is not None:
            part = _wanted(contains)
            tests.append(lambda node: bool(part) and part in self._normalised(read(node)))
        if starts_with is not None:
            start = _wanted(starts_with)
            tests.append(lambda node: bool(start) and self._normalised(read(node)).startswith(start))
        if pattern is not None:
            compiled = compile_pattern(pattern)
            tests.append(lambda node: compiled.fullmatch(self._normalised(read(node))))
        return tests

    def _normalised(self, raw: str) -> str:
        known = self._normal.get(raw)
        if known is None:
            known = self._normal[raw] = normalise(raw)
        return known

    # Relations --------------------------------------------------------------------------------------------------

    def _relations(self, selector: Selector, path: str) -> list[_Predicate]:
        tests: list[_Predicate] = []
        if selector.within is not None:
            ancestor = self._anchor(selector.within, f"{path}within")
            tests.append(lambda node: _is_below(node, ancestor))
        for name, beside in (
            ("leftOf", selector.left_of),
            ("rightOf", selector.right_of),
            ("above", selector.above),
            ("below", selector.below),
        ):
            if beside is not None:
                anchor = self.visible_bounds(self._anchor(beside, f"{path}{name}"))
                tests.append(self._beside(name, anchor))
        return tests

    def _anchor(self, selector: Selector, path: str) -> Node:
        matches = self._matches(selector, path=f"{path}.")
        visible = matches.visible
        if selector.index is not None:
            visible = visible[selector.index : selector.index + 1]
        if not visible:
            raise _UnclearError(NotFound(f"of the selector in `{path}` {_none(matches)}"))
        if len(visible) > 1:
            raise _UnclearError(
                Ambiguous(tuple(visible), f"the selector in `{path}` must name one node and matches {len(visible)}")
            )
        return visible[0]

    def _beside(self, name: str, anchor: Bounds) -> _Predicate:
        def left(node: Node) -> bool:
            mine = self.visible_bounds(node)
            return mine.right <= anchor.left and on_one_line(mine, anchor)

        def right(node: Node) -> bool:
            mine = self.visible_bounds(node)
            return mine.left >= anchor.right and on_one_line(mine, anchor)

        def above(node: Node) -> bool:
            mine = self.visible_bounds(node)
            return mine.bottom <= anchor.top and in_one_column(mine, anchor)

        def below(node: Node) -> bool:
            mine = self.visible_bounds(node)
            return mine.top >= anchor.bottom and in_one_column(mine, anchor)

        return {"leftOf": left, "rightOf": right, "above": above, "below": below}[name]

    def _having(self, found: list[Node], selector: Selector, path: str) -> list[Node]:
        """Those of ``found`` with exactly one match of ``selector`` below them."""
        below: dict[int, list[Node]] = {}
        for match in self._matches(selector, path=f"{path}.").visible:
            above = match.parent
            while above is not None:
                below.setdefault(id(above), []).append(match)
                above = above.parent
        having: list[Node] = []
        for node in found:
            inner = below.get(id(node), [])
            if selector.index is not None:
                inner = inner[selector.index : selector.index + 1]
            if len(inner) > 1 and self._is_visible(node):
                raise _UnclearError(
                    Ambiguous(tuple(inner), f"the selector in `{path}` must name one node and matches {len(inner)}")
                )
            if inner:
                having.append(node)
        return having

    # Sight and order --------------------------------------------------------------------------------------------

    def _is_visible(self, node: Node) -> bool:
        return node.visible and self.visible_bounds(node).area > 0

    def _in_reading_order(self, nodes: list[Node]) -> list[Node]:
        def place(node: Node) -> tuple[int, int, int]:
            bounds = self.visible_bounds(node)
            return bounds.top, bounds.left, self._order[id(node)]

        return sorted(nodes, key=place)

    def _window_tree(self) -> WindowTree:
        if len(self._nodes) > MAX_XPATH_NODES:
            raise _UnclearError(
                NotFound(
                    f"the window has {len(self._nodes)} nodes, and xpath is not tried on more than {MAX_XPATH_NODES}"
                )
            )
        if self._tree is None:
            self._tree = WindowTree(self.screen)
        return self._tree


def uses_emoji(selector: Selector) -> bool:
    """Whether the selector, or one inside it, holds characters that a dump cannot show: the result must say so."""
    for value in selector.given().values():
        if isinstance(value, Selector):
            if uses_emoji(value):
                return True
        elif isinstance(value, str) and any(ord(character) > 0xFFFF for character in value):
            return True
    return False


def _wanted(text: str) -> str:
    return normalise(dump_form(text))


def _has_flag(name: str, wanted: bool) -> _Predicate:
    return lambda node: getattr(node, name) is wanted


def _is_below(node: Node, ancestor: Node) -> bool:
    above = node.parent
    while above is not None:
        if above is ancestor:
            return True
        above = above.parent
    return False


def on_one_line(one: Bounds, other: Bounds) -> bool:
    """Whether two visible parts stand beside each other: what `leftOf` and `rightOf` ask."""
    shared = min(one.bottom, other.bottom) - max(one.top, other.top)
    return shared > 0 and shared >= SAME_LINE_SHARE * min(one.bottom - one.top, other.bottom - other.top)


def in_one_column(one: Bounds, other: Bounds) -> bool:
    """Whether one visible part stands over the other: what `above` and `below` ask."""
    shared = min(one.right, other.right) - max(one.left, other.left)
    return shared > 0 and shared >= SAME_LINE_SHARE * min(one.right - one.left, other.right - other.left)


def _none(matches: _Matches) -> str:
    if matches.hidden:
        return f"{matches.hidden} matching node{'s are' if matches.hidden > 1 else ' is'} not visible or without area"
    return "nothing matches"
