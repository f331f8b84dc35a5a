"""What goes wrong when: pure, from a seed. The same seed and scale give the same plan.

Faults of one lane (the broker, the controller, the agents, the connections) follow one another; lanes overlap, so that
a broker may die while the controller is down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

BEGIN, END = 0.04, 0.96
"""The part of the time in which faults happen: the fleet is at work before the first and after the last."""

MOST_DOWN_S = 2.5
"""How long a killed part stays away."""

PAUSES_S = (0.3, 7.0)
"""Shorter than a heartbeat, and longer than an agent keeps its name for sure."""

MOST_CUT_S = 2.0

REAL_SHARE = 3
"""One in so many faults of agents hits an agent with a real adb phone."""


class Lane(StrEnum):
    """What is hit."""

    BROKER = "broker"
    CONTROLLER = "controller"
    AGENTS = "agents"
    LINKS = "links"


class FaultKind(StrEnum):
    """What happens to it."""

    KILL = "kill"
    """SIGKILL; started again later."""
    PAUSE = "pause"
    """SIGSTOP, later SIGCONT."""
    CUT = "cut"
    """Every connection through the proxy breaks, and new ones are refused for a while."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much. ``seconds``: of load and faults; ``heal_s``: what healing may take after them; ``light_agents``: in
    each of the ``light_processes``; ``executions``: by calls of RunTask, those of rollouts come on top."""

    seconds: float
    executions: int
    light_processes: int
    light_agents: int
    real_phones: int
    rollouts: int
    broker_kills: int
    agent_kills: int
    controller_kills: int
    pauses: int
    cuts: int
    heal_s: float

    @property
    def light_devices(self) -> int:
        """Light agents altogether."""
        return self.light_processes * self.light_agents


CI = Scale(
    seconds=130,
    executions=2_000,
    light_processes=3,
    light_agents=20,
    real_phones=2,
    rollouts=3,
    broker_kills=20,
    agent_kills=22,
    controller_kills=5,
    pauses=6,
    cuts=6,
    heal_s=240,
)
"""What CI runs: the least that says something, in the least time."""

FULL = replace(
    CI,
    seconds=5_700,
    executions=100_000,
    light_processes=4,
    light_agents=25,
    rollouts=20,
    broker_kills=200,
    agent_kills=200,
    controller_kills=50,
    pauses=60,
    cuts=60,
    heal_s=3_600,
)
"""The whole: some two hours on two cores."""

CROWD = replace(
    CI,
    seconds=20,
    executions=3_600,
    light_processes=3,
    light_agents=100,
    real_phones=0,
    rollouts=0,
    broker_kills=6,
    agent_kills=0,
    controller_kills=0,
    pauses=0,
    cuts=0,
)
"""For the plain queue alone: many at work at each kill, as where it was measured first (300 agents, 6 kills: 2.8 %)."""

PACE = 10
"""Executions a second that two busy cores carry with faults."""


def for_minutes(minutes: float) -> Scale:
    """CI's mixture for another time, the same faults a minute."""
    seconds = minutes * 60
    times = seconds / CI.seconds

    def scaled(count: int) -> int:
        return max(1, round(count * times))

    return replace(
        CI,
        seconds=seconds,
        executions=round(PACE * seconds),
        rollouts=scaled(CI.rollouts),
        broker_kills=scaled(CI.broker_kills),
        agent_kills=scaled(CI.agent_kills),
        controller_kills=scaled(CI.controller_kills),
        pauses=scaled(CI.pauses),
        cuts=scaled(CI.cuts),
        # A machine that others use as well does little else than recover, and does the work when it is left in peace.
        heal_s=max(CI.heal_s, seconds),
    )


@dataclass(frozen=True, slots=True)
class Fault:
    """``at_s``: not before this; ``part``: a process or a proxy by name; ``lasts_s``: until it is mended."""

    at_s: float
    lane: Lane
    kind: FaultKind
    part: str
    lasts_s: float


def fault_plan(seed: int, scale: Scale) -> tuple[Fault, ...]:
    """Every fault, by time."""
    random = Random(f"chaos {seed}")
    pauses = [random.choice([Lane.BROKER, Lane.CONTROLLER, Lane.AGENTS, Lane.AGENTS]) for _ in range(scale.pauses)]
    kills = {
        Lane.BROKER: scale.broker_kills,
        Lane.CONTROLLER: scale.controller_kills,
        Lane.AGENTS: scale.agent_kills,
    }
    faults: list[Fault] = []
    for lane, count in kills.items():
        kinds = [FaultKind.KILL] * count + [FaultKind.PAUSE] * pauses.count(lane)
        random.shuffle(kinds)
        faults += _spread(random, scale, lane, kinds)
    faults += _spread(random, scale, Lane.LINKS, [FaultKind.CUT] * scale.cuts)
    return tuple(sorted(faults, key=lambda fault: fault.at_s))


def _spread(random: Random, scale: Scale, lane: Lane, kinds: Sequence[FaultKind]) -> list[Fault]:
    """One fault in each of as many equal slices of the time, anywhere in it."""
    first, last = scale.seconds * BEGIN, scale.seconds * END
    slice_s = (last - first) / max(1, len(kinds))
    return [
        Fault(
            at_s=round(first + slice_s * (number + random.random()), 2),
            lane=lane,
            kind=kind,
            part=_part(random, scale, lane),
            lasts_s=round(_lasts_s(random, kind), 2),
        )
        for number, kind in enumerate(kinds)
    ]


def _part(random: Random, scale: Scale, lane: Lane) -> str:
    match lane:
        case Lane.AGENTS:
            if scale.real_phones and random.randrange(REAL_SHARE) == 0:
                return real_part(random.randrange(scale.real_phones))
            return light_part(random.randrange(scale.light_processes))
        case Lane.LINKS:
            return random.choice([AGENTS_LINK, CONTROLLER_LINK])
        case _:
            return lane.value


def _lasts_s(random: Random, kind: FaultKind) -> float:
    match kind:
        case FaultKind.KILL:
            # Often at once, as a supervisor does it.
            return random.choice([0.0, random.uniform(0, MOST_DOWN_S)])
        case FaultKind.PAUSE:
            return random.uniform(*PAUSES_S)
        case FaultKind.CUT:
            return random.uniform(0, MOST_CUT_S)


# Names of parts.

AGENTS_LINK = "link of the agents"
CONTROLLER_LINK = "link of the controller"


def light_part(number: int) -> str:
    """A process of light agents."""
    return f"light-{number}"


def light_device(number: int) -> str:
    """A light agent, counted over all processes."""
    return f"phone-{number:04}"


def real_part(number: int) -> str:
    """The process of an agent with a phone behind a real adb server, and its device."""
    return f"adb-phone-{number}"
