"""`Rollouts`: the use cases around rollouts, and the only writer of running ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from sqlalchemy import Connection

from droidfleet_controller.rollouts.rollout import Decision, MembershipChange, Rollout
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.starting import Prepared
from droidfleet_controller.rollouts.states import Control, ReasonCode
from droidfleet_controller.rollouts.views import (
    MemberFilter,
    MemberView,
    Preflight,
    RolloutFilter,
    RolloutView,
    StartedRollout,
    StartRollout,
)
from droidfleet_controller.tasks.values import RunValues


class Rollouts:
    """The use cases."""

    # Before the start.

    async def plan(self, spec_json: str) -> Preflight:
        """What a rollout would do, and everything that is wrong with it. Stores nothing; never raises for bad input."""
        raise NotImplementedError

    async def start(self, asked: StartRollout) -> StartedRollout:
        """Begins a rollout, or answers with what the same call began before.

        Raises:
            InvalidInputError: ``INVALID_ROLLOUT`` with all issues; nothing is left behind.
            ConflictError: ``REQUEST_ID_REUSED``.
        """
        raise NotImplementedError

    # For schedules, which begin rollouts inside a transaction of their own.

    async def prepare(self, spec: RolloutSpec, *, secrets: RunValues | None = None) -> Prepared:
        """Everything that can be found out before the start, as things are now.

        Raises:
            InvalidInputError: ``INVALID_ROLLOUT`` with all issues.
        """
        raise NotImplementedError

    def create(
        self,
        connection: Connection,
        prepared: Prepared,
        *,
        now: datetime,
        request_id: str,
        actor: str,
        schedule_id: str = "",
        intended_at: datetime | None = None,
    ) -> Rollout:
        """Writes a new rollout inside the caller's transaction. After its commit call `adopt`."""
        raise NotImplementedError

    def adopt(self, rollout: Rollout) -> None:
        """Takes a rollout that was committed into the hands of the planner. On the event loop."""
        raise NotImplementedError

    async def end(self, rollout_id: str, *, reason_code: ReasonCode, reason: str, actor: str) -> None:
        """Cancels a rollout by rule, whatever its version; one that has ended or is being cancelled stays as it is."""
        raise NotImplementedError

    # While it goes on.

    async def control(self, rollout_id: str, control: Control, *, version: int, reason: str, actor: str) -> RolloutView:
        """Pauses, resumes, promotes, cancels or aborts.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
            ConflictError: ``STALE_VERSION``: it is not in the version that the caller saw.
            PreconditionError: its state does not allow it.
        """
        raise NotImplementedError

    async def run(self) -> None:
        """Loads what goes on and follows it until cancelled."""
        raise NotImplementedError

    # Reading.

    async def get(self, rollout_id: str) -> RolloutView:
        """One rollout as it stands.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """
        raise NotImplementedError

    def watch(self, rollout_id: str) -> AsyncIterator[RolloutView]:
        """The rollout as it is now and again after changes, at most four times a second, until it has ended.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
            ExhaustedError: ``TOO_MANY_WATCHES``.
        """
        raise NotImplementedError

    async def page(self, wanted: RolloutFilter, *, before: int | None, limit: int) -> Sequence[tuple[int, RolloutView]]:
        """Rollouts with their row numbers, newest first, from before row ``before`` on."""
        raise NotImplementedError

    async def members(self, rollout_id: str, wanted: MemberFilter, *, after: int, limit: int) -> Sequence[MemberView]:
        """Members in the order of their places, from after place ``after`` (-1: from the first) on.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """
        raise NotImplementedError

    async def decisions(self, rollout_id: str, *, after: int, limit: int) -> Sequence[tuple[int, Decision]]:
        """Decisions with their row numbers, oldest first, from after row ``after`` (0: from the first) on.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """
        raise NotImplementedError

    async def membership(self, rollout_id: str, *, after: int, limit: int) -> Sequence[tuple[int, MembershipChange]]:
        """The membership log with row numbers, oldest first, from after row ``after`` (0: from the first) on.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """
        raise NotImplementedError
