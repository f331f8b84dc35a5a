"""Carries out what the planner decided: everything of one decision in one transaction of bounded length.

Two controllers may plan the same rollout: the one whose tick is outdated is refused, and nothing of it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import Connection

from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.assign import Assigned
from droidfleet_controller.dispatch.cancel import Withdrawal, Withdrawn, withdraw
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.states import BEGUN, ExecutionState
from droidfleet_controller.rollouts.planner.plan import Decided, Start, Withdraw
from droidfleet_controller.rollouts.rollout import Rollout
from droidfleet_controller.rollouts.states import RolloutState
from droidfleet_controller.store import events, executions, rollouts, run_values
from droidfleet_controller.store.events import AuditLine, FleetEvent

CHUNK = 500
"""Executions that one transaction begins, or ends, at most: others wait for a fraction of a second only."""


class OvertakenError(Exception):
    """Somebody else wrote the rollout meanwhile; nothing was written."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a transaction did, for those who have to be told. ``changed``: the rollout's state or wave is another."""

    decided: Decided
    started: tuple[Assigned, ...] = ()
    withdrawn: Withdrawn = field(default_factory=Withdrawn)
    changed: bool = False
    more: bool = False
    """More has to be ended than one transaction should: `end_stragglers` does the rest."""


def write(
    connection: Connection, before: Rollout, decided: Decided, *, now: datetime, asked: AuditLine | None = None
) -> Written:
    """Writes what was decided about the rollout ``before``. ``asked``: who asked for it, where somebody did.

    Raises:
        OvertakenError: the rollout in the database is not ``before``.
    """
    after = decided.rollout
    rollout_id = after.rollout_id
    if not rollouts.save(connection, after, read_tick=before.tick):
        raise OvertakenError
    rollouts.save_members(connection, rollout_id, decided.members)
    rollouts.add_decisions(connection, rollout_id, decided.decisions)
    rollouts.add_membership(connection, rollout_id, decided.log)
    if asked is not None:
        events.add_audit(connection, asked)
    ending = after.state in rollouts.ENDING
    withdraws = decided.withdraws[:CHUNK] if ending else decided.withdraws
    withdrawn = withdraw(connection, _withdrawals(connection, withdraws), now=now) if withdraws else Withdrawn()
    started = tuple(_start(connection, after, some, now) for some in _rounds(decided.starts))
    changed = (before.state, before.reason_code, before.wave) != (after.state, after.reason_code, after.wave)
    if changed:
        events.add(connection, [_event(after, now)])
    if after.ended_at is not None:
        run_values.release(connection, rollout_id)
    return Written(decided, started, withdrawn, changed, more=len(withdraws) < len(decided.withdraws))


def end_stragglers(connection: Connection, *, now: datetime) -> tuple[Withdrawn, bool]:
    """Ends, or asks to end, what still runs of rollouts that were ended; whether there may be more of it."""
    found = rollouts.still_running(connection, limit=CHUNK)
    wanted = [
        Withdrawal(execution_id, reason, fence=state is RolloutState.ABORTED) for execution_id, state, reason in found
    ]
    return withdraw(connection, wanted, now=now) if wanted else Withdrawn(), len(found) == CHUNK


def _withdrawals(connection: Connection, withdraws: Sequence[Withdraw]) -> list[Withdrawal]:
    gentle = [each.execution_id for each in withdraws if each.unless_begun]
    found = executions.find(connection, gentle) if gentle else {}
    begun = {execution_id for execution_id, execution in found.items() if execution.state in BEGUN}
    return [
        Withdrawal(each.execution_id, each.reason, fence=each.fence)
        for each in withdraws
        if each.execution_id not in begun
    ]


def _rounds(starts: Sequence[Start]) -> Iterator[list[Start]]:
    """The starts so that no device has two in one round."""
    left = list(starts)
    while left:
        firsts = {start.device: start for start in reversed(left)}
        chosen = {start.execution_id for start in firsts.values()}
        yield [start for start in left if start.execution_id in chosen]
        left = [start for start in left if start.execution_id not in chosen]


def _start(connection: Connection, rollout: Rollout, starts: Sequence[Start], now: datetime) -> Assigned:
    queued = [_execution(rollout, start, now) for start in starts]
    assigned = assign.refresh(connection, [start.device for start in starts], now=now, fresh=queued)
    executions.add(connection, assigned.fresh)
    events.add(connection, [happening("ExecutionCreated", execution, now=now) for execution in assigned.fresh])
    return assigned


def _execution(rollout: Rollout, start: Start, now: datetime) -> Execution:
    subject, deadlines = rollout.subject, rollout.spec.deadlines
    accept_within = deadlines.accept_within
    expires_at = now + deadlines.start_within
    return Execution(
        execution_id=start.execution_id,
        run_id=rollout.rollout_id,
        device=start.device,
        task_id=subject.task_id,
        revision=subject.revision,
        text=replace(subject.text, values_id=start.values_id),
        step_count=subject.step_count,
        bound_s=subject.bound_s,
        state=ExecutionState.QUEUED,
        created_at=now,
        updated_at=now,
        expires_at=expires_at,
        check_at=expires_at,
        priority=rollout.spec.priority,
        try_number=start.try_number,
        accept_within_s=None if accept_within is None else accept_within.total_seconds(),
    )


def _event(rollout: Rollout, now: datetime) -> FleetEvent:
    why = ": ".join(part for part in (rollout.reason_code.value, rollout.reason) if part)
    where = f"wave {rollout.wave}" if rollout.wave else "before the first wave"
    summary = f"rollout {rollout.rollout_id}: {rollout.state}, {where}" + (f" ({why})" if why else "")
    return FleetEvent(occurred_at=now, recorded_at=now, kind="RolloutChanged", summary=summary[:500])
