"""Which steps of a task do what cannot be undone, and how that is kept from happening unseen. Pure.

A step is judged by what withholds the same call while exploring: the words of its selector, of the element that the
selector matched, and Enter outside a search. Its `probability` is lowered until a person sets it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Evidence, Mark
from droidfleet_designer.observation.observe import Element, Observation, observe
from droidfleet_designer.tools import guard
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.pointers import resolve
from droidfleet_shared.protocol.steps import (
    ClickStep,
    DragStep,
    InputStep,
    KeyStep,
    LongClickStep,
    SelectOptionStep,
    Step,
    SwipeStep,
)
from droidfleet_shared.protocol.steps.touching import KeyName
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.tree import walk
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.snapshot import Snapshot

LOWERED_PERCENT = 30
"""What a step that cannot be undone is lowered to: a first run does it seldom, and shows that it is there."""

_LINE_ENDS = ("\n", "\r")

Task = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Marked:
    """A task with its marks. ``task`` is a copy in which the marked steps are lowered."""

    task: Task
    marks: tuple[Mark, ...]


def marked(
    document: Task,
    task: TaskTemplate,
    *,
    evidence: Iterable[Evidence],
    snapshots: Mapping[str, Snapshot],
    words: EffectWords,
    before: Iterable[Mark] | None = None,
) -> Marked:
    """Marks the steps of a valid task; ``task`` is the model of ``document``.

    ``before``: the marks that a person has seen. Then the probabilities are the person's, and stay. None: they are the
    model's, and what is marked is lowered.
    """
    known = None if before is None else {each.step_id: each for each in before}
    made = deepcopy(document)
    marks: list[Mark] = []
    judge = _Judge(evidence, snapshots, words)
    for path, step in walk(task.steps):
        why = judge.why(path, step)
        if not why:
            continue
        if known is None:
            lowered, was = step.probability > LOWERED_PERCENT, step.probability
            if lowered:
                raw = resolve(made, path)
                assert isinstance(raw, dict)  # the model was made of it
                raw["probability"] = LOWERED_PERCENT
        else:
            earlier = known.get(step.id)
            was = earlier.probability if earlier is not None else step.probability
            lowered = earlier is not None and earlier.lowered and step.probability <= LOWERED_PERCENT
        marks.append(Mark(step_id=step.id, path=path, why=why, lowered=lowered, probability=was))
    return Marked(made, tuple(marks))


class _Judge:
    """Judges the steps of one task in their order, by what their selectors matched."""

    def __init__(self, evidence: Iterable[Evidence], snapshots: Mapping[str, Snapshot], words: EffectWords) -> None:
        self._proved = {each.path: each for each in evidence}
        self._snapshots = snapshots
        self._words = words
        self._observations: dict[str, Observation] = {}
        self._field: Element | None = None
        """That was typed into last, so that a key goes there."""

    def why(self, path: str, step: Step) -> str:  # noqa: PLR0911 - one for each action
        """Why the step may do what cannot be undone, a clause; empty: nothing says so."""
        raw: Task = step.model_dump(mode="json", by_alias=True, exclude_none=True)
        match step:
            case ClickStep() | LongClickStep():
                return self._touched(f"{path}/selector", raw)
            case SelectOptionStep():
                return self._touched(f"{path}/option", raw)
            case DragStep():
                return self._touched(f"{path}/to", raw) or self._touched(f"{path}/selector", raw)
            case SwipeStep(direction="LEFT" | "RIGHT"):
                dangers = (guard.danger(each) for each, _ in self._elements(f"{path}/selector"))
                return next((each for each in dangers if each), "")
            case InputStep():
                fields = (each for each, _ in self._elements(f"{path}/selector") if each.kind == "field")
                self._field = next(fields, None)
                sends = step.submit or any(end in step.value for end in _LINE_ENDS)
                return (guard.enter(self._field) or guard.by_selector(raw, self._words)) if sends else ""
            case KeyStep(key=KeyName.ENTER):
                return guard.enter(self._field)
            case _:
                return ""

    def _touched(self, path: str, raw: Task) -> str:
        reasons = (guard.on_element(each, raw, seen, self._words) for each, seen in self._elements(path))
        return next((each for each in reasons if each), "") or guard.by_selector(raw, self._words)

    def _elements(self, path: str) -> Iterator[tuple[Element, Observation]]:
        """What a selector matched, as elements: the row around a label as well as the label."""
        proof = self._proved.get(path)
        if proof is None or proof.bounds is None:
            return
        where = Bounds(*proof.bounds)
        seen = self._observation(proof.snapshot)
        for each in seen.elements.values():
            around = each.kind != "list" and "scrollable" not in each.states
            if each.bounds == where or (around and each.bounds.contains(*where.center)):
                yield each, seen

    def _observation(self, name: str) -> Observation:
        if name not in self._observations:
            number = int(name.removeprefix("s"))
            self._observations[name] = observe(self._snapshots[name], number=number, words=self._words)
        return self._observations[name]
