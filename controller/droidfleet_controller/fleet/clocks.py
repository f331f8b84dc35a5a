"""How far the clocks of agents' hosts are from the controller's: measured, shown, and alarmed. Pure.

Nothing in the fleet is decided by it. Instants that an agent reports are shown as they are, and who compares them with
others has to know how far they are off.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from droidfleet_shared.bus.messages import Heartbeat

ALARM_S = 2.0
"""A clock that is kept by NTP is milliseconds off, over a bad line tens of them."""

CLEAR_S = 1.0
"""An alarm ends below this: a clock that is two seconds off must not raise it again and again."""

SAMPLES = 5
"""Heartbeats that a measurement stands on. Delay on the way makes a clock look slow and never fast, so the one of them
that looks fastest was delayed least."""

SAMPLES_FOR_ALARM = 3
"""A controller that starts up is busy for longer than the limit, and delays the first heartbeats of all."""


@dataclass(slots=True)
class _Clock:
    host_id: str
    samples: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class ClockAlarm:
    """A clock began to be wrong, or ceased to be. Seconds; positive: it is ahead of the controller's."""

    agent: str
    offset_s: float
    wrong: bool


class Clocks:
    """The clocks of all agents that were heard since the controller started."""

    def __init__(self) -> None:
        self._clocks: dict[str, _Clock] = {}

    def hear(self, beat: Heartbeat, *, received_at: datetime) -> ClockAlarm | None:
        """Takes a heartbeat of the name's holder; the alarm that begins or ends with it, if one does."""
        if beat.sent_at.tzinfo is None:
            return None
        clock = self._clocks.get(beat.agent)
        if clock is None or clock.host_id != beat.host_id:
            clock = self._clocks[beat.agent] = _Clock(beat.host_id)
        clock.samples.append((beat.sent_at - received_at).total_seconds() + (beat.round_trip_s or 0.0) / 2)
        offset_s = max(clock.samples)
        if clock.wrong:
            wrong = abs(offset_s) >= CLEAR_S
        else:
            wrong = abs(offset_s) > ALARM_S and len(clock.samples) >= SAMPLES_FOR_ALARM
        if wrong is clock.wrong:
            return None
        clock.wrong = wrong
        return ClockAlarm(beat.agent, offset_s, wrong)

    def offset_s(self, agent: str) -> float | None:
        """How many seconds an agent's clock is ahead of this one; None: it was not heard yet."""
        clock = self._clocks.get(agent)
        return max(clock.samples) if clock is not None else None

    @property
    def wrong(self) -> int:
        """How many are under an alarm."""
        return sum(clock.wrong for clock in self._clocks.values())
