"""The task of `droidfleet-agent exec`: a file, or standard input, with the values that the command line gives it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from droidfleet_shared.errors import DroidfleetError, InvalidInputError
from droidfleet_shared.input_values import collect_values, declared_types
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Validation
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES, MAX_SEED, Task, TaskTemplate
from droidfleet_shared.protocol.validate import validate_document, validate_task
from droidfleet_shared.secrets import concealed

TaskT = TypeVar("TaskT", bound=TaskTemplate)

EXECUTION_ID = "exec"
"""Stands in the result where a fleet's execution would; nothing refers to it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says about values (`droidfleet_shared.input_values`)."""

    pairs: Sequence[str] = ()
    file: str | None = None
    secrets: Sequence[str] = ()
    seed: int | None = None


def add_task_options(parser: argparse.ArgumentParser) -> None:
    """The task and its values."""
    parser.add_argument("task", metavar="TASK.json", help="the task document; - reads standard input")
    parser.add_argument(
        "--input",
        dest="inputs",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value for an input of the task, read as the task declares it; repeatable",
    )
    parser.add_argument(
        "--inputs-file", metavar="FILE", help="a JSON or YAML file with values by name; --input goes over it"
    )
    parser.add_argument(
        "--secret",
        dest="secrets",
        action="append",
        default=[],
        metavar="NAME",
        help="a secret input: its value comes from DROIDFLEET_SECRET_NAME, else it is asked for without echo; "
        "repeatable",
    )
    parser.add_argument(
        "--seed", type=_seed, metavar="N", help="of random choices, so that a run can be repeated; the result names it"
    )


def load_task(path: str, *, name: str | None = None, given: Given = Given()) -> Task:  # frozen
    """Reads and validates a task or a template, which is then assigned to ``name``; ``-`` is standard input.

    Raises:
        InvalidInputError: it cannot be read (``FILE_UNREADABLE``) or is not valid with these values (``INVALID_TASK``,
            with all issues, none of which shows a secret); and what `collect_values` raises.
    """
    outcome = validate_document(_read(path))
    document = outcome.document
    if not isinstance(document, dict) or any(issue.code is ValidationCode.BAD_JSON for issue in outcome.errors):
        raise _invalid(outcome)
    assigned = {"assignedAgentName": name or EXECUTION_ID} | document | _members(document, given)
    final = validate_task(json.dumps(assigned, ensure_ascii=False, separators=(",", ":")))
    if final.task is None:
        raise _invalid(final)
    return final.task


def _members(document: dict[str, Json], given: Given) -> dict[str, Json]:
    """What the command line puts into the document."""
    values = collect_values(declared_types(document), pairs=given.pairs, file=given.file, secrets=given.secrets)
    members: dict[str, Json] = {}
    if values:
        own = document.get("inputValues")
        members["inputValues"] = {**(own if isinstance(own, dict) else {}), **values}
    if given.seed is not None:
        members["randomSeed"] = given.seed
    return members


def _invalid(outcome: Validation[TaskT]) -> DroidfleetError:
    try:
        replace(outcome, errors=concealed(outcome.errors, outcome.document)).require()
    except DroidfleetError as error:
        return error
    raise AssertionError("it has errors")


def _read(path: str) -> bytes:
    # One byte more than is allowed is enough for the validator to say TOO_LARGE, however long the file is.
    limit = MAX_DOCUMENT_BYTES + 1
    try:
        if path == "-":
            return sys.stdin.buffer.read(limit)
        with Path(path).open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise InvalidInputError(
            "FILE_UNREADABLE",
            f"the task file {path!r} cannot be read: {error.strerror or error}.",
            hint="Name an existing file, or - to read the task from standard input.",
        ) from error


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEED)) and int(text) <= MAX_SEED):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {MAX_SEED}")
    return int(text)
