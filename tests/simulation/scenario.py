"""What one world is like, drawn from its seed: the fleet, what people ask of it, and which misfortunes it meets.

Each seed draws only some kinds of faults, so that some worlds meet few kinds often and none hides the others' effects.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from random import Random

HEARTBEATS_S = (3.0, 5.0, 10.0)


class Fault(StrEnum):
    """What goes wrong."""

    PHONE_UNPLUGGED = "phone unplugged"
    SCREEN_CHANGES = "screen changes"
    """Tasks that look for the usual one fail on that phone."""
    AGENT_KILLED = "agent killed"
    AGENT_STOPPED = "agent stopped"
    AGENT_MOVED = "agent moved"
    """Its host dies and another one takes the phone."""
    AGENT_CUT = "agent cut off"
    CONTROLLER_CUT = "controller cut off"
    BROKER_CRASHES = "broker crashes"
    BROKER_WIPED = "broker wiped"
    CONTROLLER_KILLED = "controller killed"
    DISK_FULL = "disk full"
    LIES = "lies"
    """Somebody sends events that are late, doubled, of another attempt, of nobody, or not readable."""


@dataclass(frozen=True, slots=True)
class RunCommand:
    """RunTask. ``at_s``: from the start of the world."""

    at_s: float
    request_id: str
    task: str
    phones: tuple[str, ...]
    expires_s: float


@dataclass(frozen=True, slots=True)
class CancelCommand:
    """CancelExecution of something that runs or waits then. ``choice`` picks it."""

    at_s: float
    choice: int


Command = RunCommand | CancelCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One world. ``troubled_s``: how long faults happen; ``fault_every_s``: the mean time between two."""

    seed: int
    phones: tuple[str, ...]
    heartbeat_s: float
    latency_s: float
    slow_disk_s: float
    slow_journal_s: float
    slow_phone_s: float
    unreliable_percent: int
    troubled_s: float
    fault_every_s: float
    faults: tuple[Fault, ...]
    commands: tuple[Command, ...]

    def random(self, purpose: str) -> Random:
        """The generator for one purpose, independent of all others."""
        return Random(f"{self.seed}/{purpose}")


def draw(seed: int) -> Scenario:
    """The scenario of a seed."""
    random = Random(f"{seed}/scenario")
    phones = tuple(f"phone-{number:02}" for number in range(1, 1 + random.choice((1, 2, 2, 3, 3, 4, 6))))
    troubled_s = random.uniform(15, 75)
    kinds = list(Fault)
    faults = tuple(random.sample(kinds, random.choice((0, 1, 2, 3, 4, len(kinds)))))
    return Scenario(
        seed=seed,
        phones=phones,
        heartbeat_s=random.choice(HEARTBEATS_S),
        latency_s=random.choice((0.001, 0.02, 0.3)),
        slow_disk_s=random.choice((0.0005, 0.01, 0.2)),
        slow_journal_s=random.choice((0.0, 0.0, 0.05)),
        slow_phone_s=random.choice((0.05, 0.5, 3.0)),
        unreliable_percent=random.choice((0, 0, 5, 20)),
        troubled_s=troubled_s,
        fault_every_s=random.uniform(2, 15),
        faults=faults,
        commands=tuple(sorted(_commands(random, phones, troubled_s), key=lambda command: command.at_s)),
    )


def _commands(random: Random, phones: tuple[str, ...], troubled_s: float) -> list[Command]:
    commands: list[Command] = []
    for number in range(random.randint(1, 6)):
        at_s = random.uniform(0, troubled_s)
        chosen = random.sample(phones, random.randint(1, len(phones)))
        expires_s = random.choice((10.0, 30.0, 120.0, 120.0))
        commands.append(RunCommand(at_s, f"request-{number}", random.choice(TASKS), tuple(chosen), expires_s))
    cancels = range(random.choice((0, 0, 1, 3)))
    return commands + [CancelCommand(random.uniform(0, troubled_s), random.randrange(1_000)) for _ in cancels]


def _delay(shortest_ms: int, longest_ms: int) -> dict[str, object]:
    return {"action": "DELAY", "minMs": shortest_ms, "maxMs": longest_ms}


_PRESS: dict[str, object] = {"action": "KEY", "key": "VOLUME_UP"}
_LOOK: dict[str, object] = {"action": "ASSERT", "condition": {"visible": {"text": "Ready"}}, "timeoutMs": 1_000}


def _task(task_id: str, *steps: dict[str, object], **fields: object) -> str:
    numbered = [{"id": f"s{number}", **step} for number, step in enumerate(steps)]
    body = {
        "schemaVersion": 1,
        "taskId": task_id,
        "randomSeed": 7,
        "maxDurationMs": 30_000,
        **fields,
        "steps": numbered,
    }
    return json.dumps(body)


TASKS = (
    _task("press", _delay(500, 2_000), _PRESS),
    _task("look-and-press", _LOOK, _PRESS, _delay(1_000, 4_000), _LOOK),
    _task("look", _LOOK, _delay(100, 500)),
    _task("long", _PRESS, _delay(5_000, 15_000), _PRESS),
    _task("too-long", _delay(9_000, 9_000), _PRESS, _delay(9_000, 9_000), maxDurationMs=12_000),
)
