"""What the controller needs to know of a document, as the shared validator sees it. No rules of its own."""

from __future__ import annotations

from dataclasses import dataclass

from droidfleet_shared.protocol.bounds import task_bound
from droidfleet_shared.protocol.issues import Issue, Validation
from droidfleet_shared.protocol.task import Task, TaskTemplate
from droidfleet_shared.protocol.validate import validate_document, validate_template

LONGEST_RUN_S = 10 * 365 * 86_400
"""The bound of a task of nested loops may lie beyond every calendar; deadlines are dates, and nobody waits longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A valid document. ``agent``: the name that it bears, None for a template; ``bound_s``: the longest it may run;
    ``revision_given``: the author wrote a revision."""

    body: str
    task_id: str
    revision: int
    revision_given: bool
    agent: str | None
    step_count: int
    bound_s: float
    warnings: tuple[Issue, ...]


def check_template(body: str) -> Checked:
    """Checks a document for the library.

    Raises:
        InvalidInputError: ``INVALID_TASK`` with all issues.
    """
    return _checked(body, validate_template(body))


def check_runnable(body: str) -> Checked:
    """Checks a document that may bear an agent's name.

    Raises:
        InvalidInputError: ``INVALID_TASK`` with all issues.
    """
    return _checked(body, validate_document(body))


def _checked(body: str, validation: Validation[TaskTemplate]) -> Checked:
    task = validation.require()
    return Checked(
        body=body,
        task_id=task.task_id,
        revision=task.revision,
        revision_given="revision" in task.model_fields_set,
        agent=task.assigned_agent_name if isinstance(task, Task) else None,
        step_count=len(task.steps),
        bound_s=_bound_s(task),
        warnings=validation.warnings,
    )


def _bound_s(task: TaskTemplate) -> float:
    """The longest that the task may run, `LONGEST_RUN_S` at most."""
    return min(task_bound(task).total.time_ms, LONGEST_RUN_S * 1_000) / 1_000
