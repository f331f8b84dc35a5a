"""`RolloutPlan`: one rollout as the planner follows it. The door of the package."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
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
from droidfleet_controller.rollouts.states import Control, ReasonCode


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


class RetryBudget:
    """Shared by all rollouts: retries are at most a share of what was begun in the last hour. Pure bookkeeping."""


class RolloutPlan:
    """Follows one rollout. `take` notes changes, `decide` says what follows; both cost what changed.

    It is the only one that changes the records of a running rollout: when what it decided could not be written, throw
    it away and make a new one from the database. ``new_id`` gives ids of executions.
    """

    def __init__(self, rollout: Rollout, members: Iterable[Member], *, new_id: Callable[[], str]) -> None:
        raise NotImplementedError

    def take(self, change: Change) -> None:
        """Notes what happened. Repeated and outdated changes (of an earlier try) do nothing."""
        raise NotImplementedError

    def decide(
        self, now: datetime, *, offline: Container[str], budget: RetryBudget, limit: int | None = None
    ) -> Decided:
        """What follows now. ``offline``: phones that cannot work; ``limit``: starts in one call, at most.

        Called again with nothing new and the same ``now`` it decides nothing more.
        """
        raise NotImplementedError

    def command(
        self,
        control: Control,
        *,
        version: int | None,
        now: datetime,
        actor: str,
        reason: str,
        reason_code: ReasonCode | None = None,
    ) -> Decided:
        """What somebody asked for, done; `decide` afterwards says what follows. ``version``: that the caller saw; None:
        a rule asks, whatever the version. ``reason_code``: of a cancel by a rule.

        Raises:
            ConflictError: ``STALE_VERSION``.
            PreconditionError: ``ROLLOUT_...``: its state does not allow it. Nothing has changed.
        """
        raise NotImplementedError
