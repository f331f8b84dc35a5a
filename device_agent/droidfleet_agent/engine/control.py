"""The two ways in and out of a run while it goes on: what it announces, and how it is stopped or left.

Owns the port `RunObserver` and the switch `RunControl`. Never decides anything about a step.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from droidfleet_agent.engine.trail import Decided, Ended
from droidfleet_shared.protocol.result import ArtifactModel


class RunObserver(ABC):
    """Is told what a run does, in order. Each call is awaited before the run goes on.

    An exception from an observer ends the run and passes to the caller of `Engine.run`; when it comes from
    `dispatching` the phone has not been told anything.
    """

    @abstractmethod
    async def step_started(self, step_id: str, path: str) -> None:
        """A step begins. ``path`` is its JSON Pointer in the task, e.g. ``/steps/2``."""

    async def step_resumed(self, step_id: str, path: str) -> None:  # noqa: B027 - only who goes on later has to know
        """A step that an earlier process announced is entered again."""

    @abstractmethod
    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        """The phone is about to be told to do something; must be durable when it returns.

        ``ordinal`` counts from 1 within the step. After a crash, a step with a `dispatching` and without a
        `step_finished` is `OUTCOME_UNKNOWN`. An announced action that certainly did not happen (the phone refused it
        or was not reached) may be announced again with the next ordinal.
        """

    async def paused(self, step_id: str) -> None:  # noqa: B027 - only who reports it has to know
        """The run is held, in a step that has done nothing yet, or between two (``step_id`` empty)."""

    async def continued(self, step_id: str) -> None:  # noqa: B027 - only who reports it has to know
        """It goes on, from where it was held."""

    async def artifact(self, artifact: ArtifactModel, data: bytes) -> None:  # noqa: B027 - keeping it is a choice
        """Something too large for the result, ``data``, which the result names by its digest. At most
        `artifacts.MAX_ARTIFACT_BYTES`."""

    async def decided(self, decision: Decided) -> None:  # noqa: B027 - only who goes on later has to know
        """A container decided on a look. What comes after it in the log must not be durable without it."""

    @abstractmethod
    async def step_finished(self, ended: Ended) -> None:
        """A step ended, well or not."""


class RunCancelled(Exception):  # noqa: N818 - not an error: somebody asked for it
    """Raised inside the engine where a cancel is honoured; `Engine.run` turns it into the code ``CANCELLED``."""


class RunLeft(Exception):  # noqa: N818 - not an error: another process goes on
    """Raised inside the engine where a run is left, and passed on by `Engine.run`: nothing more is announced, and the
    trail leads on from here."""


class RunControl:
    """Stops one run from outside, from the same event loop.

    A cancel is honoured between steps, and at once inside a wait or a read of the phone. An action that was sent is
    always awaited to its answer: a cancel never makes an outcome unknown.

    A run that is left ends in the same places, but for those within a step that has announced an action: such a step
    goes on to its end, so that whoever goes on with the run finds nothing in doubt. A cancel goes before. It is paused
    in those places too (`hold`).
    """

    def __init__(self) -> None:
        self._reason: str | None = None
        self._leaving = False
        self.pausing = False
        """Whether somebody wants the run to be held. May be set at any time."""
        self._scopes: dict[asyncio.Timeout, bool] = {}
        """What can be interrupted now, and whether the run may be left there."""

    def cancel(self, reason: str) -> None:
        """Asks the run to stop; the first ``reason`` (a sentence for people) stands in the result."""
        if self._reason is not None:
            return
        self._reason = reason
        for scope in self._scopes:
            scope.reschedule(asyncio.get_running_loop().time())

    def leave(self) -> None:
        """Asks the run to stop so that another process can go on with it."""
        self._leaving = True
        for scope, may_leave in self._scopes.items():
            if may_leave:
                scope.reschedule(asyncio.get_running_loop().time())

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop."""
        return self._reason is not None

    @property
    def reason(self) -> str:
        """Why, or an empty string."""
        return self._reason or ""

    def check(self, *, may_leave: bool) -> None:
        """``may_leave``: nothing was announced here that has not ended.

        Raises:
            RunCancelled, RunLeft: the run was asked to stop.
        """
        if self.cancelled:
            raise RunCancelled
        if self._leaving and may_leave:
            raise RunLeft

    @asynccontextmanager
    async def interruptible(self, *, may_leave: bool) -> AsyncIterator[None]:
        """Its body ends early when the run is cancelled, or left where it may be. Only for waits and reads: never put
        an action inside.

        Raises:
            RunCancelled, RunLeft: before the body when already asked to, or from within it.
        """
        self.check(may_leave=may_leave)
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._scopes[scope] = may_leave
                try:
                    yield
                finally:
                    del self._scopes[scope]
        except TimeoutError:
            if scope.expired():
                raise (RunCancelled if self.cancelled else RunLeft) from None
            raise
