"""Small values that the virtual phone answers with, and its knobs for faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Media = Literal["JPEG", "PNG"]
Orientation = Literal["natural", "left", "right", "upsidedown"]
Point = tuple[float, float]


@dataclass(slots=True)
class Knobs:
    """Faults of the phone itself (those of the connection are the wire's). Set them at any time.

    ``swallow_taps``: that many of the next taps reach the phone and do nothing. ``moving_looks``: after each of
    that many next dumps the app's content moves down by ``moving_px``. ``lossy_set_texts``: that many of the next
    texts set lose one character.
    """

    swallow_taps: int = 0
    moving_looks: int = 0
    moving_px: int = 90
    lossy_set_texts: int = 0


@dataclass(frozen=True, slots=True)
class PhoneFocus:
    """What has the window focus. ``activity`` is the full class name; empty for system windows."""

    package: str
    activity: str


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """One package as the package manager knows it."""

    package: str
    label: str
    version_name: str
    version_code: int
    system: bool
    main_activity: str
    path: str
