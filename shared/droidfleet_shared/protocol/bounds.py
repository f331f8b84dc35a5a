"""What a task can take at most: time, and how often the phone is told to do something (protocol section 3, rule 8).

Read off the document alone, with whole numbers that have no largest value. The engine holds these bounds: random tasks
on a virtual clock check it (`tests/properties/test_random_tasks.py`). Not in them is what the agent itself takes
between two steps, which is milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from droidfleet_shared.protocol.steps import (
    AssertStep,
    BackStep,
    BranchStep,
    ClickStep,
    DelayStep,
    DragStep,
    ExtractStep,
    ExtractTextStep,
    GroupStep,
    IfStep,
    InputStep,
    KeyStep,
    LongClickStep,
    OpenStep,
    RepeatStep,
    ScreenshotStep,
    ScrollStep,
    SelectOptionStep,
    Step,
    StopAppStep,
    SwipeStep,
    WaitStep,
    WakeStep,
)
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.tree import lists_of

INPUT_EFFECTS = 3
"""A tap for the focus, the text, and the text once more where the field shows another. `submit` adds a key."""

OPEN_EFFECTS = 1
"""The start. `stopFirst` adds the stop."""

SELECT_EFFECTS = 2
"""A tap on the opener and one on the option. Each scroll adds one."""

WAKE_EFFECTS = 2
"""The display on, and the lock screen away."""

REDO = 2
"""How often a step with `redo` acts at most."""


FAILURE_LOOK_MS = 3_000
"""What a task that fails may take for a look at what was in front, and for a picture: a second and a half on a slow
phone. Once, since it is taken where the task ends."""


@dataclass(frozen=True, slots=True)
class Bound:
    """At most so much.

    ``effects`` counts what the phone is told and does or may have done; what it answered that it refused, and so was
    sent afresh, does not count. ``keyboard_hides`` are apart: the key that hides the keyboard never leaves the page.
    """

    time_ms: int = 0
    effects: int = 0
    keyboard_hides: int = 0

    def __add__(self, other: Bound) -> Bound:
        return Bound(
            self.time_ms + other.time_ms, self.effects + other.effects, self.keyboard_hides + other.keyboard_hides
        )

    def __mul__(self, times: int) -> Bound:
        return Bound(self.time_ms * times, self.effects * times, self.keyboard_hides * times)

    def or_else(self, other: Bound) -> Bound:
        """The bound on either the one or the other happening."""
        return Bound(
            max(self.time_ms, other.time_ms),
            max(self.effects, other.effects),
            max(self.keyboard_hides, other.keyboard_hides),
        )

    def within(self, time_ms: int | None) -> Bound:
        """The same, ended after ``time_ms`` at the latest; None: not ended."""
        if time_ms is None or self.time_ms <= time_ms:
            return self
        return Bound(time_ms, self.effects, self.keyboard_hides)


@dataclass(frozen=True, slots=True)
class StepBound:
    """Of one step: ``once`` is one run of it with all that is in it, ``runs`` how often it runs in the whole task."""

    once: Bound
    runs: int


@dataclass(frozen=True, slots=True)
class TaskBound:
    """Of a whole task. ``steps`` has every step by its JSON Pointer, in document order."""

    total: Bound
    steps: Mapping[str, StepBound]


def task_bound(task: TaskTemplate) -> TaskBound:
    """The bound on a task and on each of its steps."""
    steps: dict[str, StepBound] = {}
    total = _of_list(task.steps, "/steps", 1, steps) + Bound(FAILURE_LOOK_MS)
    return TaskBound(total.within(task.max_duration_ms), steps)


def _of_list(listed: tuple[Step, ...], path: str, runs: int, into: dict[str, StepBound]) -> Bound:
    """The sum: a jump only leaves steps out."""
    total = Bound()
    for position, step in enumerate(listed):
        total += _of_step(step, f"{path}/{position}", runs, into)
    return total


def _of_step(step: Step, path: str, runs: int, into: dict[str, StepBound]) -> Bound:
    runs = 0 if step.probability == 0 else runs
    into[path] = StepBound(Bound(), runs)  # keeps the place before those inside
    inner_runs = runs * step.max_iterations if isinstance(step, RepeatStep) else runs
    inner = [_of_list(steps, f"{path}/{field}", inner_runs, into) for field, steps in lists_of(step)]
    once = _of_leaf(step) if not inner else _of_container(step, inner)
    into[path] = StepBound(once, runs)
    return once if runs else Bound()


def _of_container(step: Step, inner: list[Bound]) -> Bound:
    after = Bound(step.after.timeout_ms if step.after is not None else 0)
    if isinstance(step, RepeatStep):
        # `until` may take a look of its own before each round, and after the last.
        look = Bound(step.timeout_ms if step.until is not None else 0)
        round_ = look + inner[0]
        limit = None if step.max_duration_ms is None else step.max_duration_ms + round_.time_ms
        return _front(step) + (round_ * step.max_iterations + look).within(limit) + after
    if isinstance(step, IfStep):
        return Bound(step.timeout_ms) + inner[0].or_else(inner[-1] if len(inner) > 1 else Bound()) + after
    return _front(step) + inner[0] + after


def _front(step: Step) -> Bound:
    """What a step that has no deadline for its own work may look for before it: `when`, and the app in front."""
    return Bound(step.timeout_ms if step.when is not None or step.package_name is not None else 0)


def _of_leaf(step: Step) -> Bound:
    effects, keyboard_hides = _effects(step)
    own = _front(step) + Bound(_longest_delay(step)) if isinstance(step, DelayStep) else Bound(step.timeout_ms)
    after = Bound(step.after.timeout_ms if step.after is not None else 0)
    once = own + Bound(0, effects, keyboard_hides) + after
    return once * REDO if step.redo else once


def _longest_delay(step: DelayStep) -> int:
    return step.min_ms if step.max_ms is None else step.max_ms


def _effects(step: Step) -> tuple[int, int]:
    """How often the step's action tells the phone to do something, and how often to hide the keyboard for it."""
    effects, keyboard_hides = 0, 0
    match step:
        case ClickStep():
            effects, keyboard_hides = step.times, 1
        case InputStep():
            effects, keyboard_hides = INPUT_EFFECTS + step.submit, 1
        case LongClickStep() | DragStep():
            effects, keyboard_hides = 1, 1
        case ScrollStep():
            effects = step.max_scrolls
        case SelectOptionStep():
            effects, keyboard_hides = SELECT_EFFECTS + step.max_scrolls, 2
        case BackStep() | KeyStep() | StopAppStep() | SwipeStep():
            effects = 1
        case OpenStep():
            effects = OPEN_EFFECTS + step.stop_first
        case WakeStep():
            effects = WAKE_EFFECTS
        case WaitStep() | DelayStep() | ExtractTextStep() | ExtractStep() | ScreenshotStep() | AssertStep():
            pass
        case GroupStep() | IfStep() | RepeatStep() | BranchStep():
            pass
        case _:
            assert_never(step)
    return effects, keyboard_hides
