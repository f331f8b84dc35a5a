"""What people read: messages as Rich tables. Every text from elsewhere passes `text.cell`. Never prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from droidfleet_controller.cli import documents
from droidfleet_controller.cli.text import age, cell, cut, duration, escape, moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from droidfleet.v1 import execution_pb2, fleet_pb2, task_pb2

MAX_OUTPUT_LENGTH = 60
"""Characters of one output in a table; programs and `execution show` get all."""

FREE_TEXT = "What happened"
FREE_TEXT_WIDTH = 24
"""Columns of a terminal that are enough for free text; the rest goes on in the next line."""

COLUMN_GAP = 3
EVENT_DEVICE_WIDTH = 12

EXECUTIONS_SPARE = ("Created", "Steps")
"""What a list of executions can do without on a narrow screen."""

STYLES = {
    "ONLINE": "green",
    "BUSY": "cyan",
    "PHONE_OFFLINE": "yellow",
    "OFFLINE": "red",
    "RUNNING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "red",
    "REJECTED": "red",
    "LOST": "red",
    "EXPIRED": "yellow",
    "CANCELLED": "yellow",
}


def table(*columns: str) -> Table:
    """An empty table in this program's style."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        # Folded, not cut: a name that is copied from a table must be whole.
        made.add_column(column, overflow="fold")
    return made


def without_spare(made: Table, spare: Sequence[str], *, width: int) -> Table:
    """The table without as many of the ``spare`` columns, the first first, as make it fit into ``width``."""
    for name in spare:
        if _natural_width(made) <= width:
            break
        made = _of([column for column in made.columns if column.header != name])
    return made


def _of(columns: Sequence[Column]) -> Table:
    """A table of these columns; a column that is taken out of a table leaves the others with wrong places."""
    made = table(*(str(column.header) for column in columns))
    for new, column in zip(made.columns, columns, strict=True):
        new.no_wrap = column.no_wrap
    for row in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*row)
    return made


def _natural_width(made: Table) -> int:
    """In columns of a terminal; of free text only what has to be on one line."""
    widths = [max(cell_len(str(text)) for text in (column.header, *column.cells)) for column in made.columns]
    if made.columns[-1].header == FREE_TEXT:
        widths[-1] = min(widths[-1], FREE_TEXT_WIDTH)
    return sum(widths) + COLUMN_GAP * (len(widths) - 1)


def state(word: str) -> Text:
    """A state in its colour."""
    return cell(word, STYLES.get(word, ""))


def tasks(items: Iterable[task_pb2.TaskTemplate]) -> Table:
    """One row a task."""
    made = table("Task", "Revision", "Steps", "Saved")
    for item in items:
        saved = moment(documents.instant(item.created_at))
        made.add_row(cell(item.task_id), cell(str(item.revision)), cell(str(item.step_count)), cell(saved))
    return made


def executions(items: Iterable[execution_pb2.Execution], *, now: datetime) -> Table:
    """One row an execution."""
    made = table("Execution", "Device", "Task", "State", "Steps", "Created", FREE_TEXT)
    made.columns[0].no_wrap = made.columns[5].no_wrap = True
    for item in items:
        made.add_row(
            cell(item.execution_id),
            cell(item.device),
            cell(f"{item.task_id} r{item.revision}"),
            state(documents.state_of(item)),
            cell(progress(item)),
            cell(age(documents.instant(item.created_at), now)),
            cell(_briefly(item)),
        )
    return made


def results(items: Sequence[execution_pb2.Execution]) -> Table:
    """What came of a run: one row a device, with outputs, or why not and the candidates among which none was chosen."""
    made = table("Device", "Result", "Steps", "Time", FREE_TEXT)
    for item in items:
        happened = Text(_happened(item))
        for candidate in candidates_of(item):
            happened.append("\n  ").append_text(cell(candidate, "dim"))
        made.add_row(
            cell(item.device),
            state(documents.state_of(item)),
            cell(progress(item)),
            cell(duration(documents.milliseconds(item.result.duration) / 1000) if item.HasField("result") else ""),
            happened,
        )
    return made


def progress(item: execution_pb2.Execution) -> str:
    """How far it is: ``3/9``; in a loop, whose steps count again in each round, ``57 (round 12)``."""
    if item.iteration:
        return f"{item.steps_done} (round {item.iteration + 1})"
    if item.steps_done > item.step_count:
        return str(item.steps_done)
    return f"{item.steps_done}/{item.step_count}"


def task_facts(item: task_pb2.TaskTemplate) -> Table:
    """What is known of a stored task beside its text."""
    return facts(
        ("Task", cell(item.task_id)),
        ("Revision", cell(str(item.revision))),
        ("Steps", cell(str(item.step_count))),
        ("SHA-256", cell(item.sha256)),
        ("Saved", cell(moment(documents.instant(item.created_at)))),
    )


def facts(*pairs: tuple[str, Text]) -> Table:
    """Names and values below each other; empty values are left out."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value.plain:
            made.add_row(cell(name), value)
    return made


def event_line(item: fleet_pb2.FleetEvent) -> str:
    """One event as a line, safe to print."""
    at = moment(documents.instant(item.occurred_at))
    # The device has a column of its own.
    summary = item.summary.removeprefix(f"{item.device}: ") if item.device else item.summary
    padding = " " * (EVENT_DEVICE_WIDTH - cell_len(item.device))
    return escape(f"{item.event_id:>6}  {at}  {item.device}{padding}  {item.kind:<18}  {summary}")


def candidates_of(item: execution_pb2.Execution) -> list[str]:
    """The nodes among which the failing step would not guess: ``Button "Add to cart" [40,900][520,1000]``."""
    return candidates_of_result(item.result)


def candidates_of_result(result: execution_pb2.TaskResult) -> list[str]:
    """The same of a result."""
    steps = [step for step in result.steps if not step.successful]
    return [_target(candidate) for candidate in steps[-1].candidates] if steps else []


def _target(target: execution_pb2.Target) -> str:
    bounds = target.bounds
    label = json.dumps(cut(target.text or target.description, MAX_OUTPUT_LENGTH), ensure_ascii=False)
    kind = target.class_name.rpartition(".")[2] or "node"
    id_part = f" {target.resource_id.rpartition('/')[2]}" if target.resource_id else ""
    return f"{kind} {label}{id_part} [{bounds.left},{bounds.top}][{bounds.right},{bounds.bottom}]"


def _happened(item: execution_pb2.Execution) -> str:
    """One line for people: outputs of a success, code, step and message of a failure, else the reason."""
    result = item.result
    if not item.HasField("result"):
        return escape(item.reason or item.current_step_id)
    if result.successful:
        outputs = documents.outputs_of(result)
        return ", ".join(f"{name} = {cut(value_text(value), MAX_OUTPUT_LENGTH)}" for name, value in outputs.items())
    failed = next((step for step in result.steps if not step.successful and step.id == result.failed_step_id), None)
    if failed is None:
        return escape(f"{result.code}: {result.message}")
    return escape(f"{result.code} at {failed.id}: {failed.message}")


def _briefly(item: execution_pb2.Execution) -> str:
    """The same in a few words: what went wrong and where, without the sentence that explains it."""
    result = item.result
    if not item.HasField("result") or result.successful:
        return _happened(item)
    return escape(f"{result.code} at {result.failed_step_id}" if result.failed_step_id else result.code)


def value_text(value: object) -> str:
    """A value of an output or an input in one line, safe to print: a text as it is, anything else as JSON."""
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
