"""What `droidfleet-agent exec` prints: a line for each step as it ends, then the result as text, JSON or YAML.

Plain text: the agent's base install has no table library. Texts from a screen are printed as data, escaped.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from typing import Literal, TextIO

import yaml

from droidfleet_agent.cli.failures import printable
from droidfleet_agent.engine.control import RunObserver
from droidfleet_shared.protocol.result import StepResult, TaskResult
from droidfleet_shared.protocol.task import Task

Output = Literal["text", "json", "yaml"]


class Progress(RunObserver):
    """Prints a line for each step as it ends: the rows of the result's table."""

    def __init__(self, task: Task, *, serial: str, out: TextIO) -> None:
        self._out = out
        self._count = len(task.steps)
        self._done = 0
        self._id_width = max(2, *(len(printable(step.id)) for step in task.steps))
        self._action_width = max(len("action"), *(len(step.action) for step in task.steps))
        tell(f"{printable(task.task_id)} (revision {task.revision}) on {printable(serial)}", out=out)
        self._row("step", "id", "action", "code", "time")

    async def step_started(self, step_id: str, path: str) -> None:
        pass

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        pass

    async def step_finished(self, result: StepResult) -> None:
        self._done += 1
        # Why a step failed stands in the summary, once.
        words = " ".join(part for part in (result.detail, result.message if result.successful else "") if part)
        self._row(
            f"{self._done}/{self._count}",
            printable(result.id),
            result.action,
            result.code,
            f"{result.duration_ms / 1000:.2f} s",
            words=printable(words),
        )
        for candidate in result.candidates:
            bounds = candidate.bounds
            label = candidate.text or candidate.description or candidate.resource_id or candidate.class_name
            where = f"[{bounds.left},{bounds.top}][{bounds.right},{bounds.bottom}]"
            tell(f"          candidate {json.dumps(printable(label), ensure_ascii=False)} at {where}", out=self._out)

    def _row(self, *cells: str, words: str = "") -> None:
        step, step_id, action, code, time = cells
        row = f"{step:>7}  {step_id:<{self._id_width}}  {action:<{self._action_width}}  {code:<18} {time:>8}  {words}"
        tell(row.rstrip(), out=self._out)


def tell(text: str, *, out: TextIO) -> None:
    """Prints, come what may: a task is not left half done because of `| head` or of a terminal without its letters."""
    try:
        print(text, file=out, flush=True)
    except UnicodeEncodeError:
        print(text.encode("ascii", "backslashreplace").decode(), file=out, flush=True)
    except BrokenPipeError:
        # What is still in the buffer would fail once more when the program ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def print_result(result: TaskResult, output: Output) -> None:
    """Prints the result on stdout: a document for programs, a summary for people."""
    document = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    if output == "json":
        tell(json.dumps(document, indent=2), out=sys.stdout)
    elif output == "yaml":
        readable = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
        tell(yaml.safe_dump(document, allow_unicode=readable, sort_keys=False).rstrip(), out=sys.stdout)
    else:
        for field, value in result.outputs.items():
            tell(f"output {field} = {printable(json.dumps(value, ensure_ascii=False))}", out=sys.stdout)
        took = f"{result.duration_ms / 1000:.2f} s"
        steps = f"{len(result.steps)} steps" if len(result.steps) > 1 else "1 step"
        tell(f"OK: all {steps} in {took}" if result.successful else _failure(result, took), out=sys.stdout)


def _failure(result: TaskResult, took: str) -> str:
    return printable(f"{result.code}: {result.message}") + f" ({took})"
