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
    """Keys that the engine presses, by their uiautomator2 names."""

    BACK = "back"
    ENTER = "enter"


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
    - Reads (`dump`, `focus`, `keyboard_shown`, `screenshot`, `info`) change nothing; the adapter may repeat them,
      restart the phone's automation server and reconnect until the deadline, then raises `PhoneUnavailableError`.
    - Actions (`tap`, `set_focused_text`, `press`, `hide_keyboard`) reach the phone at most once for each call. True:
      done. False: the phone said that it did not do it. `ActionRefusedError`: the phone said why it did not.
      `PhoneUnavailableError`: it was never sent. `OutcomeUnknownError`: sent, and no answer.
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
    async def tap(self, x: int, y: int, *, deadline: Deadline) -> bool:
        """Presses and releases at a point."""

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
