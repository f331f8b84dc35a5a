"""The record of one execution. Immutable; the only way to a new state is `moved`, which asks the table of moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from droidfleet_controller.dispatch import states
from droidfleet_controller.dispatch.states import TERMINAL, ExecutionState
from droidfleet_shared.protocol.result import TaskResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskText:
    """Which stored text an execution runs, and what dispatch writes into it: the agent's name unless the author did,
    the revision where the library gave it, the values of its run where it has any."""

    sha256: str
    add_name: bool
    add_revision: bool
    add_values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One run of one task on one device. Instants are the controller's clock, aware UTC.

    ``bound_s`` is the longest that the task may take; ``steps_done`` counts the steps of a loop again in each round;
    ``progress_sequence`` is the last step event that counts for ``current_step_id``; ``iteration`` is the highest of a
    step that ended; ``check_at`` is when a deadline may have passed, None exactly when it has ended; ``version`` grows
    with every change that a reader can see.
    """

    execution_id: str
    run_id: str
    device: str
    task_id: str
    revision: int
    text: TaskText
    step_count: int
    bound_s: float
    state: ExecutionState
    attempt: int = 1
    cancel_requested: bool = False
    reason: str = ""
    steps_done: int = 0
    current_step_id: str = ""
    progress_sequence: int = 0
    iteration: int = 0
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    accepted_at: datetime | None = None
    started_at: datetime | None = None
    check_at: datetime | None = None
    version: int = 1
    result: TaskResult | None = None

    @property
    def body_key(self) -> tuple[str, str]:
        """What identifies the text that is sent, before it is addressed: the stored one's digest, and the run whose
        values are written into it (empty: none)."""
        return self.text.sha256, self.run_id if self.text.add_values else ""

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.state in TERMINAL

    def moved(self, state: ExecutionState, *, now: datetime, reason: str = "") -> Execution:
        """This execution in another state.

        Raises:
            IllegalMoveError: the table of moves does not have it.
        """
        states.check(self.state, state)
        return replace(self, state=state, reason=reason, updated_at=now, version=self.version + 1)
