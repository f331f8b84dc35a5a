"""What goes into the planner and what comes out of it. Immutable."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.rollout import (
    Decision,
    Member,
    MembershipChange,
    Rollout,
    Signature,
    Waiting,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TryEnded:
    """An execution of a member has ended, or (from LOST) turned out to have ended otherwise.

    ``code``: the result's code, else the first word of the execution's reason; ``may_have_acted``: False only when it
    is certain that the phone was told nothing.
    """

    device: str
    execution_id: str
    state: ExecutionState
    signature: Signature
    may_have_acted: bool
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A phone belongs to the target of a CONTINUOUS rollout now."""

    device: str
    values_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A phone belongs to it no more."""

    device: str
    at: datetime


Change = TryEnded | Joined | Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Create an execution for a member. ``try_number`` counts from 1."""

    device: str
    execution_id: str
    values_id: str
    try_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Cancel the live execution of a member. ``fence``: it ends at once, and what comes later is not counted;
    ``unless_begun``: leave it alone when the agent has begun it."""

    device: str
    execution_id: str
    reason: str
    fence: bool = False
    unless_begun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What a call of `RolloutPlan.decide` asks for, all in one transaction.

    ``members``: those that changed, as they are now, by place; ``look_at``: when time alone changes something; None:
    never. ``changed``: there is something to write; the rollout's tick is then one more than before.
    """

    rollout: Rollout
    changed: bool = False
    members: tuple[Member, ...] = ()
    starts: tuple[Start, ...] = ()
    withdraws: tuple[Withdraw, ...] = ()
    decisions: tuple[Decision, ...] = ()
    log: tuple[MembershipChange, ...] = ()
    waits: tuple[Waiting, ...] = ()
    look_at: datetime | None = None
