"""Fingers and keys in the words of the uiautomator2 server and of Android. Pure."""

from __future__ import annotations

from droidfleet_agent.driver.port import Key
from droidfleet_agent.driver.rpc import Json

STEP_MS = 5
"""One step of the server's gestures."""

KEY_CODES = {
    Key.BACK: 4,
    Key.HOME: 3,
    Key.RECENTS: 187,
    Key.ENTER: 66,
    Key.SEARCH: 84,
    Key.DELETE: 67,
    Key.TAB: 61,
    Key.MENU: 82,
    Key.VOLUME_UP: 24,
    Key.VOLUME_DOWN: 25,
    Key.POWER: 26,
}
"""Android's codes. Not the server's named keys: its "back" answers whether a window changed, not whether it pressed."""

PANELS = {Key.NOTIFICATIONS: "openNotification", Key.QUICK_SETTINGS: "openQuickSettings"}
"""No keys of Android: methods of the server."""

ESCAPE_KEY_CODE = 111
WAKE_KEY_CODE = 224
"""Only wakes, where the power key would turn the display off again."""


def steps_of(duration_ms: int) -> int:
    """The server's steps for a time; at least two, with fewer the finger does not move."""
    return max(2, round(duration_ms / STEP_MS))


def swipe_call(
    start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int
) -> tuple[str, list[Json]]:
    """Method and parameters of a swipe that takes ``duration_ms`` and then rests for about ``hold_ms``.

    `swipePoints` gives every piece of a way the same time, so the way is cut into pieces of ``hold_ms``, and a last one
    stays where it is: without speed at its end nothing runs on.
    """
    if hold_ms <= 0:
        return "swipe", [*start, *end, steps_of(duration_ms)]
    pieces = max(1, round(duration_ms / hold_ms))
    points: list[Json] = []
    for piece in range(pieces + 1):
        points.append(start[0] + (end[0] - start[0]) * piece // pieces)
        points.append(start[1] + (end[1] - start[1]) * piece // pieces)
    points += [*end]
    return "swipePoints", [points, steps_of(hold_ms)]
