"""The step models (protocol sections 2 and 4). One class an action; `Step` is their union, told apart by ``action``.

To add an action: a class in one of the modules here, a member of the union, an executor in the agent, virtual-phone
behaviour, tests, a page in ``docs/protocol/actions`` (`docs/checklists/add-an-action.md`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from droidfleet_shared.protocol.steps.base import After, Goto, StepBase
from droidfleet_shared.protocol.steps.flow import BranchStep, GroupStep, IfStep, RepeatStep
from droidfleet_shared.protocol.steps.reading import (
    AssertStep,
    DelayStep,
    ExtractStep,
    ExtractTextStep,
    ScreenshotStep,
    WaitStep,
)
from droidfleet_shared.protocol.steps.touching import (
    BackStep,
    ClickStep,
    DragStep,
    InputStep,
    KeyStep,
    LongClickStep,
    OpenStep,
    ScrollStep,
    SelectOptionStep,
    StopAppStep,
    SwipeStep,
    WakeStep,
)

LeafStep = (
    ClickStep
    | LongClickStep
    | InputStep
    | BackStep
    | KeyStep
    | OpenStep
    | StopAppStep
    | ScrollStep
    | SwipeStep
    | DragStep
    | SelectOptionStep
    | WakeStep
    | WaitStep
    | DelayStep
    | ExtractTextStep
    | ExtractStep
    | ScreenshotStep
    | AssertStep
)
"""The steps that hold no others and do something themselves."""

FlowStep = GroupStep | IfStep | RepeatStep | BranchStep
"""The steps that hold or choose others."""

Step = Annotated[LeafStep | FlowStep, Field(discriminator="action")]

for _container in (GroupStep, IfStep, RepeatStep):
    _container.model_rebuild(_types_namespace={"Step": Step})

STEP_FIELDS = frozenset({"steps", "then", "otherwise"})
"""The model fields of containers that hold other steps."""

IMPLEMENTED_ACTIONS: dict[str, type[StepBase]] = {
    "CLICK": ClickStep,
    "LONG_CLICK": LongClickStep,
    "INPUT": InputStep,
    "BACK": BackStep,
    "KEY": KeyStep,
    "WAIT": WaitStep,
    "DELAY": DelayStep,
    "EXTRACT_TEXT": ExtractTextStep,
    "EXTRACT": ExtractStep,
    "OPEN": OpenStep,
    "STOP_APP": StopAppStep,
    "SCROLL": ScrollStep,
    "SWIPE": SwipeStep,
    "DRAG": DragStep,
    "SELECT_OPTION": SelectOptionStep,
    "SCREENSHOT": ScreenshotStep,
    "WAKE": WakeStep,
    "ASSERT": AssertStep,
    "GROUP": GroupStep,
    "IF": IfStep,
    "REPEAT": RepeatStep,
    "BRANCH": BranchStep,
}
"""What the validator accepts."""

__all__ = [
    "IMPLEMENTED_ACTIONS",
    "STEP_FIELDS",
    "After",
    "AssertStep",
    "BackStep",
    "BranchStep",
    "ClickStep",
    "DelayStep",
    "DragStep",
    "ExtractStep",
    "ExtractTextStep",
    "FlowStep",
    "Goto",
    "GroupStep",
    "IfStep",
    "InputStep",
    "KeyStep",
    "LeafStep",
    "LongClickStep",
    "OpenStep",
    "RepeatStep",
    "ScreenshotStep",
    "ScrollStep",
    "SelectOptionStep",
    "Step",
    "StepBase",
    "StopAppStep",
    "SwipeStep",
    "WaitStep",
    "WakeStep",
]
