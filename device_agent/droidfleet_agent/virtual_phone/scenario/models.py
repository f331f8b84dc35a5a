"""The scenario format: apps, screens, dialogs, timers, variants. `docs/scenarios.md` explains it with examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from droidfleet_agent.virtual_phone.scenario.actions import Actions
from droidfleet_agent.virtual_phone.scenario.base import Color, Milliseconds, Model, Name, Package
from droidfleet_agent.virtual_phone.scenario.template import Template
from droidfleet_agent.virtual_phone.scenario.widgets import Widget

ActivityName = Annotated[str, StringConstraints(pattern=r"^\.?[A-Za-z][\w$]*(\.[A-Za-z][\w$]*)*$", max_length=200)]
Variables = dict[Name, JsonValue]


class Timer(Model):
    """Something that happens by itself while a page is in front."""

    after_ms: Milliseconds = Field(description="From the opening of the page.")
    every_ms: Annotated[int, Field(ge=100, le=3_600_000)] | None = Field(None, description="Repeats so often.")
    do: Actions


class Page(Model):
    """What screens and dialogs share."""

    root: Widget
    state: Variables = Field(default_factory=dict, description="Variables that live as long as the page is open.")
    on_open: Actions = ()
    timers: tuple[Timer, ...] = Field((), max_length=20)


class Screen(Page):
    """One full screen of an app, an activity to Android."""

    activity: ActivityName = Field(description="Class name; with a leading dot it is below the app's package.")
    toolkit: Literal["views", "compose"] = Field("views", description="Compose nodes have no ids and few classes.")
    soft_input: Literal["cover", "resize"] = Field(
        "cover", description="Whether the keyboard lies over the screen's lower part or the screen shrinks."
    )


class Dialog(Page):
    """A window over a screen. A modal one takes all touches; a pop-up that is not modal lets them through beside it."""

    modal: bool = True
    cancelable: bool = Field(True, description="Whether Back or a tap outside closes it.")
    position: Literal["center", "bottom", "top"] = "center"
    width: Annotated[float, Field(gt=0, le=2000)] = Field(320, description="dp; a bottom sheet fills the width.")


class Theme(Model):
    """Colours of an app, for pictures only."""

    primary: Color = "#1a73e8"
    accent: Color = "#e8710a"
    surface: Color = "#ffffff"
    text: Color = "#202124"


class App(Model):
    """One installed app."""

    package: Package
    label: Template
    version: str = "1.0.0"
    version_code: Annotated[int, Field(ge=1)] = 1
    system: bool = Field(False, description="Not listed among third-party packages.")
    theme: Theme = Theme()
    home: Name = Field(description="The screen it starts with.")
    variables: Variables = Field(default_factory=dict, description="Live until the app's data is cleared.")
    screens: dict[Name, Screen] = Field(min_length=1, max_length=100)
    dialogs: dict[Name, Dialog] = Field(default_factory=dict, max_length=100)

    def activity_name(self, screen: str) -> str:
        """The full class name of a screen's activity."""
        activity = self.screens[screen].activity
        return self.package + activity if activity.startswith(".") else activity


class Patch(Model):
    """One change that a variant makes to the tree of a screen or dialog."""

    app: Package | None = Field(None, description="May be left out when the scenario has one app.")
    screen: Name | None = None
    dialog: Name | None = None
    widget: Name = Field(description="The ``name`` of the widget the change is about.")
    change: Literal["insert_before", "insert_after", "replace", "remove", "merge"]
    widgets: tuple[JsonValue, ...] = Field((), max_length=20, description="New widgets, for insert and replace.")
    fields: dict[str, JsonValue] = Field(default_factory=dict, description="Fields to set, for merge.")


class Variant(Model):
    """A named variation of the scenario."""

    description: str = ""
    variables: Variables = Field(default_factory=dict, description="First values of app variables that differ.")
    patches: tuple[Patch, ...] = Field((), max_length=50)


class Scenario(Model):
    """One scenario file."""

    format: Literal[1] = Field(description="The format's version.")
    name: Name
    description: str = ""
    start: Package | None = Field(None, description="The app in front at the beginning; none: the launcher.")
    secure_lock: bool = Field(False, description="The lock screen asks for a secret, so that nothing here removes it.")
    apps: tuple[App, ...] = Field(min_length=1, max_length=20)
    variants: dict[Name, Variant] = Field(default_factory=dict, max_length=50)

    def app(self, package: str) -> App | None:
        """The app of that package."""
        return next((app for app in self.apps if app.package == package), None)
