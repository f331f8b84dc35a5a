"""All that a virtual phone remembers: apps with variables and pages, what is in front, keyboard, clipboard, toast.

Plain data. Whoever changes it says so through `touched` (something drawn changed) or `scrolled` (only positions did).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from droidfleet_agent.virtual_phone.scenario.models import App, Dialog, Page, Screen
from droidfleet_agent.virtual_phone.scenario.template import Scope, copied

MAX_STACK = 50
"""Pages of one app's back stack; the oldest is dropped beyond it."""

Shade = Literal["notifications", "quick_settings"]


@dataclass(slots=True, eq=False)
class PageState:
    """One open screen or dialog.

    ``texts``, ``checks`` and ``scroll`` (pixels) are by the node's key; ``serial`` is unique on the phone; ``open`` is
    false once it is closed, so that its timers end; ``cursor`` counts characters in the focused field.
    """

    serial: int
    app: AppState
    name: str
    definition: Page
    variables: dict[str, JsonValue]
    texts: dict[str, str] = field(default_factory=dict)
    checks: dict[str, bool] = field(default_factory=dict)
    scroll: dict[str, int] = field(default_factory=dict)
    focus: str | None = None
    cursor: int = 0
    open: bool = True
    dialogs: list[PageState] = field(default_factory=list)
    row_heights: dict[str, tuple[int, int, list[int]]] = field(default_factory=dict)

    @property
    def screen(self) -> Screen | None:
        """The definition when this is a screen."""
        return self.definition if isinstance(self.definition, Screen) else None

    @property
    def dialog(self) -> Dialog | None:
        """The definition when this is a dialog."""
        return self.definition if isinstance(self.definition, Dialog) else None

    @property
    def top(self) -> PageState:
        """The topmost dialog over this page, or the page."""
        return self.dialogs[-1] if self.dialogs else self


@dataclass(slots=True, eq=False)
class AppState:
    """One installed app. ``stack`` is empty while it is not running."""

    app: App
    variables: dict[str, JsonValue]
    stack: list[PageState] = field(default_factory=list)

    @classmethod
    def fresh(cls, app: App) -> AppState:
        """The app as after its installation."""
        return cls(app, first_variables(app))


def first_variables(app: App) -> dict[str, JsonValue]:
    """The app's variables as the scenario declares them; a copy."""
    return {name: copied(value) for name, value in app.variables.items()}


@dataclass(slots=True, eq=False)
class PhoneState:
    """The whole phone.

    ``front`` is the package in front; ``recent`` lists tasks, the latest first; ``has_keyboard`` is false while an
    input method without a window is selected; ``look`` grows with anything seen, ``version`` with all but positions.
    """

    apps: dict[str, AppState]
    launcher: str
    front: str
    facts: dict[str, JsonValue]
    recent: list[str] = field(default_factory=list)
    rotation: int = 0
    screen_on: bool = True
    locked: bool = False
    secure_lock: bool = False
    shade: Shade | None = None
    keyboard: bool = False
    has_keyboard: bool = True
    capitals: bool = False
    symbols: bool = False
    clipboard: str | None = None
    toast: str | None = None
    toast_until: float = 0.0
    shift: int = 0
    version: int = 0
    look: int = 0
    window_changes: int = 0
    pages_opened: int = 0

    @property
    def app(self) -> AppState:
        """The app in front."""
        return self.apps[self.front]

    @property
    def page(self) -> PageState:
        """The screen in front, below its dialogs."""
        return self.app.stack[-1]

    @property
    def active(self) -> PageState:
        """The page or dialog that has the window focus among the app's windows."""
        page = self.page
        for dialog in reversed(page.dialogs):
            if dialog.dialog is not None and dialog.dialog.modal:
                return dialog
        return page

    def scope(self, page: PageState) -> Scope:
        """The names that a page's templates and actions see."""
        return page.variables, page.app.variables, self.facts

    def touched(self) -> None:
        """Something that is drawn has changed."""
        self.version += 1
        self.look += 1

    def scrolled(self) -> None:
        """Only positions have changed."""
        self.look += 1

    def window_changed(self) -> None:
        """Another window or page is in front."""
        self.window_changes += 1
        self.shift = 0
        self.touched()
