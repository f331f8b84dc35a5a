"""What the controller needs to know of a document, as the shared validator sees it. No rules of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from droidfleet_controller.tasks.values import RunValues, filled, own_values, written
from droidfleet_shared.protocol.bounds import task_bound
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.issues import Issue, Validation
from droidfleet_shared.protocol.task import Task, TaskTemplate
from droidfleet_shared.protocol.tree import walk
from droidfleet_shared.protocol.validate import validate_document, validate_task, validate_template
from droidfleet_shared.secrets import concealed

LONGEST_RUN_S = 10 * 365 * 86_400
"""The bound of a task of nested loops may lie beyond every calendar; deadlines are dates, and nobody waits longer."""

SOMEBODY = "a"
"""The name for which a template's values are checked: whether they are there and fit is the same for every agent."""

TaskT = TypeVar("TaskT", bound=TaskTemplate)


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


def check_template(body: str, *, words: EffectWords | None = None) -> Checked:
    """Checks a document for the library. ``words``: those that are warned of, by default the package's.

    Raises:
        InvalidInputError: ``INVALID_TASK`` with all issues.
    """
    return _checked(body, validate_template(body, words=words))


def check_run(body: str, given: RunValues, *, stored: bool) -> tuple[Checked, RunValues]:
    """Checks what an agent would be sent: a document that may bear its name, with the values of a run in it.

    Returns what is to be kept: the document, and the values with secrets among themselves. Secrets that stand in a
    document that is not ``stored`` in the library are taken out of its text, so that they are forgotten with the run.

    Raises:
        InvalidInputError: ``INVALID_TASK`` with all issues; none of them shows a secret.
    """
    try:
        text = filled(body, given)
    except (ValueError, RecursionError):
        text = body
    validation: Validation[TaskTemplate] = _concealed(validate_document(text))
    task = validation.require()
    if not isinstance(task, Task) and (task.inputs or given):
        _concealed(validate_task(written(text, {"assignedAgentName": SOMEBODY}))).require()
    secret = frozenset(name for name, declared in task.inputs.items() if declared.type == "secret")
    values = given.split(secret)
    if secret and not stored:
        own = own_values(body)
        if own.keys() & secret:
            values = RunValues(values=own | dict(given.values), random_seed=given.random_seed).split(secret)
            body = written(body, {"inputValues": {name: each for name, each in own.items() if name not in secret}})
    return _checked(body, validation), values


def _concealed(validation: Validation[TaskT]) -> Validation[TaskT]:
    return replace(validation, errors=concealed(validation.errors, validation.document))


def _checked(body: str, validation: Validation[TaskTemplate]) -> Checked:
    task = validation.require()
    return Checked(
        body=body,
        task_id=task.task_id,
        revision=task.revision,
        revision_given="revision" in task.model_fields_set,
        agent=task.assigned_agent_name if isinstance(task, Task) else None,
        step_count=sum(1 for _ in walk(task.steps)),
        bound_s=_bound_s(task),
        warnings=validation.warnings,
    )


def _bound_s(task: TaskTemplate) -> float:
    """The longest that the task may run, `LONGEST_RUN_S` at most."""
    return min(task_bound(task).total.time_ms, LONGEST_RUN_S * 1_000) / 1_000
