"""What readers of a rollout get: the rollout with what is counted about it, and what a rollout would do. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.issues import SpecIssue
from droidfleet_controller.rollouts.rollout import Member, Rollout, Signature, Waiting
from droidfleet_controller.rollouts.states import MemberState, Outcome, RolloutState, WaveState


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCounts:
    """How many started members' executions are where; ``running`` counts paused ones too."""

    queued: int = 0
    assigned: int = 0
    accepted: int = 0
    running: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveView:
    """A wave as it stands. ``gate``: its gate as numbers, for people; ``stops_at_failure``: 0 without a limit."""

    number: int
    state: WaveState
    members: int = 0
    waiting: int = 0
    retrying: int = 0
    live: LiveCounts = field(default_factory=LiveCounts)
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    gate: str = ""
    successes_needed: int = 0
    stops_at_failure: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """How far a cancel or an abort is confirmed. ``offline``: of those that are not, on phones that are offline."""

    asked: int
    confirmed: int
    offline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The same failure on several phones, with an execution that failed so and its picture's digest (may be empty)."""

    signature: Signature
    phones: int
    breaker_open: bool
    execution_id: str = ""
    picture_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutView:
    """A rollout as it stands. ``waves``: the dry run first where there is one; ``waits``: why nothing more is started
    just now; ``started_last_minute`` and ``ended_last_minute``: executions begun, and members that ended.

    In lists only the rollout itself is filled in.
    """

    rollout: Rollout
    waves: tuple[WaveView, ...] = ()
    waits: tuple[Waiting, ...] = ()
    confirmation: Confirmation | None = None
    failures: tuple[Failure, ...] = ()
    started_last_minute: int = 0
    ended_last_minute: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """A member, and where its last execution stands; None: it has none."""

    member: Member
    execution_state: ExecutionState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFilter:
    """What a list of members is narrowed to; empty: everything. ``wave`` None: all of them."""

    wave: int | None = None
    states: frozenset[MemberState] = frozenset()
    outcomes: frozenset[Outcome] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFilter:
    """What a list of rollouts is narrowed to; empty: everything."""

    states: frozenset[RolloutState] = frozenset()
    schedule_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWave:
    """A wave of a plan. ``gate``: as numbers, for people; ``stops_at_failure``: 0 without a limit."""

    number: int
    devices: tuple[str, ...]
    gate: str
    successes_needed: int
    stops_at_failure: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRollout:
    """What a rollout would do. With the order HASH the members of a wave are an example: they follow from the id that
    the rollout will have. ``busy``: members that run something now; ``backlog``: executions that wait on members;
    ``bound_s``: the longest that one run may take."""

    task_id: str
    revision: int
    waves: tuple[PlannedWave, ...]
    members: int
    offline: tuple[str, ...]
    busy: int
    backlog: int
    bound_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The answer of a plan. ``plan`` is None where it cannot be said what the rollout would do."""

    errors: tuple[SpecIssue, ...] = ()
    warnings: tuple[SpecIssue, ...] = ()
    plan: PlannedRollout | None = None

    @property
    def valid(self) -> bool:
        """Whether it could be started."""
        return not self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRollout:
    """What somebody asks for. ``request_id`` empty: a random one."""

    spec_json: str
    request_id: str = ""
    actor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedRollout:
    """What a call created, or found created by the same call before."""

    view: RolloutView
    warnings: tuple[SpecIssue, ...] = ()
