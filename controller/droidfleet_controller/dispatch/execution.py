"""The record of one execution. Immutable; the only way to a new state is `moved`, which asks the table of moves."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import datetime
from operator import attrgetter

from droidfleet_controller.dispatch import states
from droidfleet_controller.dispatch.states import BEGUN, TERMINAL, ExecutionState
from droidfleet_shared.protocol.result import TaskResult

MIN_PRIORITY, NORMAL_PRIORITY, MAX_PRIORITY = 0, 5, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskText:
    """Which stored text an execution runs, and what dispatch writes into it: the agent's name unless the author did,
    the revision where the library gave it, and the values that ``values_id`` names (`store.run_values`; empty: none).
    """

    sha256: str
    add_name: bool
    add_revision: bool
    values_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One run of one task on one device. Instants are the controller's clock, aware UTC.

    ``bound_s`` is the longest that the task may take; ``steps_done`` counts the steps of a loop again in each round;
    ``progress_sequence`` is the last step event that counts for ``current_step_id``; ``iteration`` is the highest of a
    step that ended; ``check_at`` is when a deadline may have passed, None exactly when it has ended; ``version`` grows
    with every change that a reader can see; ``run_id`` is the rollout's id for an execution of one; ``try_number``:
    which try of its member it is; ``priority`` 0 to 9, the higher one runs first; ``accept_within_s``: from its
    assignment until the agent must have it, None: only ``expires_at`` counts. An attempt is fenced by a higher
    ``attempt``; ``stopped_at``: since when its agent is known not to be at it any more.
    ``pause_requested``: somebody wants it held; ``counts_from``: when it was last held or went on from there, from
    which its bound is counted anew; None: it never was.
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
    priority: int = NORMAL_PRIORITY
    try_number: int = 1
    accept_within_s: float | None = None
    stopped_at: datetime | None = None
    pause_requested: bool = False
    counts_from: datetime | None = None

    @property
    def body_key(self) -> tuple[str, str]:
        """What identifies the text that is sent, before it is addressed: the digest of the stored one, and the values
        that are written into it (empty: none)."""
        return self.text.sha256, self.text.values_id

    @property
    def turn(self) -> tuple[bool, int]:
        """When its turn comes on its device, the smaller first: what has begun, then by priority. Of equals the older
        one is first."""
        return self.state not in BEGUN, -self.priority

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.state in TERMINAL

    def stopped(self, now: datetime) -> Execution:
        """This execution, whose fenced attempt is known to have ended on the device."""
        return self if self.stopped_at else replace(self, stopped_at=now, version=self.version + 1)

    def moved(self, state: ExecutionState, *, now: datetime, reason: str = "") -> Execution:
        """This execution in another state.

        Raises:
            IllegalMoveError: the table of moves does not have it.
        """
        states.check(self.state, state)
        return replace(self, state=state, reason=reason, updated_at=now, version=self.version + 1)


_FIELDS = tuple(field.name for field in fields(Execution))
_read_all = attrgetter(*_FIELDS)
_write_each = tuple(getattr(Execution, name).__set__ for name in _FIELDS)


def at_step(
    execution: Execution,
    *,
    steps_done: int,
    iteration: int,
    current_step_id: str,
    progress_sequence: int,
    now: datetime,
) -> Execution:
    """The execution with its progress, one version on. As `replace` would make it, in half the time: most of what
    agents report are steps."""
    copy = object.__new__(Execution)
    for write, value in zip(_write_each, _read_all(execution), strict=True):
        write(copy, value)
    for name, value in (
        ("steps_done", steps_done),
        ("iteration", iteration),
        ("current_step_id", current_step_id),
        ("progress_sequence", progress_sequence),
        ("updated_at", now),
        ("version", execution.version + 1),
    ):
        object.__setattr__(copy, name, value)
    return copy
