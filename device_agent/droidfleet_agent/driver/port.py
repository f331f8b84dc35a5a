"""The port `Phone`: what the engine may ask of a phone, and the only ways it can fail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from droidfleet_shared.clock import Deadline
from droidfleet_shared.errors import DroidfleetError, UnavailableError


class PhoneUnavailableError(UnavailableError):
    """The phone did not answer by the deadline, and nothing was done to it. Read-only calls may be tried again."""


class OutcomeUnknownError(DroidfleetError):
    """An action was sent and its answer never came: nobody knows whether it happened. Never repeat it."""


class ActionRefusedError(DroidfleetError):
    """The phone answered that the action did not happen (a stale object, no focused field). It may be tried afresh."""


class Key(StrEnum):
    """Keys that the engine presses."""

    BACK = "back"
    HOME = "home"
    RECENTS = "recents"
    ENTER = "enter"
    SEARCH = "search"
    DELETE = "delete"
    TAB = "tab"
    MENU = "menu"
    VOLUME_UP = "volume_up"
    VOLUME_DOWN = "volume_down"
    POWER = "power"
    NOTIFICATIONS = "notifications"
    """Pulls down the notification shade."""
    QUICK_SETTINGS = "quick_settings"


@dataclass(frozen=True, slots=True)
class Display:
    """The display in the phone's natural orientation, pixels. Rotation comes with each dump."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Focus:
    """What is in front, from the window manager. ``activity`` is the full class name; empty when unknown."""

    package: str
    activity: str


@dataclass(frozen=True, slots=True)
class ScreenState:
    """Whether the display is on, and whether the lock screen lies over everything (`secure`: with a secret)."""

    on: bool
    locked: bool
    secure: bool


@dataclass(frozen=True, slots=True)
class PhoneInfo:
    """Facts for people and for heartbeats."""

    serial: str
    model: str
    android: str
    sdk: int
    display: Display
    battery_percent: int | None
    foreground_package: str


class Phone(ABC):
    """One phone. The contract that every adapter passes (`tests/contract/test_phone_contract.py`):

    - Every call ends by its ``deadline``, whatever the phone does, with a result or one of the three errors above.
    - Reads (`dump`, `focus`, `keyboard_shown`, `screen_state`, `screenshot`, `info`, ...) change nothing; the adapter
      may repeat them, restart the phone's automation server and reconnect until the deadline, then raises
      `PhoneUnavailableError`.
    - Actions (`tap`, `swipe`, `drag`, `set_focused_text`, `press`, `start_app`, `wake`, ...) reach the phone at most
      once for each call. True: done. False: the phone said that it did not do it. `ActionRefusedError`: the phone said
      why it did not. `PhoneUnavailableError`: it was never sent. `OutcomeUnknownError`: sent, and no answer.
    - Coordinates are pixels in the rotated frame of the last dump.
    - One call at a time; a cancelled call leaves the phone usable.
    """

    @abstractmethod
    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        """The window hierarchy as the phone's XML text: all windows, or only the active one."""

    @abstractmethod
    async def focus(self, *, deadline: Deadline) -> Focus:
        """The focused package and activity."""

    @abstractmethod
    async def display(self, *, deadline: Deadline) -> Display:
        """The display's size in natural orientation; cached for the connection."""

    @abstractmethod
    async def input_methods(self, *, deadline: Deadline) -> frozenset[str]:
        """Packages of the enabled keyboards; cached for the connection. Their windows never match."""

    @abstractmethod
    async def keyboard_shown(self, *, deadline: Deadline) -> bool:
        """Whether the on-screen keyboard is shown, from the input-method service."""

    @abstractmethod
    async def screenshot(self, *, deadline: Deadline) -> bytes:
        """The screen as JPEG or PNG bytes."""

    @abstractmethod
    async def info(self, *, deadline: Deadline) -> PhoneInfo:
        """Facts about the phone as it is now."""

    @abstractmethod
    async def screen_state(self, *, deadline: Deadline) -> ScreenState:
        """Whether the display is on and the lock screen shown."""

    @abstractmethod
    async def tap(self, x: int, y: int, *, deadline: Deadline, hold_ms: int | None = None) -> bool:
        """Presses and releases at a point; ``hold_ms``: how long the finger stays down, a usual tap by default."""

    @abstractmethod
    async def swipe(
        self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int = 0, deadline: Deadline
    ) -> bool:
        """Moves a finger from one point to another. ``hold_ms``: how long it then rests, so that nothing runs on."""

    @abstractmethod
    async def drag(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, deadline: Deadline) -> bool:
        """Holds what is at a point for 500 ms, moves it to another within ``duration_ms`` and lets go there."""

    @abstractmethod
    async def start_app(self, package: str, *, activity: str | None = None, deadline: Deadline) -> bool:
        """Asks Android to start an app, by its launcher activity or the one named; returns before it is in front.

        Raises:
            ActionRefusedError: also with code ``APP_NOT_FOUND`` when there is no such app or activity.
        """

    @abstractmethod
    async def stop_app(self, package: str, *, deadline: Deadline) -> bool:
        """Stops an app's processes. True too when it was not running."""

    @abstractmethod
    async def wake(self, *, deadline: Deadline) -> bool:
        """Turns the display on. True too when it was on."""

    @abstractmethod
    async def dismiss_lock(self, *, deadline: Deadline) -> bool:
        """Asks Android to remove a lock screen that has no secret."""

    @abstractmethod
    async def set_focused_text(self, text: str, *, deadline: Deadline) -> bool:
        """Replaces the text of the field that has the input focus, byte for byte, without another keyboard."""

    @abstractmethod
    async def press(self, key: Key, *, deadline: Deadline) -> bool:
        """Presses a key once."""

    @abstractmethod
    async def hide_keyboard(self, *, deadline: Deadline) -> bool:
        """Hides the on-screen keyboard by a key that never leaves the page (Escape)."""

    @abstractmethod
    async def close(self) -> None:
        """Gives everything back (forwarded port, streams); bounded, and safe to call twice."""
