"""The rollouts that go on, as this controller follows them: what each one's planner is told, when it decides, and the
writing of what it decided. The only writer of a running rollout.

What happened is noted at once and handed to the planner when its turn comes. A plan whose decision could not be written
is thrown away and made anew from the database, together with what ended meanwhile; so nothing is lost or done twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog
from sqlalchemy import Connection

from droidfleet_controller.dispatch.assign import Assigned
from droidfleet_controller.dispatch.cancel import Cancels, Withdrawn
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.rollouts.amounts import Percent
from droidfleet_controller.rollouts.outcomes import try_ended
from droidfleet_controller.rollouts.planner.plan import Decided, Joined, Left, RetryBudget, RolloutPlan, TryEnded
from droidfleet_controller.rollouts.reading import require
from droidfleet_controller.rollouts.rollout import DRY_RUN_WAVE, Member, Rollout, Waiting
from droidfleet_controller.rollouts.spec import Membership
from droidfleet_controller.rollouts.states import Control, MemberState, Outcome, ReasonCode, RolloutState
from droidfleet_controller.rollouts.values import own_places, values_id
from droidfleet_controller.rollouts.writing import CHUNK, OvertakenError, Written, end_stragglers, write
from droidfleet_controller.store import rollout_counts, rollouts
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, UnavailableError

log = structlog.get_logger(__name__)

COALESCE_S = 0.05
"""How long results are collected before a decision: a burst of them costs one transaction."""

LOOK_S = 1.0
"""Waits end, and members join and leave, to the second."""

COMPARE = timedelta(seconds=30)
"""How often what runs is compared with the database: another controller may have heard what this one has not."""

RETRY_AFTER = timedelta(seconds=1)
"""How soon a rollout that could not be written is tried again."""

BUDGET_SPAN = timedelta(hours=1)
HUNDREDTHS = 100


@dataclass(slots=True)
class _Followed:
    """One rollout. ``rollout``: as it was last read or written; ``plan`` None: to be made from the database. ``ended``:
    what the plan has not been told yet, by execution; ``belonging``: who is known to belong to it (CONTINUOUS)."""

    rollout_id: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    rollout: Rollout | None = None
    plan: RolloutPlan | None = None
    ended: dict[str, TryEnded] = field(default_factory=dict)
    belonging: set[str] = field(default_factory=set)
    own: Mapping[str, str] = field(default_factory=dict)
    waits: tuple[Waiting, ...] = ()
    look_at: datetime | None = None
    compare_at: datetime | None = None
    is_due: bool = True
    look_at_members: bool = True

    def forget(self) -> None:
        """What is in memory may not be what is in the database."""
        self.plan = None
        self.is_due = True


@dataclass(frozen=True, slots=True)
class _Loaded:
    rollout: Rollout
    members: list[Member]
    ended: list[Execution]


class Following:
    """Follows all rollouts that go on. ``changed``: called with the id of a rollout that readers see otherwise now."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        targets: Targets,
        publisher: Publisher,
        broadcast: Broadcast,
        cancels: Cancels,
        metrics: Metrics,
        retry_budget_percent: int,
        new_id: Callable[[str], str],
        changed: Callable[[str], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._targets = targets
        self._publisher = publisher
        self._broadcast = broadcast
        self._cancels = cancels
        self._metrics = metrics
        self._share = Percent(retry_budget_percent * HUNDREDTHS)
        self._budget = RetryBudget(share=self._share)
        self._new_id = partial(new_id, "x")
        self._changed = changed
        self._open: dict[str, _Followed] = {}
        self._woken = asyncio.Event()
        self._stragglers = True
        self._members_may_differ = False
        broadcast.on_executions(self._heard)
        targets.on_changed(self._targets_changed)

    # What happens.

    def adopt(self, rollout_id: str) -> None:
        """Follows a rollout from now on. On the event loop."""
        self._open.setdefault(rollout_id, _Followed(rollout_id)).is_due = True
        self._woken.set()

    async def begin(self, rollout_id: str) -> None:
        """Decides about a new rollout at once: whoever started it sees where it stands, and in which version."""
        self.adopt(rollout_id)
        await self._turn(self._open[rollout_id])

    def _heard(self, changed: Collection[Execution]) -> None:
        for execution in changed:
            followed = self._open.get(execution.run_id)
            if followed is not None and execution.terminal:
                followed.ended[execution.execution_id] = try_ended(execution)
                followed.is_due = True
                self._woken.set()
        for run_id in {execution.run_id for execution in changed}:
            self._changed(run_id)

    def _targets_changed(self) -> None:
        self._members_may_differ = True

    # Questions.

    def waits(self, rollout_id: str) -> tuple[Waiting, ...]:
        """Why a rollout waits, as far as this controller follows it."""
        followed = self._open.get(rollout_id)
        return followed.waits if followed is not None else ()

    def counts(self) -> Counter[RolloutState]:
        """How many rollouts that go on are in each state."""
        return Counter(each.rollout.state for each in self._open.values() if each.rollout is not None)

    # The loop.

    async def run(self) -> None:
        """Loads what goes on and follows it until cancelled."""
        await self._load()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._decide(), name="rollout decisions")
            group.create_task(self._keep_time(), name="rollout times")

    async def _load(self) -> None:
        while True:
            try:
                since = self._clock.now() - BUDGET_SPAN
                history = await self._database.run(partial(rollout_counts.tried_lately, since=since))
                for rollout_id in await self._database.run(rollouts.open_ids):
                    self.adopt(rollout_id)
            except UnavailableError as error:
                log.warning("rollouts_unread", code=error.code, message=error.message)
                await self._clock.sleep(LOOK_S)
            else:
                self._budget = RetryBudget(history, share=self._share)
                self._woken.set()
                return

    async def _keep_time(self) -> None:
        while True:
            await self._clock.sleep(LOOK_S)
            self.look()

    async def _decide(self) -> None:
        while True:
            await self._woken.wait()
            await self._clock.sleep(COALESCE_S)
            self._woken.clear()
            await self.decide()

    def look(self) -> None:
        """Finds out for whom time alone has come, and who may have joined or left."""
        now = self._clock.now()
        differ, self._members_may_differ = self._members_may_differ, False
        for followed in self._open.values():
            followed.look_at_members |= differ
            changed = differ and followed.rollout is not None and _is_continuous(followed.rollout)
            due = (each is not None and each <= now for each in (followed.look_at, followed.compare_at))
            followed.is_due |= changed or any(due)
            self._changed(followed.rollout_id)
        if self._stragglers or any(followed.is_due for followed in self._open.values()):
            self._woken.set()

    async def decide(self) -> None:
        """Decides once about each rollout that is due: one chunk, so that none has to wait for all of another."""
        for followed in [each for each in self._open.values() if each.is_due]:
            await self._turn(followed)
        if self._stragglers:
            await self._end_stragglers()

    async def _turn(self, followed: _Followed) -> None:
        try:
            async with followed.lock:
                followed.is_due = False
                with self._metrics.rollout_tick_seconds.time():
                    await self._follow(followed)
        except OvertakenError:
            log.info("rollout_overtaken", rollout_id=followed.rollout_id)
            self._woken.set()
        except UnavailableError as error:
            log.warning("rollout_unwritten", rollout_id=followed.rollout_id, code=error.code, message=error.message)
            self._later(followed)
        except Exception:
            # A rollout that breaks us must not hold up the others.
            log.exception("rollout_undecidable", rollout_id=followed.rollout_id)
            followed.forget()
            self._later(followed)

    def _later(self, followed: _Followed) -> None:
        followed.is_due = False
        followed.look_at = self._clock.now() + RETRY_AFTER

    async def _follow(self, followed: _Followed) -> None:
        plan = await self._plan_of(followed)
        if plan is None:
            return
        await self._compare(followed)
        self._tell(followed, plan)
        now = self._clock.now()
        decided = plan.decide(now, offline=self._targets.offline(), budget=self._budget, limit=CHUNK)
        await self._carry_out(followed, decided)
        if decided.changed and decided.look_at is not None and decided.look_at <= now:
            # More than fits into one transaction.
            followed.is_due = True
            self._woken.set()

    async def _plan_of(self, followed: _Followed) -> RolloutPlan | None:
        """The plan, made from the database where there is none; None: the rollout has ended."""
        if followed.plan is not None:
            return followed.plan
        loaded = await self._database.run(lambda connection: _read(connection, followed.rollout_id))
        rollout = followed.rollout = loaded.rollout
        if rollout.ended_at is not None:
            self._open.pop(followed.rollout_id, None)
            followed.waits = ()
            return None
        followed.plan = RolloutPlan(rollout, loaded.members, new_id=self._new_id)
        followed.own = own_places(rollout.spec)
        followed.belonging = {
            member.device
            for member in loaded.members
            if member.wave != DRY_RUN_WAVE and member.outcome is not Outcome.REMOVED
        }
        followed.look_at_members = True
        self._note_ended(followed, loaded.ended)
        return followed.plan

    async def _compare(self, followed: _Followed) -> None:
        now = self._clock.now()
        if followed.compare_at is None or followed.compare_at <= now:
            if followed.compare_at is not None:
                rollout_id = followed.rollout_id
                ended = await self._database.run(lambda connection: rollouts.ended_unnoticed(connection, rollout_id))
                self._note_ended(followed, ended)
            # Nobody tells of a phone that stays silent after a downtime, when its time to be heard is over.
            followed.look_at_members = True
            followed.compare_at = now + COMPARE

    def _note_ended(self, followed: _Followed, ended: Collection[Execution]) -> None:
        for execution in ended:
            # What was announced meanwhile is no older.
            followed.ended.setdefault(execution.execution_id, try_ended(execution))

    def _tell(self, followed: _Followed, plan: RolloutPlan) -> None:
        """Hands the plan what happened since its last decision."""
        ended, followed.ended = followed.ended, {}
        for change in ended.values():
            plan.take(change)
        rollout = followed.rollout
        if rollout is None or not (followed.look_at_members and _is_continuous(rollout)):
            return
        followed.look_at_members = False
        try:
            meant = self._targets.matches(rollout.spec.target)
        except DroidfleetError as error:
            # A group that is gone says nothing of its phones.
            log.warning("rollout_target_unknown", rollout_id=followed.rollout_id, code=error.code)
            return
        now = self._clock.now()
        for device in sorted(meant - followed.belonging):
            kept = values_id(rollout.rollout_id, rollout.spec, followed.own, device)
            plan.take(Joined(device=device, values_id=kept, at=now))
        for device in sorted(followed.belonging - meant):
            plan.take(Left(device=device, at=now))
        followed.belonging = set(meant)

    async def _carry_out(self, followed: _Followed, decided: Decided, *, asked: AuditLine | None = None) -> None:
        followed.waits, followed.look_at = decided.waits, decided.look_at
        before = followed.rollout
        assert before is not None
        if decided.changed or asked is not None:
            now = self._clock.now()
            try:
                await self._database.run(
                    lambda connection: write(connection, before, decided, now=now, asked=asked), after=self._announce
                )
            except BaseException:
                # Also when the caller was cancelled: what became of it is in the database.
                followed.forget()
                raise
            followed.rollout = decided.rollout
        if decided.rollout.ended_at is not None:
            self._open.pop(followed.rollout_id, None)
            followed.waits = ()
        self._changed(followed.rollout_id)

    async def _end_stragglers(self) -> None:
        now = self._clock.now()
        try:
            _, more = await self._database.run(
                partial(end_stragglers, now=now), after=lambda done: self._announce_withdrawn(done[0])
            )
        except UnavailableError as error:
            log.warning("rollout_stragglers_left", code=error.code, message=error.message)
            return
        self._stragglers = more
        if more:
            self._woken.set()

    # What people ask.

    async def command(
        self,
        rollout_id: str,
        control: Control,
        *,
        version: int | None,
        reason: str,
        actor: str,
        reason_code: ReasonCode | None = None,
    ) -> None:
        """Carries out a command; what follows is decided at once afterwards.

        Raises:
            NotFoundError: ``ROLLOUT_NOT_FOUND``.
            ConflictError: ``STALE_VERSION``.
            PreconditionError: its state does not allow it.
            UnavailableError: it could not be written; it may be asked for again.
        """
        followed = self._open.get(rollout_id) or _Followed(rollout_id)
        async with followed.lock:
            plan = await self._plan_of(followed)
            rollout = followed.rollout
            assert rollout is not None
            if plan is None:
                plan = RolloutPlan(rollout, (), new_id=self._new_id)
            else:
                self._open.setdefault(rollout_id, followed)
            self._tell(followed, plan)
            now = self._clock.now()
            decided = plan.command(
                control, version=version, now=now, actor=actor, reason=reason, reason_code=reason_code
            )
            line = AuditLine(
                at=now, actor=actor, command=f"{control.value.title()}Rollout", subject=rollout_id, details=reason
            )
            try:
                await self._carry_out(followed, decided, asked=line)
            except OvertakenError:
                self._woken.set()
                raise UnavailableError(
                    "ROLLOUT_BUSY",
                    f"another controller changed rollout {rollout_id} at this moment.",
                    hint="Look at it again, and repeat the command.",
                ) from None
        followed.is_due = True
        self._woken.set()

    # What was done.

    def _announce(self, written: Written) -> None:
        decided, metrics = written.decided, self._metrics
        for assigned in written.started:
            self._announce_started(assigned)
        self._announce_withdrawn(written.withdrawn)
        if written.changed or written.started:
            self._broadcast.events()
        self._stragglers |= written.more
        for rule, count in Counter(decision.rule for decision in decided.decisions).items():
            metrics.rollout_decisions.labels(rule=rule.value.lower()).inc(count)
        ended = Counter(member.outcome for member in decided.members if member.state is MemberState.ENDED)
        for outcome, count in ended.items():
            metrics.rollout_members.labels(outcome=outcome.value.lower()).inc(count)
        metrics.rollout_retries.inc(sum(start.try_number > 1 for start in decided.starts))
        rollout = decided.rollout
        log.info(
            "rollout_decided",
            rollout_id=rollout.rollout_id,
            state=rollout.state.value,
            reason_code=rollout.reason_code.value,
            wave=rollout.wave,
            starts=len(decided.starts),
            withdraws=len(decided.withdraws),
            rules=[decision.rule.value for decision in decided.decisions],
        )

    def _announce_started(self, assigned: Assigned) -> None:
        self._publisher.submit(assigned.documents)
        self._broadcast.executions(assigned.changed)

    def _announce_withdrawn(self, withdrawn: Withdrawn) -> None:
        self._cancels.announce(withdrawn)


def _is_continuous(rollout: Rollout) -> bool:
    return rollout.spec.membership is Membership.CONTINUOUS


def _read(connection: Connection, rollout_id: str) -> _Loaded:
    rollout = require(connection, rollout_id)
    if rollout.ended_at is not None:
        return _Loaded(rollout, [], [])
    return _Loaded(rollout, rollouts.members(connection, rollout_id), rollouts.ended_unnoticed(connection, rollout_id))
