"""`RolloutPlan`: one rollout as the planner follows it. The door of the package."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from droidfleet_controller.rollouts.planner import commands
from droidfleet_controller.rollouts.planner.advance import settle
from droidfleet_controller.rollouts.planner.book import Book
from droidfleet_controller.rollouts.planner.exchange import (
    Change,
    Decided,
    Joined,
    Left,
    Start,
    TryEnded,
    Withdraw,
)
from droidfleet_controller.rollouts.planner.pace import OpeningTimes, WindowTimes
from droidfleet_controller.rollouts.planner.results import joined, left, try_ended
from droidfleet_controller.rollouts.planner.retries import RetryBudget
from droidfleet_controller.rollouts.planner.starts import Starter
from droidfleet_controller.rollouts.planner.waits import waits
from droidfleet_controller.rollouts.rollout import Member, Rollout
from droidfleet_controller.rollouts.states import TERMINAL, Control, ReasonCode

__all__ = [
    "Change",
    "Decided",
    "Joined",
    "Left",
    "OpeningTimes",
    "RetryBudget",
    "RolloutPlan",
    "Start",
    "TryEnded",
    "Withdraw",
]


class RolloutPlan:
    """Follows one rollout. `take` notes changes, `decide` says what follows; both cost what changed.

    It is the only one that changes the records of a running rollout: when what it decided could not be written, throw
    it away and make a new one from the database. ``new_id`` gives ids of executions; ``opening``: left out, the window
    that the rollout states.
    """

    def __init__(
        self,
        rollout: Rollout,
        members: Iterable[Member],
        *,
        new_id: Callable[[], str],
        opening: OpeningTimes | None = None,
    ) -> None:
        window = rollout.spec.window
        if opening is None and window is not None:
            opening = WindowTimes(window)
        self._book = Book(rollout, members, opening=opening)
        self._new_id = new_id
        self._changes: deque[Change] = deque()

    @property
    def rollout(self) -> Rollout:
        """The rollout as it was last decided."""
        return self._book.rollout

    def member(self, device: str) -> Member | None:
        """The member that a device is, the dry run aside; None: it is none."""
        return self._book.member(device)

    def take(self, change: Change) -> None:
        """Notes what happened. Repeated and outdated changes (of an earlier try) do nothing."""
        self._changes.append(change)

    def decide(
        self, now: datetime, *, offline: Container[str], budget: RetryBudget, limit: int | None = None
    ) -> Decided:
        """What follows now. ``offline``: phones that cannot work; ``limit``: members that begin, or end for being
        offline, in one call, at most.

        Called again with nothing new and the same ``now`` it decides nothing more.
        """
        book = self._book
        book.begin(now)
        self._take_in(budget)
        starter = Starter(book=book, offline=offline, budget=budget, new_id=self._new_id, left=limit)
        settle(book)
        while starter.start():
            settle(book)
        return self._finish()

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
        commands.check(self._book, control, version=version)
        self._book.begin(now)
        if control in (Control.CANCEL, Control.ABORT):
            # What was told and not decided yet has happened before the end.
            self._book.ending = True
            self._take_in(RetryBudget())
        commands.carry_out(self._book, control, actor=actor, reason=reason, reason_code=reason_code)
        if self._book.stopping:
            settle(self._book)
        decided = self._finish()
        return decided if decided.rollout.state in TERMINAL else replace(decided, look_at=now)

    def _take_in(self, budget: RetryBudget) -> None:
        while self._changes:
            change = self._changes.popleft()
            match change:
                case TryEnded():
                    try_ended(self._book, change, budget)
                case Joined():
                    joined(self._book, change)
                case Left():
                    left(self._book, change)
                case _:
                    assert_never(change)

    def _finish(self) -> Decided:
        decided = self._book.finish()
        found, look_at = waits(self._book)
        return replace(decided, waits=found, look_at=look_at)
