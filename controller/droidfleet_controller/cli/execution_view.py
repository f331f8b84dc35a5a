"""All about one execution, for people: facts, steps as the tree that they are, what was read and kept. Never prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from droidfleet_controller.cli import documents
from droidfleet_controller.cli.tables import candidates_of, facts, progress, state, table, value_text
from droidfleet_controller.cli.text import cell, duration, moment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.table import Table

    from droidfleet.v1 import execution_pb2

INDENT = "  "
USUAL_PRIORITY = 5


def execution(item: execution_pb2.Execution) -> RenderableType:
    """Facts, steps, outputs, candidates, artifacts."""
    result = item.result
    top = facts(
        ("Execution", cell(item.execution_id)),
        ("Run", cell(item.run_id)),
        ("Device", cell(item.device)),
        ("Task", cell(f"{item.task_id} r{item.revision}")),
        ("State", state(documents.state_of(item))),
        ("Attempt", cell(str(item.attempt))),
        ("Steps", cell(progress(item))),
        ("In progress", cell(item.current_step_id)),
        ("Priority", cell("" if item.priority == USUAL_PRIORITY else str(item.priority))),
        ("Cancel asked", cell("yes" if item.cancel_requested else "")),
        ("Pause asked", cell("yes" if item.pause_requested else "")),
        ("Stopped", cell(moment(documents.instant(item.stopped_at)) if item.HasField("stopped_at") else "")),
        # The result says the same, and more.
        ("Reason", cell("" if item.HasField("result") else item.reason)),
        ("Created", cell(moment(documents.instant(item.created_at)))),
        ("Changed", cell(moment(documents.instant(item.updated_at)))),
        ("Result", cell(result.code)),
        ("Detail", cell(result.detail)),
        ("Message", cell(result.message)),
        ("Failed step", cell(result.failed_step_id)),
        ("On screen", cell(result.failed_screen)),
        ("Took", cell(duration(documents.milliseconds(result.duration) / 1000) if item.HasField("result") else "")),
        ("Agent restarts", cell(str(result.agent_restarts or ""))),
        ("Seed", cell(str(result.random_seed) if result.HasField("random_seed") else "")),
    )
    parts: list[RenderableType] = [top]
    values = documents.values_of(item)
    if values:
        parts += [Text(), Text("Inputs", style="bold"), _named(values.items())]
    if result.steps:
        parts += [Text(), _steps(result.steps)]
        if result.steps_omitted:
            parts.append(
                cell(f"{result.steps_omitted} more results, between the first and the last, are left out.", "dim")
            )
    candidates = candidates_of(item)
    if candidates:
        parts += [Text(), Text("Candidates", style="bold"), *(cell(f"  {line}") for line in candidates)]
    outputs = documents.outputs_of(result)
    if outputs:
        parts += [Text(), Text("Outputs", style="bold"), _named(outputs.items())]
    if item.artifacts:
        parts += [Text(), artifacts(item.artifacts)]
    return Group(*parts)


def artifacts(items: Iterable[execution_pb2.StoredArtifact]) -> Table:
    """One row an artifact."""
    made = table("Artifact", "Step", "Type", "Size", "SHA-256")
    for item in items:
        size = f"{item.artifact.size_bytes / 1000:.0f} kB" if item.available else "made room"
        made.add_row(
            cell(item.artifact.name),
            cell(item.step_id),
            cell(item.artifact.media_type),
            cell(size, "" if item.available else "yellow"),
            cell(item.artifact.sha256),
        )
    return made


def _steps(steps: Iterable[execution_pb2.StepResult]) -> Table:
    """One row a result, in the order in which the steps began: a container, and indented below it what it ran."""
    ordered = sorted(steps, key=_began)
    loops = tuple(f"{step.path}/" for step in ordered if step.action == "REPEAT")
    looped = any(step.iteration for step in ordered)
    made = table("Step", *(["Round"] if looped else []), "Action", "Code", "Detail", "Time", "Looks", "Acts", "Message")
    for step in ordered:
        made.add_row(
            cell(INDENT * depth(step.path) + step.id),
            *([cell(str(step.iteration + 1) if step.path.startswith(loops) else "")] if looped else []),
            cell(step.action),
            cell(step.code, "green" if step.successful else "red"),
            cell(step.detail),
            cell(duration(documents.milliseconds(step.duration) / 1000)),
            cell(str(step.looks)),
            cell(str(step.dispatched)),
            cell(step.message),
        )
    return made


def depth(path: str) -> int:
    """How many containers a step is in: ``/steps/2/then/0`` is in one."""
    return max(0, path.count("/") // 2 - 1)


def _began(step: execution_pb2.StepResult) -> tuple[int, int, int]:
    """Results come as steps end; a container began before its steps, at the earliest in the same instant."""
    return step.started_at.seconds, step.started_at.nanos, depth(step.path)


def _named(values: Iterable[tuple[str, object]]) -> Table:
    return facts(*((f"  {name}", cell(value_text(value))) for name, value in values))
