"""How far content runs on when a moving finger lets go of it. Pure.

The numbers are Android's: `VelocityTracker` looks at the last tenth of a second, `ViewConfiguration` says which speeds
fling, `OverScroller` how far that goes. Where a thing runs on to is reached at once; nothing here takes time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

from droidfleet_agent.virtual_phone.facts import Point

HORIZON_MS: Final = 100
"""What a finger did earlier than this before it was lifted does not count for its speed."""
SLOWEST_DP_S: Final = 50
FASTEST_DP_S: Final = 8_000
"""Slower fingers do not fling (`getScaledMinimumFlingVelocity`), faster ones fling no further."""

_FRICTION: Final = 0.015
_INFLEXION: Final = 0.35
_DECELERATION: Final = math.log(0.78) / math.log(0.9)
_GRAVITY_INCHES: Final = 9.80665 * 39.37
_TUNING: Final = 0.84
_DP_TO_INCH: Final = 160


def speed_at_end(points: Sequence[Point], leg_ms: float) -> Point:
    """Pixels a second, across and down, of a finger that took ``leg_ms`` for each leg, as it was lifted."""
    left_ms: float = HORIZON_MS
    across = down = 0.0
    for (x1, y1), (x2, y2) in reversed(list(itertools.pairwise(points))):
        part = min(1.0, left_ms / leg_ms)
        across += (x2 - x1) * part
        down += (y2 - y1) * part
        left_ms -= leg_ms * part
        if left_ms <= 0:
            break
    took_s = (HORIZON_MS - left_ms) / 1000
    return across / took_s, down / took_s


def runs_on(speed: float, px: float) -> float:
    """Pixels that content runs on after a finger of this speed (pixels a second) along it; ``px`` pixels to the dp."""
    absolute = min(abs(speed), FASTEST_DP_S * px)
    if absolute < SLOWEST_DP_S * px:
        return 0.0
    resistance = _FRICTION * _GRAVITY_INCHES * px * _DP_TO_INCH * _TUNING
    log_speed = math.log(_INFLEXION * absolute / resistance)
    return math.copysign(resistance * math.exp(_DECELERATION / (_DECELERATION - 1) * log_speed), speed)
