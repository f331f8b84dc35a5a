"""The steps that make the phone do something. Each action is dispatched once (protocol section 3, rule 5)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from droidfleet_shared.protocol.names import PackageName
from droidfleet_shared.protocol.selector import ProtocolModel, Selector
from droidfleet_shared.protocol.steps.base import SELECTOR, Direction, StepBase, TimeoutMs

MAX_TIMES = 10
DEFAULT_INTERVAL_MS = 100
DEFAULT_HOLD_MS = 800
DEFAULT_SWIPE_MS = 300
DEFAULT_DRAG_MS = 1_000
DRAG_HOLD_MS = 500
"""How long what is dragged is held before it moves: Android's long press, which lets it be moved."""
DEFAULT_SCROLLS = 10
SCROLLING_TIMEOUT_MS = 30_000
"""Default `timeoutMs` of steps that scroll: ten scrolls with their looks take longer than a tap."""
OPEN_TIMEOUT_MS = 15_000
"""Default `timeoutMs` of OPEN: a cold start of a large app on an old phone."""

DurationMs = Annotated[int, Field(ge=50, le=10_000)]
MaxScrolls = Annotated[int, Field(ge=1, le=50)]


class KeyName(StrEnum):
    """The keys that a task may press."""

    HOME = "HOME"
    RECENTS = "RECENTS"
    ENTER = "ENTER"
    SEARCH = "SEARCH"
    DELETE = "DELETE"
    TAB = "TAB"
    MENU = "MENU"
    VOLUME_UP = "VOLUME_UP"
    VOLUME_DOWN = "VOLUME_DOWN"
    POWER = "POWER"
    NOTIFICATIONS = "NOTIFICATIONS"
    QUICK_SETTINGS = "QUICK_SETTINGS"


class TouchingStep(StepBase):
    """Base of the steps that make the phone do something."""

    touches: ClassVar[bool] = True


class ClickStep(TouchingStep):
    """Tap the one node that matches."""

    action: Literal["CLICK"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Add to cart"}])
    times: Annotated[int, Field(ge=1, le=MAX_TIMES)] = Field(1, description="How many taps.", examples=[2])
    interval_ms: Annotated[int, Field(ge=0, le=10_000)] = Field(
        DEFAULT_INTERVAL_MS, description="Pause between the taps.", examples=[300]
    )
    unless_visible: Selector | None = Field(
        None,
        description="Matches on the deciding look: the step is skipped as a success.",
        examples=[{"text": "In cart"}],
    )


class LongClickStep(TouchingStep):
    """Press the one node that matches for a while."""

    action: Literal["LONG_CLICK"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Green tea"}])
    duration_ms: Annotated[int, Field(ge=300, le=10_000)] = Field(
        DEFAULT_HOLD_MS, description="How long the finger stays down.", examples=[1500]
    )


class InputStep(TouchingStep):
    """Type into the one field that matches, and read it back."""

    action: Literal["INPUT"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Add to cart"}])
    value: Annotated[str, Field(max_length=16_384)] = Field(
        description="The text, byte for byte.", examples=["green tea"]
    )
    clear: bool = Field(True, description="Replace what the field holds; false: append to it.")
    submit: bool = Field(False, description="Press Enter after the text was verified.")


class BackStep(TouchingStep):
    """Press the Back key once."""

    action: Literal["BACK"]


class KeyStep(TouchingStep):
    """Press a key once."""

    action: Literal["KEY"]
    key: Annotated[KeyName, Field(strict=False)] = Field(description="Which key.", examples=["HOME"])


class OpenStep(TouchingStep):
    """Bring an app to the front."""

    action: Literal["OPEN"]
    package_name: PackageName = Field(description="The app.", examples=["com.android.settings"])
    timeout_ms: TimeoutMs = Field(
        OPEN_TIMEOUT_MS, description="The step's own deadline, waiting and acting together.", examples=[20000]
    )
    stop_first: bool = Field(False, description="Stop the app before, so that it starts afresh.")


class StopAppStep(TouchingStep):
    """Stop an app."""

    action: Literal["STOP_APP"]
    package_name: PackageName = Field(description="The app.", examples=["com.android.settings"])


class ScrollStep(TouchingStep):
    """Scroll until something is seen, the end is reached, or the bound."""

    action: Literal["SCROLL"]
    selector: Selector | None = Field(
        None, description="The container; left out: the largest that scrolls.", examples=[{"resourceId": "list"}]
    )
    direction: Direction = Field("DOWN", description="Where further content is wanted from.", examples=["DOWN"])
    until: Selector | None = Field(None, description="Stop when it is visible.", examples=[{"text": "Green tea"}])
    max_scrolls: MaxScrolls = Field(DEFAULT_SCROLLS, description="At most so many scrolls.", examples=[20])
    timeout_ms: TimeoutMs = Field(
        SCROLLING_TIMEOUT_MS, description="The step's own deadline, waiting and acting together.", examples=[20000]
    )


class SwipeStep(TouchingStep):
    """Move a finger over the screen or an area of it, once."""

    action: Literal["SWIPE"]
    selector: Selector | None = Field(
        None, description="The area; left out: the whole display.", examples=[{"resourceId": "card"}]
    )
    direction: Direction = Field(description="Where the finger moves to.", examples=["LEFT"])
    distance_percent: Annotated[int, Field(ge=10, le=90)] = Field(
        60, description="How far, in percent of the area.", examples=[80]
    )
    duration_ms: DurationMs = Field(DEFAULT_SWIPE_MS, description="How long the finger moves.", examples=[500])


class Offset(ProtocolModel):
    """How far, in percent of the display's width and height; negative to the left and up."""

    x: Annotated[int, Field(ge=-100, le=100)] = Field(0, description="To the right.", examples=[30])
    y: Annotated[int, Field(ge=-100, le=100)] = Field(0, description="Down.", examples=[-20])


class DragStep(TouchingStep):
    """Hold a node and move it to another place."""

    action: Literal["DRAG"]
    selector: Selector = Field(description="The handle.", examples=[{"description": "Reorder Green tea"}])
    to: Selector | None = Field(None, description="The node to move it to.", examples=[{"text": "Black tea"}])
    by_percent: Offset | None = Field(None, description="How far to move it.", examples=[{"x": 0, "y": 30}])
    duration_ms: DurationMs = Field(DEFAULT_DRAG_MS, description="How long the finger moves.", examples=[1500])
    require_visible: Selector | None = Field(
        None, description="Must be visible on the deciding look.", examples=[{"text": "Edit order"}]
    )


class SelectOptionStep(TouchingStep):
    """Open a list, choose an option, and see the list closed with it chosen."""

    action: Literal["SELECT_OPTION"]
    selector: Selector = Field(description="What opens the list.", examples=[{"resourceId": "country"}])
    option: Selector = Field(description="The option in the open list.", examples=[{"text": "Norway"}])
    max_scrolls: MaxScrolls = Field(DEFAULT_SCROLLS, description="At most so many scrolls.", examples=[20])
    timeout_ms: TimeoutMs = Field(
        SCROLLING_TIMEOUT_MS, description="The step's own deadline, waiting and acting together.", examples=[20000]
    )


class WakeStep(TouchingStep):
    """Turn the screen on and dismiss a lock screen that has no secret."""

    action: Literal["WAKE"]
