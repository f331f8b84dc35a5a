"""The report for spreadsheets: one row for each phone, with what it read as columns."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Iterable

from droidfleet_controller.rollouts.report import records
from droidfleet_controller.rollouts.report.material import Material, ReportMember
from droidfleet_controller.rollouts.rollout import DRY_RUN_WAVE

COLUMNS = (
    "device",
    "wave",
    "state",
    "outcome",
    "tries",
    "startedAt",
    "endedAt",
    "durationMs",
    "executionId",
    "reason",
)

OUTPUT = "output."
"""In front of the names of what was read, so that none can be taken for one of the columns above."""

MAX_OUTPUT_COLUMNS = 200
"""Spreadsheets take more; people do not."""

MARK = "\ufeff"
"""Without it spreadsheets take UTF-8 for the encoding of their country."""

_FORMULA = re.compile(r"\s*[=+\-@\t\r\n|%＝＋－＠]")  # noqa: RUF001  # also the wide forms, which some spreadsheets take
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


async def write(material: Material) -> AsyncIterator[str]:
    """The report in pieces. The names of all columns are needed first, so the phones are read twice."""
    names = await _output_names(material)
    yield MARK + _row((*COLUMNS, *(OUTPUT + name for name in names)))
    async for found in _counted(material):
        record = records.member_record(found)
        outputs = records.outputs(found)
        yield _row((*(record[name] for name in COLUMNS), *(outputs.get(name) for name in names)))


async def _counted(material: Material) -> AsyncIterator[ReportMember]:
    """The members; the dry run counts nowhere."""
    async for found in material.members():
        if found.view.member.wave != DRY_RUN_WAVE:
            yield found


async def _output_names(material: Material) -> list[str]:
    names: dict[str, None] = {}
    async for found in _counted(material):
        if len(names) < MAX_OUTPUT_COLUMNS:
            names.update(dict.fromkeys(records.outputs(found)))
    return list(names)[:MAX_OUTPUT_COLUMNS]


def _row(values: Iterable[object]) -> str:
    line = io.StringIO(newline="")
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: object) -> str:
    """The text of a cell. What a spreadsheet would take for a formula gets an apostrophe in front."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
