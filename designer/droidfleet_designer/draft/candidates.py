"""What a selector without evidence may have meant: elements that were seen, in words and with selectors of their own.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from droidfleet_designer.draft.looks import Look
from droidfleet_designer.observation.naming import written
from droidfleet_designer.observation.quoting import quoted_json
from droidfleet_shared.protocol.selector import PATTERN_FIELDS, RELATIONS, TEXT_FIELDS, Selector
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.node import Node

MAX_CANDIDATES = 5
MAX_LOOKS = 20
"""Distinct screens on which something alike is looked for, the newest first."""

MAX_COMPARED = 200
"""Characters of a text that is compared: the cost of a comparison grows with the square."""

ALIKE = 0.6
"""Of 1: one or two letters of a word, or a word of a sentence, differ."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An element that was seen. ``selector``: JSON as a task writes it; empty: nothing names it."""

    look: str
    element: str
    selector: str


def told(candidates: Sequence[Candidate], *, otherwise: str) -> str:
    """The candidates for a model, or what to do where there are none."""
    if not candidates:
        return otherwise
    return "Seen were: " + "; ".join(map(_line, candidates)) + "."


def _line(candidate: Candidate) -> str:
    name = f"is named by {candidate.selector}" if candidate.selector else "has no name of its own"
    return f"on {candidate.look} {candidate.element}, which {name}"


class Candidates:
    """Finds candidates on the looks of one exploration, the newest first."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self._looks = looks[:MAX_LOOKS]

    def of(self, look: Look, nodes: Iterable[Node]) -> list[Candidate]:
        """The first of these nodes."""
        return [_candidate(look, node) for node, _ in zip(nodes, range(MAX_CANDIDATES), strict=False)]

    def like(self, selector: Selector) -> list[Candidate]:
        """Those whose words are most like the selector's; none where it has none."""
        wanted = [text.casefold()[:MAX_COMPARED] for text in _texts(selector)]
        if not wanted:
            return []
        best: dict[str, tuple[float, Look, Node]] = {}
        for look in self._looks:
            for node in look.matcher.visible_nodes():
                for said in _said(node):
                    score = max(_alike(each, said) for each in wanted)
                    if score >= ALIKE and (said not in best or best[said][0] < score):
                        best[said] = (score, look, node)
        ranked = sorted(best.values(), key=lambda each: -each[0])
        return [_candidate(look, node) for _, look, node in ranked[:MAX_CANDIDATES]]


def _candidate(look: Look, node: Node) -> Candidate:
    name = next(iter(look.suggester.suggest(node).offered), None)
    return Candidate(look.id, look.called(node), quoted_json(written(name.selector)) if name is not None else "")


def _texts(selector: Selector) -> Iterator[str]:
    """What the selector looks for, its relations' first where it has nothing of its own."""
    for field, value in selector.given().items():
        if field in (*TEXT_FIELDS, *PATTERN_FIELDS, "resourceId") and isinstance(value, str):
            yield value.rpartition(":id/")[2]
    for relation in RELATIONS:
        inner = selector.given().get(relation)
        if isinstance(inner, Selector):
            yield from _texts(inner)


def _said(node: Node) -> Iterator[str]:
    for text in (node.text, node.description, node.hint, node.resource_id.rpartition(":id/")[2]):
        if normal := normalise(text).casefold():
            yield normal[:MAX_COMPARED]


def _alike(wanted: str, said: str) -> float:
    if wanted in said or said in wanted:
        return ALIKE + (1.0 - ALIKE) * min(len(wanted), len(said)) / max(len(wanted), len(said))
    match = SequenceMatcher(None, wanted, said, autojunk=False)
    # The cheap bounds first: most texts have nothing in common.
    return match.ratio() if match.real_quick_ratio() >= ALIKE and match.quick_ratio() >= ALIKE else 0.0
