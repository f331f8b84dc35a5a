"""What one world is like, drawn from its seed: the fleet, what people ask of it, and which misfortunes it meets.

Each seed draws only some kinds of faults, so that some worlds meet few kinds often and none hides the others' effects.
Worlds are small and short: two thousand small ones meet more than five hundred large ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from droidfleet_controller.rollouts.states import Control

HEARTBEATS_S = (3.0, 5.0, 10.0)

LIARS = 0.2
"""In how many worlds somebody lies, beside those that meet everything."""


class Fault(StrEnum):
    """What goes wrong."""

    PHONE_UNPLUGGED = "phone unplugged"
    SCREEN_CHANGES = "screen changes"
    """Tasks that look for the usual one fail on that phone."""
    AGENT_KILLED = "agent killed"
    AGENT_STOPPED = "agent stopped"
    AGENT_MOVED = "agent moved"
    """Its host dies and another one takes the phone."""
    AGENT_GONE = "agent gone"
    """Its host dies, and nobody ever sees it again."""
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


@dataclass(frozen=True, slots=True)
class RolloutCommand:
    """StartRollout."""

    at_s: float
    request_id: str
    spec: str


@dataclass(frozen=True, slots=True)
class ControlCommand:
    """Pauses, resumes, promotes, cancels or aborts a rollout that goes on then. ``choice`` picks it."""

    at_s: float
    choice: int
    control: Control


@dataclass(frozen=True, slots=True)
class GroupCommand:
    """From now on these phones are the group."""

    at_s: float
    phones: tuple[str, ...]


Command = RunCommand | CancelCommand | RolloutCommand | ControlCommand | GroupCommand

GROUP = "lab"
"""The one group, of all phones at first."""


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
    phones = tuple(f"phone-{number:02}" for number in range(1, 1 + random.choice((1, 2, 2, 2, 3, 3, 4, 5))))
    troubled_s = random.uniform(8, 40)
    kinds = list(Fault)
    faults = random.sample(kinds, random.choice((0, 1, 2, 3, 4, len(kinds))))
    if random.random() < LIARS:
        faults.append(Fault.LIES)
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
        fault_every_s=random.uniform(1, 10),
        faults=tuple(faults),
        commands=(*_commands(random, phones, troubled_s), *_rollouts(random, phones, troubled_s)),
    )


def _commands(random: Random, phones: tuple[str, ...], troubled_s: float) -> list[Command]:
    commands: list[Command] = []
    for number in range(random.choice((0, 1, 1, 2, 3, 4))):
        at_s = random.uniform(0, troubled_s)
        chosen = random.sample(phones, random.randint(1, len(phones)))
        expires_s = random.choice((10.0, 30.0, 120.0, 120.0))
        commands.append(RunCommand(at_s, f"request-{number}", random.choice(TASKS), tuple(chosen), expires_s))
    cancels = range(random.choice((0, 0, 1, 3)))
    return commands + [CancelCommand(random.uniform(0, troubled_s), random.randrange(1_000)) for _ in cancels]


def _rollouts(random: Random, phones: tuple[str, ...], troubled_s: float) -> list[Command]:
    commands: list[Command] = []
    for number in range(random.choice((0, 1, 1, 2))):
        at_s = random.uniform(0, troubled_s)
        commands.append(RolloutCommand(at_s, f"rollout-{number}", json.dumps(_spec(random, phones))))
        for _ in range(random.choice((0, 0, 1, 3))):
            later_s = at_s + random.uniform(0, 60)
            commands.append(ControlCommand(later_s, random.randrange(1_000), random.choice(list(Control))))
        for _ in range(random.choice((0, 0, 2))):
            chosen = random.sample(phones, random.randint(0, len(phones)))
            commands.append(GroupCommand(at_s + random.uniform(0, 30), tuple(chosen)))
    return commands


def _spec(random: Random, phones: tuple[str, ...]) -> dict[str, object]:
    """A rollout that fits so many phones. What is left out has its default."""
    spec: dict[str, object] = {
        "task": random.choice(list(TASKS_BY_ID)),
        "target": {"group": GROUP},
        "waves": _waves(random, len(phones)),
        "offline": random.choice(("WAIT", "SKIP", "FAIL", "SUBSTITUTE")),
        "retry": {"maxAttempts": random.choice((1, 2, 3)), "delay": random.choice(("1s", "5s")), "breaker": 3},
        "deadlines": {"startWithin": random.choice(("20s", "90s")), "progress": random.choice(("60s", "10m"))},
        "priority": random.choice((5, 5, 2, 9)),
    }
    if random.random() < 0.5:
        chosen = random.sample(phones, random.randint(1, len(phones)))
        spec |= {"target": {"devices": chosen}, "waves": _waves(random, len(chosen)), "order": "LISTED"}
    else:
        spec["membership"] = random.choice(("SNAPSHOT", "CONTINUOUS"))
    for chance, more in (
        (0.3, {"maxConcurrent": random.choice((1, 2))}),
        (0.3, {"ratePerMinute": random.choice((2, 5, {"base": 1, "factor": 2.0, "raiseAfter": 1, "limit": 8}))}),
        (0.15, {"dryRun": {"device": random.choice(phones)}}),
        (0.1, {"approval": "MANUAL"}),
        (0.1, {"window": {"start": "*/2 * * * *", "stop": "1-59/2 * * * *"}}),
    ):
        if random.random() < chance:
            spec |= more
    return spec


def _waves(random: Random, members: int) -> list[dict[str, object]]:
    choices: tuple[tuple[int | str, ...], ...] = ((),)
    if members > 1:
        choices = ((), (1,), ("50%",), (1, "34%")) if members > 2 else ((), (1,))
    sizes = random.choice(choices)
    waves: list[dict[str, object]] = [{"size": size, "gate": _gate(random)} for size in sizes]
    return [*waves, {"gate": _gate(random)}]


def _gate(random: Random) -> dict[str, object]:
    gate: dict[str, object] = {
        "minSuccessPercent": random.choice(("0%", "50%", "66.67%", "100%")),
        "onExceeded": random.choice(("PAUSE", "CANCEL")),
        "minSample": random.choice((1, 1, 2)),
        "soak": random.choice(("0s", "0s", "6s")),
        "approval": random.choice(("AUTO",) * 7 + ("MANUAL",)),
    }
    if random.random() < 0.5:
        gate["maxFailures"] = random.choice((0, 1, "25%", "50%"))
    return gate


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
    _task("press-again", _delay(100, 300), _PRESS, _LOOK, repeatable=True),
    _task("look-first", _delay(100, 300), _LOOK, _PRESS),
    _task("press", _delay(500, 2_000), _PRESS),
    _task("look-and-press", _LOOK, _PRESS, _delay(1_000, 4_000), _LOOK),
    _task("look", _LOOK, _delay(100, 500)),
    _task("long", _PRESS, _delay(5_000, 15_000), _PRESS),
    _task("too-long", _delay(9_000, 9_000), _PRESS, _delay(9_000, 9_000), maxDurationMs=12_000),
)

TASKS_BY_ID: dict[str, str] = {json.loads(text)["taskId"]: text for text in TASKS}
