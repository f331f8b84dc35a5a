"""`Rollouts`: the use cases around rollouts, for the API, the schedules and the reports."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import structlog
from sqlalchemy import Connection

from droidfleet_controller.dispatch.cancel import Cancels
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.runs import MAX_REQUEST_ID
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.dispatch.window import MAX_REASON
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.ids import new_id as random_id
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.rollouts import reading, starting
from droidfleet_controller.rollouts.check import INVALID_ROLLOUT
from droidfleet_controller.rollouts.documents import in_order, read
from droidfleet_controller.rollouts.following import Following
from droidfleet_controller.rollouts.issues import cut, require_none
from droidfleet_controller.rollouts.preflight import Preflights
from droidfleet_controller.rollouts.rollout import Decision, MembershipChange, Rollout
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.starting import Prepared
from droidfleet_controller.rollouts.states import TERMINAL, Control, ReasonCode, RolloutState
from droidfleet_controller.rollouts.values import digest, split
from droidfleet_controller.rollouts.views import (
    MemberFilter,
    MemberView,
    Preflight,
    RolloutFilter,
    RolloutView,
    StartedRollout,
    StartRollout,
)
from droidfleet_controller.store import rollouts
from droidfleet_controller.store.database import Database
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ExhaustedError, InvalidInputError, PreconditionError

log = structlog.get_logger(__name__)

WATCH_S = 0.25
"""Between two views that a watcher is sent, at least."""

MAX_WATCHERS = 1_000
"""Open watches of rollouts at a time."""


class Rollouts:
    """The use cases. ``retry_budget_percent``: retries of all rollouts together, of what began in the last hour."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        registry: Registry,
        targets: Targets,
        publisher: Publisher,
        broadcast: Broadcast,
        cancels: Cancels,
        metrics: Metrics,
        retry_budget_percent: int = 10,
        new_id: Callable[[str], str] = random_id,
    ) -> None:
        self._database = database
        self._clock = clock
        self._targets = targets
        self._broadcast = broadcast
        self._new_id = new_id
        self._preflights = Preflights(database=database, registry=registry, targets=targets)
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._watching = 0
        self._following = Following(
            database=database,
            clock=clock,
            targets=targets,
            publisher=publisher,
            broadcast=broadcast,
            cancels=cancels,
            metrics=metrics,
            retry_budget_percent=retry_budget_percent,
            new_id=new_id,
            changed=self._wake,
        )

    # Before the start.

    async def plan(self, spec_json: str) -> Preflight:
        """What a rollout would do, and everything that is wrong with it. Stores nothing; never raises for bad input."""
        found = read(spec_json, RolloutSpec)
        if found.model is None:
            return Preflight(errors=found.issues)
        looked = await self._preflights.look(found.model)
        return Preflight(
            errors=cut(in_order(looked.errors, found.document)),
            warnings=cut(in_order(looked.warnings, found.document)),
            plan=looked.plan,
        )

    async def start(self, asked: StartRollout) -> StartedRollout:
        """Begins a rollout, or answers with what the same call began before.

        Raises:
            InvalidInputError: ``INVALID_ROLLOUT`` with all issues; nothing is left behind.
            ConflictError: ``REQUEST_ID_REUSED``.
        """
        if len(asked.request_id) > MAX_REQUEST_ID:
            raise InvalidInputError("BAD_REQUEST_ID", f"at most {MAX_REQUEST_ID} characters.")
        found = read(asked.spec_json, RolloutSpec)
        require_none(found.issues, code=INVALID_ROLLOUT, what="the rollout")
        assert found.model is not None
        spec, request_id = found.model, asked.request_id
        before = await self._database.run(lambda connection: _before(connection, spec, request_id))
        if before is not None:
            return StartedRollout(view=await self.get(before.rollout_id))
        looked = await self._preflights.look(spec)
        errors = cut(in_order(looked.errors, found.document))
        require_none(errors, code=INVALID_ROLLOUT, what="the rollout")
        prepared = looked.prepared
        assert prepared is not None
        now = self._clock.now()

        def begin(connection: Connection) -> tuple[Rollout, bool]:
            # Once more: the same call may have come twice at the same time.
            before = _before(connection, spec, request_id)
            if before is not None:
                return before, False
            created = self.create(connection, prepared, now=now, request_id=request_id, actor=asked.actor)
            return created, True

        rollout, created = await self._database.run(begin, after=lambda begun: self._begun(*begun))
        if created:
            await self._following.begin(rollout.rollout_id)
        warnings = cut(in_order(looked.warnings, found.document))
        return StartedRollout(view=await self.get(rollout.rollout_id), warnings=warnings)

    def _begun(self, rollout: Rollout, created: bool) -> None:
        if created:
            self.adopt(rollout)

    # For schedules, which begin rollouts inside a transaction of their own.

    async def prepare(self, spec: RolloutSpec) -> Prepared:
        """Everything that a start needs, as things are now. ``spec`` with its secrets in it (`values.joined`).

        Raises:
            InvalidInputError: ``INVALID_ROLLOUT`` with all issues.
        """
        return await self._preflights.prepare(spec)

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
        return starting.create(
            connection,
            prepared,
            rollout_id=self._new_id("ro"),
            now=now,
            request_id=request_id,
            actor=actor,
            schedule_id=schedule_id,
            intended_at=intended_at,
        )

    def adopt(self, rollout: Rollout) -> None:
        """Takes a rollout that was committed into the hands of the planner. On the event loop."""
        log.info("rollout_created", rollout_id=rollout.rollout_id, schedule_id=rollout.schedule_id)
        self._following.adopt(rollout.rollout_id)
        self._broadcast.events()

    async def end(self, rollout_id: str, *, reason_code: ReasonCode, reason: str, actor: str) -> None:
        """Cancels a rollout by rule, whatever its version; one that has ended or is being cancelled stays as it is.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
            UnavailableError: it could not be written; it may be asked for again.
        """
        try:
            await self._following.command(
                rollout_id, Control.CANCEL, version=None, reason=reason, actor=actor, reason_code=reason_code
            )
        except PreconditionError as error:
            log.info("rollout_ended_before", rollout_id=rollout_id, code=error.code)

    # While it goes on.

    async def control(self, rollout_id: str, control: Control, *, version: int, reason: str, actor: str) -> RolloutView:
        """Pauses, resumes, promotes, cancels or aborts.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
            ConflictError: ``STALE_VERSION``: it is not in the version that the caller saw.
            PreconditionError: its state does not allow it.
        """
        await self._following.command(rollout_id, control, version=version, reason=reason[:MAX_REASON], actor=actor)
        return await self.get(rollout_id)

    async def run(self) -> None:
        """Loads what goes on and follows it until cancelled."""
        await self._following.run()

    def counts(self) -> Counter[RolloutState]:
        """How many rollouts that go on are in each state."""
        return self._following.counts()

    # Reading.

    async def get(self, rollout_id: str) -> RolloutView:
        """One rollout as it stands.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """
        now, offline = self._clock.now(), self._targets.offline()
        waits = self._following.waits(rollout_id)
        return await self._database.run(
            lambda connection: reading.view(connection, rollout_id, now=now, waits=waits, offline=offline)
        )

    async def watch(self, rollout_id: str) -> AsyncIterator[RolloutView]:
        """The rollout as it is now and again after changes, at most four times a second, until it has ended.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
            ExhaustedError: ``TOO_MANY_WATCHES``.
        """
        last: RolloutView | None = None
        with self._watched(rollout_id) as woken:
            while last is None or last.rollout.state not in TERMINAL:
                woken.clear()
                view = await self.get(rollout_id)
                if view != last:
                    yield view
                last = view
                if view.rollout.state not in TERMINAL:
                    await woken.wait()
                    await self._clock.sleep(WATCH_S)

    @contextmanager
    def _watched(self, rollout_id: str) -> Iterator[asyncio.Event]:
        if self._watching >= MAX_WATCHERS:
            raise ExhaustedError(
                "TOO_MANY_WATCHES", f"{MAX_WATCHERS} watches of rollouts are open.", hint="Close some of them."
            )
        woken = asyncio.Event()
        self._watching += 1
        watchers = self._watchers.setdefault(rollout_id, set())
        watchers.add(woken)
        try:
            yield woken
        finally:
            self._watching -= 1
            watchers.discard(woken)
            if not watchers:
                self._watchers.pop(rollout_id, None)

    def _wake(self, rollout_id: str) -> None:
        for woken in self._watchers.get(rollout_id, ()):
            woken.set()

    async def page(self, wanted: RolloutFilter, *, before: int | None, limit: int) -> Sequence[tuple[int, RolloutView]]:
        """Rollouts with their row numbers, newest first, from before row ``before`` on; they are not counted."""
        rows = await self._database.run(
            lambda connection: rollouts.page(connection, wanted, before=before, limit=limit)
        )
        return [(number, RolloutView(rollout=rollout)) for number, rollout in rows]

    async def members(self, rollout_id: str, wanted: MemberFilter, *, after: int, limit: int) -> Sequence[MemberView]:
        """Members in the order of their places, from after place ``after`` (-1: from the first) on.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """

        def page(connection: Connection) -> list[MemberView]:
            reading.require(connection, rollout_id)
            return rollouts.member_page(connection, rollout_id, wanted, after=after, limit=limit)

        return await self._database.run(page)

    async def decisions(self, rollout_id: str, *, after: int, limit: int) -> Sequence[tuple[int, Decision]]:
        """Decisions with their row numbers, oldest first, from after row ``after`` (0: from the first) on.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """

        def page(connection: Connection) -> list[tuple[int, Decision]]:
            reading.require(connection, rollout_id)
            return rollouts.decision_page(connection, rollout_id, after=after, limit=limit)

        return await self._database.run(page)

    async def membership(self, rollout_id: str, *, after: int, limit: int) -> Sequence[tuple[int, MembershipChange]]:
        """The membership log with row numbers, oldest first, from after row ``after`` (0: from the first) on.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
        """

        def page(connection: Connection) -> list[tuple[int, MembershipChange]]:
            reading.require(connection, rollout_id)
            return rollouts.membership_page(connection, rollout_id, after=after, limit=limit)

        return await self._database.run(page)


def _before(connection: Connection, spec: RolloutSpec, request_id: str) -> Rollout | None:
    """The rollout that the same call created before."""
    if not request_id:
        return None
    _, asked = split(spec, frozenset())
    return starting.created_before(connection, request_id, digest=digest(spec), asked=asked)
