"""From what stands on the command line to a rollout document: a file or a task, options over it, values as declared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from droidfleet_controller.cli.csv_inputs import MAX_ISSUES, CsvIssue, read_inputs
from droidfleet_controller.cli.rollout_flags import document_of
from droidfleet_controller.cli.spec_files import TASK_FIELDS, names_spec, read_spec
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.input_values import collect_values, declared_types, typed
from droidfleet_shared.protocol.jsontext import parse
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droidfleet_controller.cli.client import ControllerClient
    from droidfleet_controller.cli.rollout_flags import RolloutFlags
    from droidfleet_shared.protocol.pointers import Json


def rollout_of(client: ControllerClient, source: str, flags: RolloutFlags) -> dict[str, Json]:
    """The document of ``source`` (a file, or a task's id) with the options over it.

    Raises:
        InvalidInputError: the file cannot be read, is a task, or the options do not fit each other.
        NotFoundError: ``TASK_NOT_FOUND``, where values need the task.
    """
    if not names_spec(source):
        return with_options(client, {"task": source}, flags)
    document = read_spec(source)
    if document.keys() & TASK_FIELDS:
        raise InvalidInputError(
            "NOT_A_ROLLOUT",
            f"{source!r} is a task, not a rollout.",
            hint=f"Keep it with `droidfleet task save {source}`, and name it by its id: rollout start TASK_ID.",
        )
    return with_options(client, document, flags)


def with_options(client: ControllerClient, document: Mapping[str, Json], flags: RolloutFlags) -> dict[str, Json]:
    """The document with the options and the values over it. Raises as `rollout_of`."""
    made = document_of(document, flags)
    common = flags.inputs or flags.inputs_file or flags.secret
    if not common and not flags.inputs_csv:
        return made
    declared = _declared(client, made)
    if common:
        values = collect_values(declared, pairs=flags.inputs or (), file=flags.inputs_file, secrets=flags.secret or ())
        made["inputs"] = _over(made.get("inputs"), values)
    if flags.inputs_csv:
        given = made.get("deviceInputs")
        devices: dict[str, Json] = dict(given) if isinstance(given, dict) else {}
        for device, row in _typed(read_inputs(Path(flags.inputs_csv)), declared, source=flags.inputs_csv).items():
            devices[device] = _over(devices.get(device), row)
        made["deviceInputs"] = devices
    return made


def _typed(
    rows: Mapping[str, Mapping[str, str]], declared: Mapping[str, Json], *, source: str
) -> dict[str, dict[str, Json]]:
    """The rows of a CSV file as the task declares its inputs.

    Raises:
        InvalidInputError: ``BAD_CSV`` with every value that is of another type.
    """
    issues: list[CsvIssue] = []
    found: dict[str, dict[str, Json]] = {}
    for device, row in rows.items():
        found[device] = {}
        for name, text in row.items():
            try:
                found[device][name] = typed(name, text, declared.get(name))
            except InvalidInputError as error:
                issues.append(CsvIssue(f"row of {device}", error.code, error.message))
    if issues:
        count = len(issues)
        raise InvalidInputError(
            "BAD_CSV",
            f"{source!r} cannot be used: {count} value{'s are' if count != 1 else ' is'} of another type.",
            issues=issues[:MAX_ISSUES],
        )
    return found


def _declared(client: ControllerClient, document: Mapping[str, Json]) -> Mapping[str, Json]:
    """The types of the task's inputs, by name."""
    task, revision = document.get("task"), document.get("revision", 0)
    if not isinstance(task, str) or not isinstance(revision, int):
        # The controller says better what is wrong with it.
        return {}
    stored = client.task(task, revision=revision)
    return declared_types(parse(stored.document_json, max_bytes=MAX_DOCUMENT_BYTES).value)


def _over(before: Json, values: Mapping[str, Json]) -> dict[str, Json]:
    return {**before, **values} if isinstance(before, dict) else dict(values)
