"""Which phones get an agent, lose it, or get it again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from droidfleet_agent.driver.adb import phone_state
from droidfleet_shared.bus.messages import PhoneState

BACKOFF_BASE_S = 1.0
BACKOFF_CAP_S = 60.0

STABLE_S = 60.0
"""An agent that lived this long starts the back-off afresh when it ends."""


class Stage(StrEnum):
    """Where a phone's agent is."""

    NONE = "NONE"
    RUNNING = "RUNNING"
    ENDING = "ENDING"
    """Told to end; the phone may be back meanwhile, and then gets its agent again once this one is gone."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A phone that has or had an agent. Times are monotonic seconds; ``absent_since`` is None while it is attached.

    ``failures`` counts ends that nobody asked for, ``retry_at`` is when the next start is due.
    """

    serial: str
    stage: Stage = Stage.NONE
    started_at: float = 0.0
    absent_since: float | None = None
    failures: int = 0
    retry_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    """Start an agent for this phone."""

    serial: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End this phone's agent in order."""

    serial: str
    reason: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget the phone: it is gone, and so is its agent."""

    serial: str


Step = Start | Stop | Drop


def deserves_agent(word: str) -> bool:
    """Whether a phone that adb lists with this word gets an agent: usable, or waiting for its owner's consent."""
    return phone_state(word) is not PhoneState.OFFLINE


def see(watched: Mapping[str, Watched], devices: Mapping[str, str], *, now: float) -> dict[str, Watched]:
    """What is known after adb listed ``devices`` (serial to adb's word)."""
    seen = dict(watched)
    for serial, word in devices.items():
        if deserves_agent(word):
            seen[serial] = replace(seen.get(serial, Watched(serial)), absent_since=None)
    for serial, phone in watched.items():
        if not deserves_agent(devices.get(serial, "")) and phone.absent_since is None:
            seen[serial] = replace(phone, absent_since=now)
    return seen


def plan(watched: Mapping[str, Watched], *, now: float, grace_s: float) -> list[Step]:
    """What to do now. An unplugged phone keeps its agent, which shows it as offline, for ``grace_s`` seconds."""
    steps: list[Step] = []
    for serial, phone in watched.items():
        gone = phone.absent_since is not None and now - phone.absent_since >= grace_s
        if phone.stage is Stage.RUNNING and gone:
            steps.append(Stop(serial, f"unplugged for {grace_s:g} s"))
        elif phone.stage is Stage.NONE and gone:
            steps.append(Drop(serial))
        elif phone.stage is Stage.NONE and phone.absent_since is None and now >= phone.retry_at:
            steps.append(Start(serial, f"again, start {phone.failures + 1}" if phone.failures else "attached"))
    return steps


def started(phone: Watched, *, now: float) -> Watched:
    """The phone once its agent is started."""
    return replace(phone, stage=Stage.RUNNING, started_at=now)


def stopping(phone: Watched) -> Watched:
    """The phone once its agent was told to end."""
    return replace(phone, stage=Stage.ENDING)


def ended(phone: Watched, *, now: float, jitter: float) -> Watched:
    """The phone once its agent is gone. ``jitter``: 0 to 1, spreads the restarts of what crashed together."""
    if phone.stage is Stage.ENDING:
        return replace(phone, stage=Stage.NONE, failures=0, retry_at=now)
    failures = 1 if now - phone.started_at >= STABLE_S else phone.failures + 1
    wait_s = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** (min(failures, 10) - 1))
    # At least half, so that what fails at once does not spin.
    return replace(phone, stage=Stage.NONE, failures=failures, retry_at=now + wait_s * (0.5 + 0.5 * jitter))
