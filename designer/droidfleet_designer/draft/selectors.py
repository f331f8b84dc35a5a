"""Every selector of a task, with its place and with what the executor asks of it. Pure.

They are found in the models' own fields, so that no field can be forgotten: of one that is not known here it is asked
that it matched something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from pydantic import BaseModel

from droidfleet_shared.protocol.pointers import Place, pointer
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import STEP_FIELDS, ExtractStep, OpenStep, Step, StopAppStep
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.tree import walk


class Asked(Enum):
    """What the executor asks of a selector on the look on which it decides."""

    ONE_TO_TOUCH = auto()
    """Exactly one enabled node."""
    ONE = auto()
    """Exactly one node."""
    SOME = auto()
    """At least one node, or (`gone`, `unlessVisible`) what will be there at some time."""
    INSIDE = auto()
    """Exactly one node inside that of the step."""


TARGETS = frozenset({"selector", "option", "to"})
"""The fields of a step that name the one node which it means."""

_NOT_TOUCHED = frozenset({"SCROLL", "SWIPE"})
"""A finger moves over their area, enabled or not."""


@dataclass(frozen=True, slots=True)
class Named:
    """A selector of a task. ``path`` and ``step_path`` are JSON Pointers in it; ``package``: the app that has to be in
    front when it is looked for, or empty. ``around``: the selector of the step, where ``asked`` is `Asked.INSIDE`."""

    path: str
    step_path: str
    step: Step
    selector: Selector
    asked: Asked
    package: str = ""
    around: Selector | None = None


def selectors_in(task: TaskTemplate) -> Iterator[Named]:
    """All of them, a relation's with the selector that it belongs to."""
    for step_path, step in walk(task.steps):
        for place, selector in _within(step, ()):
            asked = _asked(step, place)
            target = place[0] in TARGETS
            # These two name the app that they open or stop, not the one in front.
            bound = target and not isinstance(step, OpenStep | StopAppStep)
            yield Named(
                path=step_path + pointer(place),
                step_path=step_path,
                step=step,
                selector=selector,
                asked=asked,
                package=(step.package_name or "") if bound else "",
                around=step.selector if isinstance(step, ExtractStep) and asked is Asked.INSIDE else None,
            )


def _asked(step: Step, place: Place) -> Asked:
    if isinstance(step, ExtractStep):
        if place[0] == "fields":
            return Asked.INSIDE
        if place == ("selector",):
            return Asked.SOME if step.all else Asked.ONE
    if len(place) == 1 and place[0] in TARGETS:
        return Asked.ONE_TO_TOUCH if step.touches and step.action not in _NOT_TOUCHED else Asked.ONE
    return Asked.SOME


def _within(value: object, place: Place) -> Iterator[tuple[Place, Selector]]:
    if isinstance(value, Selector):
        yield place, value
    elif isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            if name not in STEP_FIELDS:
                yield from _within(getattr(value, name), (*place, field.alias or name))
    elif isinstance(value, tuple):
        for position, each in enumerate(value):
            yield from _within(each, (*place, position))
