"""From an execution that ended to what the planner is told of it. Pure."""

from __future__ import annotations

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.planner.plan import TryEnded
from droidfleet_controller.rollouts.rollout import Signature

REFUSED = frozenset({ExecutionState.REJECTED, ExecutionState.EXPIRED})
"""The agent said, or the controller knows, that it was never begun."""


def try_ended(execution: Execution) -> TryEnded:
    """What the planner is told of an execution that has ended."""
    return TryEnded(
        device=execution.device,
        execution_id=execution.execution_id,
        state=execution.state,
        signature=_signature(execution),
        may_have_acted=_may_have_acted(execution),
        reason=execution.reason,
        at=execution.updated_at,
    )


def _signature(execution: Execution) -> Signature:
    result = execution.result
    if result is None:
        return Signature(execution.reason.partition(":")[0] or execution.state.value)
    return Signature(result.code.value, result.failed_step_id or "", result.failed_screen)


def _may_have_acted(execution: Execution) -> bool:
    if execution.result is not None:
        # Agents of before this field did not say; they may have.
        return execution.result.acted is not False
    cancelled_here = execution.state is ExecutionState.CANCELLED and execution.attempt == 1
    return not (execution.state in REFUSED or (cancelled_here and execution.accepted_at is None))
