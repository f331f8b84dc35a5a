"""The records of a rollout: the rollout, its members, its decisions, its membership log. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from droidfleet_controller.dispatch.execution import TaskText
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.states import MemberState, Outcome, ReasonCode, RolloutState

DRY_RUN_WAVE = 0
"""The number of the wave that a dry run is; waves count from 1."""

DRY_RUN_PLACE = 0
"""Members have places from 1."""

ALL_CODES = "*"
"""Stands for failures of whatever code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a rollout runs, fixed at its start. ``bound_s``: the longest that one run may take; ``repeatable``: the task
    says that running it again does no harm."""

    task_id: str
    revision: int
    text: TaskText
    step_count: int
    bound_s: float
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """What two failures have in common. ``step_id`` and ``screen`` may be empty."""

    code: str
    step_id: str = ""
    screen: str = ""

    def __str__(self) -> str:
        return " ".join(
            part
            for part in (self.code, self.step_id and f"at {self.step_id}", self.screen and f"on {self.screen}")
            if part
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the planner knows beside the members. ``starts``: whole seconds of the last minute with how many began in
    each, empty without a rate; ``signatures``: how many phones failed so, of the first kinds that were seen (for
    people); ``open_breakers``: those that are not retried; ``acknowledged``: failures of a wave that somebody who
    resumed has accepted, by code, with `ALL_CODES` for all; ``soak_until``: when the open wave has soaked."""

    starts: tuple[tuple[datetime, int], ...] = ()
    signatures: Mapping[Signature, int] = field(default_factory=dict)
    open_breakers: frozenset[Signature] = frozenset()
    acknowledged: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    soak_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One rollout. Instants are the controller's clock, aware UTC.

    A new one is RUNNING with wave 0. ``wave``: the open wave (`DRY_RUN_WAVE`: the dry run; 0 also before the
    first); ``wave_sizes``: members of each wave of the document at the start, 0 for one that was left out;
    ``version`` grows with every change of state, wave or command, and a command bears it; ``tick`` grows with every
    write of the planner, so that of two controllers one is refused; ``last_result_at``: when a member last ended;
    ``moved_at``: when it was last started, resumed or promoted, a wave opened, a try ended or one began while none
    was live: from then on `deadlines.progress` counts; ``schedule_id`` and ``intended_at``: the occurrence that
    began it.
    """

    rollout_id: str
    spec: RolloutSpec
    subject: Subject
    state: RolloutState
    reason_code: ReasonCode = ReasonCode.NONE
    reason: str = ""
    wave: int = 0
    wave_sizes: tuple[int, ...] = ()
    wave_opened_at: datetime | None = None
    version: int = 1
    tick: int = 0
    memory: Memory = field(default_factory=Memory)
    created_at: datetime
    updated_at: datetime
    moved_at: datetime
    last_result_at: datetime | None = None
    ended_at: datetime | None = None
    schedule_id: str = ""
    intended_at: datetime | None = None
    actor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One phone of a rollout. ``place``: its order in the whole rollout, unique; ``wave`` from 1, 0 for the dry run;
    ``execution_id``: of the last try; ``tries``: how many began; ``values_id``: see `TaskText`; ``signature``: of the
    last failure; ``reason``: why it ended so, a stable code first.

    ``outcome`` is set before the end in two cases: RETRYING, how the last try ended; STARTED and REMOVED, it has left
    and what runs is let go on, uncounted.
    """

    device: str
    place: int
    wave: int
    state: MemberState = MemberState.WAITING
    outcome: Outcome = Outcome.NONE
    tries: int = 0
    execution_id: str = ""
    values_id: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    retry_at: datetime | None = None
    signature: Signature | None = None
    reason: str = ""


class Rule(StrEnum):
    """Which rule decided; the words of `rollout explain`."""

    CREATED = "CREATED"
    DRY_RUN = "DRY_RUN"
    OPEN_WAVE = "OPEN_WAVE"
    START = "START"
    RETRY = "RETRY"
    NO_RETRY = "NO_RETRY"
    BREAKER = "BREAKER"
    OFFLINE = "OFFLINE"
    SUBSTITUTE = "SUBSTITUTE"
    JOIN = "JOIN"
    LEAVE = "LEAVE"
    GATE_PASSED = "GATE_PASSED"
    GATE_FAILED = "GATE_FAILED"
    FAILURES_EXCEEDED = "FAILURES_EXCEEDED"
    SOAK = "SOAK"
    APPROVAL = "APPROVAL"
    NO_PROGRESS = "NO_PROGRESS"
    WITHDRAW = "WITHDRAW"
    FINISH = "FINISH"
    COMMAND = "COMMAND"
    """A person paused, resumed, promoted, cancelled or aborted."""


class Wait(StrEnum):
    """Why nothing more is started just now."""

    RESULTS = "RESULTS"
    """What was started has not ended."""
    CONCURRENCY = "CONCURRENCY"
    RATE = "RATE"
    RETRY_DELAY = "RETRY_DELAY"
    WINDOW = "WINDOW"
    SOAK = "SOAK"
    APPROVAL = "APPROVAL"
    PAUSED = "PAUSED"
    CONFIRMATION = "CONFIRMATION"
    """A cancel that agents have not confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision with its reason. ``numbers``: what it was decided on, by short names; ``sentence``: for people."""

    at: datetime
    rule: Rule
    wave: int
    numbers: Mapping[str, int | str]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why the rollout waits, and until when where that is known."""

    why: Wait
    sentence: str
    until: datetime | None = None


class Movement(StrEnum):
    """A change of who belongs to a rollout."""

    JOINED = "JOINED"
    LEFT = "LEFT"
    MOVED = "MOVED"
    """To another wave (SUBSTITUTE)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipChange:
    """A line of the membership log."""

    at: datetime
    device: str
    movement: Movement
    wave: int
    reason: str
