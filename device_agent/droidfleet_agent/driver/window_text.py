"""Reads what Android's shell commands print, on old and new releases. Pure; each function takes a whole output.

Sources: AOSP's WindowManagerService, DisplayContent, ActivityTaskSupervisor, InputMethodManagerService, BatteryService.
"""

from __future__ import annotations

import re

from droidfleet_agent.driver.port import Display, Focus

FOCUS_COMMANDS = ("dumpsys window windows", "dumpsys window displays", "dumpsys activity activities")
"""Android 9 and older print the focus in the first, newer ones in the second; all print the activity in the third."""

_RECORD = r"ActivityRecord\{\S+ (?:u\d+ )?(?P<package>[^\s/{}]+)/(?P<activity>[^\s}]+)"
_FOCUS = tuple(
    re.compile(pattern)
    for pattern in (
        r"mCurrentFocus=Window\{\S+ (?:u\d+ )?(?P<package>[^\s/{}]+)/(?P<activity>[^\s}]+)",
        # A window without a component has the focus (a pop-up, the keyboard, the notification shade), or none has
        # (between two windows): the activity in front is meant. Android 10 and older wrap it in an AppWindowToken.
        r"mFocusedApp=(?:AppWindowToken\{\S+ token=Token\{\S+ )?" + _RECORD,
        r"(?:mResumedActivity|topResumedActivity|ResumedActivity|mFocusedActivity)[:=] ?" + _RECORD,
    )
)
_KEYBOARD = tuple(re.compile(rf"\b{name}=(true|false)") for name in ("mInputShown", "mIsInputViewShown"))
_DISPLAY = tuple(re.compile(rf"{name} size: (\d+)x(\d+)") for name in ("Override", "Physical"))
_BATTERY = re.compile(r"^\s*level: (\d+)\s*$", re.MULTILINE)


def parse_focus(text: str) -> Focus | None:
    """The focused package and activity in the output of any of `FOCUS_COMMANDS`; None when it names none."""
    for pattern in _FOCUS:
        if found := pattern.search(text):
            package, activity = found["package"], found["activity"]
            return Focus(package, package + activity if activity.startswith(".") else activity)
    return None


def parse_keyboard_shown(text: str) -> bool | None:
    """Whether the keyboard is shown, from ``dumpsys input_method``; None when the output does not say."""
    for pattern in _KEYBOARD:
        if found := pattern.search(text):
            return found[1] == "true"
    return None


def parse_display(text: str) -> Display | None:
    """The size in natural orientation from ``wm size``; an override is what apps see."""
    for pattern in _DISPLAY:
        if found := pattern.search(text):
            return Display(int(found[1]), int(found[2]))
    return None


def parse_input_methods(text: str) -> frozenset[str]:
    """The packages of the keyboards that ``ime list -s`` prints, one ``package/.Service`` a line."""
    ids = (line.strip().partition("/") for line in text.splitlines())
    return frozenset(package for package, slash, _ in ids if slash)


def parse_battery_percent(text: str) -> int | None:
    """The charge from ``dumpsys battery``; None on a device without a battery."""
    found = _BATTERY.search(text)
    return int(found[1]) if found else None
