"""Which steps of a task do what cannot be undone, and how that is kept from happening unseen. Pure.

A step is judged by what withholds the same call while exploring: the words of its selector, of the elements that the
selector matched, and Enter outside a search. Its `probability` is lowered until a person sets it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Mark
from droidfleet_designer.draft.looks import Look, looks_at
from droidfleet_designer.observation.observe import Element, Observation, observe
from droidfleet_designer.tools import guard
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.pointers import resolve
from droidfleet_shared.protocol.selector import Selector
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
from droidfleet_shared.protocol.values import MissingValueError, UnfitValueError, input_texts, resolve_step
from droidfleet_shared.screen.matching import Matched
from droidfleet_shared.screen.snapshot import Snapshot

LOWERED_PERCENT = 30
"""What a step that cannot be undone is lowered to: a first run does it seldom, and shows that it is there."""

MAX_JUDGED = 100
"""Distinct screens on which a step is judged, the newest first."""

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
    judge = _Judge(task, snapshots, words)
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
    """Judges the steps of one task in their order, by what their selectors matched on any screen that was seen: what
    names a harmless button on one may name another on the next."""

    def __init__(self, task: TaskTemplate, snapshots: Mapping[str, Snapshot], words: EffectWords) -> None:
        self._looks = looks_at(snapshots)[:MAX_JUDGED]
        self._words = words
        self._inputs = input_texts(task)
        self._observations: dict[str, Observation] = {}
        self._field: Element | None = None
        """That was typed into last, while nothing else can have the focus: a key goes there."""
        self._field_in = ""
        """The list of steps in which that was."""

    def why(self, path: str, step: Step) -> str:
        """Why the step may do what cannot be undone, a clause; empty: nothing says so."""
        meant = self._meant(step)
        field = self._field if self._field_in == path.rpartition("/")[0] else None
        if step.touches and not isinstance(step, KeyStep):
            self._field = None
        if isinstance(meant, InputStep):
            self._field, self._field_in = self._typed_into(meant.selector), path.rpartition("/")[0]
            field = self._field
        return self._judged(meant, field)

    def _judged(self, step: Step, field: Element | None) -> str:  # noqa: PLR0911 - one for each action
        raw: Task = step.model_dump(mode="json", by_alias=True, exclude_none=True)
        match step:
            case ClickStep() | LongClickStep():
                return self._touched(step.selector, raw)
            case SelectOptionStep():
                return self._touched(step.option, raw) or self._touched(step.selector, raw)
            case DragStep():
                to = self._touched(step.to, raw) if step.to is not None else ""
                return to or self._touched(step.selector, raw)
            case SwipeStep(direction="LEFT" | "RIGHT") if step.selector is not None:
                dangers = (guard.danger(each) for each, _ in self._elements(step.selector))
                return next((each for each in dangers if each), "")
            case InputStep():
                sends = step.submit or any(end in step.value for end in _LINE_ENDS)
                return (guard.enter(field) or guard.by_selector(raw, self._words)) if sends else ""
            case KeyStep(key=KeyName.ENTER):
                return guard.enter(field)
            case KeyStep(key=KeyName.DELETE) if field is None:
                return guard.DELETES
            case _:
                return ""

    def _typed_into(self, selector: Selector) -> Element | None:
        """The field that a selector names; one in which Enter may send, if it names several on different screens."""
        fields = [each for each, _ in self._elements(selector) if each.kind == "field"]
        # One that holds a text does not show its hint any more, and so not what it is for.
        telling = [each for each in fields if each.words] or fields
        return next((each for each in telling if guard.enter(each)), next(iter(telling), None))

    def _meant(self, step: Step) -> Step:
        """The step with the values that are known."""
        try:
            return resolve_step(step, inputs=self._inputs, outputs={})
        except (MissingValueError, UnfitValueError):
            return step

    def _touched(self, selector: Selector, raw: Task) -> str:
        if selector.point is not None:
            return "a point is touched, whatever is there"
        if "${outputs." in selector.model_dump_json():
            return "what is touched is known only when it runs"
        reasons = (guard.on_element(each, raw, seen, self._words) for each, seen in self._elements(selector))
        return next((each for each in reasons if each), "") or guard.by_selector(raw, self._words)

    def _elements(self, selector: Selector) -> Iterator[tuple[Element, Observation]]:
        """What a selector matches, as elements: the row around a label as well as the label."""
        for look in self._looks:
            outcome = look.matcher.match(selector, touch=False)
            if not isinstance(outcome, Matched):
                continue
            where = outcome.visible_bounds
            seen = self._observation(look)
            for each in seen.elements.values():
                around = each.kind != "list" and "scrollable" not in each.states
                if each.bounds == where or (around and each.bounds.contains(*where.center)):
                    yield each, seen

    def _observation(self, look: Look) -> Observation:
        if look.id not in self._observations:
            number = int(look.id.removeprefix("s"))
            self._observations[look.id] = observe(look.snapshot, number=number, words=self._words)
        return self._observations[look.id]
