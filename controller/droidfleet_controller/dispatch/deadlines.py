"""When an execution has waited too long, and what follows. Pure.

No state lasts for ever. While its agent is heard an execution gets more time than when the agent is silent, because a
heard agent is the one who knows; silence is counted only from when this controller could have heard anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.states import ExecutionState

START_GRACE = timedelta(seconds=60)
"""For the events of a start that happened just before the expiry to arrive."""

RUN_MARGIN = timedelta(seconds=60)
"""On top of the task's own bound: for the agent to notice, finish its step and report."""

HEARD_MARGIN = timedelta(hours=1)
"""A heard agent that never reports the end has forgotten the execution; this much later nobody waits any longer."""

LONGEST_HOLD = timedelta(hours=24)
"""Of a paused execution: then its agent ends it (`droidfleet_agent.engine.hold`)."""

RECHECK = timedelta(seconds=10)
"""How soon an overdue execution whose agent is heard is looked at again."""


class Verdict(StrEnum):
    """What to do with an execution whose time of checking has come."""

    WAIT = "WAIT"
    EXPIRE = "EXPIRE"
    """It never left the controller: it ends as EXPIRED."""
    WITHDRAW = "WITHDRAW"
    """Publish its document again, with no time left to start: an agent that has not started it refuses it."""
    LOSE = "LOSE"
    """It ends as LOST."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason (a stable code first) and when to look again; None: never."""

    verdict: Verdict
    reason: str = ""
    check_at: datetime | None = None


def first_check(execution: Execution) -> datetime | None:
    """When a deadline of ``execution`` can pass at the earliest, as it stands now; None when it has ended."""
    match execution.state:
        case ExecutionState.QUEUED:
            return execution.expires_at
        case ExecutionState.ASSIGNED:
            return take_on_by(execution)
        case ExecutionState.ACCEPTED | ExecutionState.RUNNING | ExecutionState.PAUSED:
            return _run_deadline(execution)
        case _:
            return None


def judge(execution: Execution, *, agent_silent: bool, now: datetime) -> Judgement:
    """What to do with ``execution`` now. ``agent_silent``: not heard for three heartbeats in which we could hear."""
    state = execution.state
    match state:
        case ExecutionState.QUEUED:
            if now < execution.expires_at:
                return Judgement(Verdict.WAIT, check_at=execution.expires_at)
            return Judgement(Verdict.EXPIRE, "NOT_STARTED_IN_TIME: it waited in the controller until its expiry.")
        case ExecutionState.ASSIGNED:
            return _assigned(execution, agent_silent=agent_silent, now=now)
        case ExecutionState.ACCEPTED | ExecutionState.RUNNING | ExecutionState.PAUSED:
            return _overdue(_run_deadline(execution), agent_silent=agent_silent, now=now)
        case (
            ExecutionState.SUCCEEDED
            | ExecutionState.FAILED
            | ExecutionState.CANCELLED
            | ExecutionState.TIMED_OUT
            | ExecutionState.EXPIRED
            | ExecutionState.REJECTED
            | ExecutionState.LOST
        ):
            return Judgement(Verdict.WAIT)
        case _:
            assert_never(state)


def take_on_by(execution: Execution) -> datetime:
    """Until when the agent must have an assigned execution: its expiry, or sooner where a time to accept it is set."""
    if execution.accept_within_s is None:
        return execution.expires_at
    return min(execution.expires_at, execution.updated_at + timedelta(seconds=execution.accept_within_s))


def _assigned(execution: Execution, *, agent_silent: bool, now: datetime) -> Judgement:
    limit = take_on_by(execution)
    if now < limit:
        return Judgement(Verdict.WAIT, check_at=limit)
    first_time = execution.check_at is None or execution.check_at <= limit
    if first_time:
        return Judgement(Verdict.WITHDRAW, check_at=limit + START_GRACE)
    return _overdue(limit + START_GRACE, agent_silent=agent_silent, now=now)


def _overdue(deadline: datetime, *, agent_silent: bool, now: datetime) -> Judgement:
    if now < deadline:
        return Judgement(Verdict.WAIT, check_at=deadline)
    if agent_silent:
        return Judgement(Verdict.LOSE, "AGENT_SILENT: the agent has not been heard, past every deadline.")
    if now >= deadline + HEARD_MARGIN:
        return Judgement(
            Verdict.LOSE, "NEVER_REPORTED: the agent is heard and has not reported it, long past every deadline."
        )
    return Judgement(Verdict.WAIT, check_at=now + RECHECK)


def _run_deadline(execution: Execution) -> datetime:
    if execution.counts_from is not None:
        held = LONGEST_HOLD if execution.state is ExecutionState.PAUSED else timedelta()
        begin = execution.counts_from + held
    elif execution.started_at is not None:
        begin = execution.started_at
    else:
        # Accepted and not started: others may run before it, until its time to start has passed.
        begin = max(execution.expires_at, execution.accepted_at or execution.updated_at)
    return begin + timedelta(seconds=execution.bound_s) + RUN_MARGIN
