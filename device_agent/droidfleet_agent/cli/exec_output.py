"""What `droidfleet-agent exec` prints: a line for each step as it ends, then the result as text, JSON or YAML.

Plain text: the agent's base install has no table library. Texts from a screen are printed as data, escaped.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import sys
from pathlib import Path
from typing import Literal, TextIO

import yaml

from droidfleet_agent.cli.failures import error_text, printable
from droidfleet_agent.engine.control import RunObserver
from droidfleet_agent.engine.trail import Ended
from droidfleet_shared.artifacts import MAX_RUN_ARTIFACT_BYTES, MAX_RUN_ARTIFACTS, file_name, save
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.protocol.result import ArtifactModel, StepResult, TaskResult
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.tree import walk

Output = Literal["text", "json", "yaml"]

CERTAIN = 100
"""Percent."""


class Progress(RunObserver):
    """Prints a line for each step as it ends: the rows of the result's table. What steps keep goes to ``artifacts``."""

    def __init__(self, task: Task, *, serial: str, out: TextIO, artifacts: Path | None = None) -> None:
        self._out = out
        self._folder = artifacts
        self._saved = 0
        self._saved_bytes = 0
        self._left_out = 0
        self._open: list[str] = []
        self._done = 0
        steps = [step for _, step in walk(task.steps)]
        # How often the steps of a loop run is not known before.
        self._count = None if any(step.action == "REPEAT" for step in steps) else len(steps)
        self._random = any(step.probability < CERTAIN or step.action == "DELAY" for step in steps)
        self._id_width = max(2, *(len(printable(step.id)) for step in steps))
        self._action_width = max(len("action"), *(len(step.action) for step in steps))
        tell(f"{printable(task.task_id)} (revision {task.revision}) on {printable(serial)}", out=out)
        self._row("step", "id", "action", "code", "time")

    async def step_started(self, step_id: str, path: str) -> None:
        self._open.append(step_id)

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        pass

    async def artifact(self, artifact: ArtifactModel, data: bytes) -> None:
        room = self._saved < MAX_RUN_ARTIFACTS and self._saved_bytes + len(data) <= MAX_RUN_ARTIFACT_BYTES
        if self._folder is None or not room:
            self._left_out += 1
            return
        name = file_name(self._saved + 1, step_id=self._open[-1], name=artifact.name, media_type=artifact.media_type)
        try:
            file = await asyncio.to_thread(save, self._folder, name, data)
        except DroidfleetError as error:
            # What a task does to a phone does not depend on pictures of it.
            self._left_out += 1
            tell(f"          {error_text(error)}", out=sys.stderr)
            return
        self._saved += 1
        self._saved_bytes += len(data)
        tell(f"          saved {printable(str(file))}", out=self._out)

    def end(self, result: TaskResult) -> None:
        """Says what was not saved, and how a run that chose something at random can be had again."""
        if self._random and result.random_seed is not None:
            tell(f"--seed {result.random_seed} chooses the same again", out=self._out)
        if self._left_out:
            how = "--artifacts FOLDER saves them" if self._folder is None else "see above, and the bounds of a run"
            tell(f"{self._left_out} artifact(s) not saved: {how}", out=sys.stderr)

    async def step_finished(self, ended: Ended) -> None:
        result = ended.result
        self._open.pop()
        self._done += 1
        # Why a step failed stands below the table, once.
        words = " ".join(part for part in (result.detail, result.message if result.successful else "") if part)
        self._row(
            f"{self._done}/{self._count}" if self._count is not None else str(self._done),
            printable(result.id) + (f" ({result.iteration + 1})" if result.iteration else ""),
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
        passed_over = _passed_over(result)
        for step in passed_over:
            tell(printable(f"went on after {step.id}: {step.code}: {step.message}"), out=sys.stdout)
        took = f"{result.duration_ms / 1000:.2f} s"
        success = _success(result, took, failed=len(passed_over))
        tell(success if result.successful else _failure(result, took), out=sys.stdout)


def _passed_over(result: TaskResult) -> list[StepResult]:
    """The failures that `onFailure` let the task go on after: the message of the end says nothing of them."""
    failed = [step for step in result.steps if not step.successful]
    ended = next((step.path for step in reversed(failed) if step.id == result.failed_step_id), "")
    return [step for step in failed if not f"{ended}/".startswith(f"{step.path}/")]


def _success(result: TaskResult, took: str, *, failed: int) -> str:
    count = len(result.steps) + result.steps_omitted
    steps = f"{count} steps" if count > 1 else "1 step"
    return f"OK: {steps} in {took}, {failed} failed" if failed else f"OK: all {steps} in {took}"


def _failure(result: TaskResult, took: str) -> str:
    return printable(f"{result.code}: {result.message}") + f" ({took})"
