"""What each tool is called with. `prompts/tools.*.md` says what the fields mean; here is what they may be."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from droidfleet_designer.draft.draft import DraftRetry, DraftSchedule, DraftTarget

MAX_TYPED = 2_000
"""Characters of one text: more is a document, and no exploration needs that."""

MAX_SEARCHED = 200
"""Characters of a text that is looked for."""

MAX_WAIT_S = 25.0
"""Less than the 30 s that a step may wait (protocol section 2), so that its deadline is never what ends it."""


def _capitals(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Direction = Annotated[Literal["UP", "DOWN", "LEFT", "RIGHT"], BeforeValidator(_capitals)]
Package = Annotated[str, Field(min_length=1, max_length=255)]
Number = Annotated[int, Field(ge=1)]
Percent = Annotated[int, Field(ge=0, le=100)]
Searched = Annotated[str, Field(min_length=1, max_length=MAX_SEARCHED, pattern=r"\S")]

Key = Annotated[
    Literal[
        "HOME",
        "RECENTS",
        "ENTER",
        "SEARCH",
        "DELETE",
        "TAB",
        "MENU",
        "VOLUME_UP",
        "VOLUME_DOWN",
        "NOTIFICATIONS",
        "QUICK_SETTINGS",
    ],
    BeforeValidator(_capitals),
]
"""Those of the protocol but POWER: it turns off the screen that is being explored."""


class Arguments(BaseModel):
    """Base: unknown fields are refused, so that a misspelt one is not left out in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OnElement(Arguments):
    """An element, by the observation that listed it and its number there."""

    screen: Number
    element: Number


class MaybeOnElement(Arguments):
    """An element, or none."""

    screen: Number | None = None
    element: Number | None = None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.screen is None) != (self.element is None):
            raise ValueError("screen and element go together: both, or neither")
        return self


class ListDevices(Arguments):
    """Of `list_devices`."""


class ListGroups(Arguments):
    """Of `list_groups`."""


class OpenApp(Arguments):
    """Of `open_app`."""

    package: Package
    afresh: bool = False


class StopApp(Arguments):
    """Of `stop_app`."""

    package: Package


class Look(Arguments):
    """Of `screen`."""

    picture: bool = False


class Tap(OnElement):
    """Of `tap`."""

    times: Annotated[int, Field(ge=1, le=10)] = 1


class TapPoint(Arguments):
    """Of `tap_point`."""

    screen: Number
    x_percent: Percent
    y_percent: Percent


class LongPress(OnElement):
    """Of `long_press`."""

    hold_ms: Annotated[int, Field(ge=300, le=10_000)] = 800


class TypeText(OnElement):
    """Of `type_text`."""

    text: Annotated[str, Field(max_length=MAX_TYPED)]
    clear: bool = True
    submit: bool = False


class PressKey(Arguments):
    """Of `press_key`."""

    key: Key


class Back(Arguments):
    """Of `back`."""


class Scroll(MaybeOnElement):
    """Of `scroll`. One scroll by default: what was passed over unseen cannot be evidence."""

    direction: Direction
    until_text: Searched | None = None
    max_scrolls: Annotated[int, Field(ge=1, le=20)] = 1


class Swipe(MaybeOnElement):
    """Of `swipe`."""

    direction: Direction
    distance_percent: Annotated[int, Field(ge=10, le=90)] = 60


class Wait(Arguments):
    """Of `wait`."""

    seconds: Annotated[float, Field(ge=0.5, le=MAX_WAIT_S)] = 2.0
    text: Searched | None = None


class FindText(Arguments):
    """Of `find_text`."""

    text: Searched


class SubmitTask(Arguments):
    """Of `submit_task`. For its schema alone: whoever takes the draft reads it, and tells all that is wrong at once."""

    summary: str
    task: dict[str, JsonValue]
    target: DraftTarget | None = None
    schedule: DraftSchedule | None = None
    retry: DraftRetry | None = None
    notes: tuple[str, ...] = ()


Acting = OpenApp | StopApp | Tap | TapPoint | LongPress | TypeText | PressKey | Back | Scroll | Swipe | Wait
"""Those that run one step of the protocol on the phone."""
