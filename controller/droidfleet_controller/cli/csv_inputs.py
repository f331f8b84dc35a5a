"""Reads values for single phones from a CSV file: a header with ``device`` and names of inputs, one row a phone.

Knows nothing of the task: whether it has these inputs, and what kind each one is, others say. Everything that is wrong
with the file is listed at once, with its lines.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.names import MAX_NAME_LENGTH, NAME_PATTERN, OUTPUT_PATTERN
from droidfleet_shared.protocol.suggestions import folded
from droidfleet_shared.protocol.wording import shown

DEVICE = "device"
"""The column that names the phone."""

MAX_CSV_BYTES = 8 * 1024 * 1024
"""Half of what the controller takes as one request; as JSON the values grow a little."""

MAX_ROWS = 10_000
"""The most members that a rollout can have."""

MAX_ISSUES = 100
"""Lines of errors that somebody still reads; the message says how many there are."""

_SEPARATORS = ",;\t"
"""Spreadsheets write a semicolon where the comma is the decimal point, and a tab as `text`."""

_DEVICE_WORDS = {"device", "devices", "devicename", "deviceid", "phone", "agent", "agentname", "name"}
"""Headers, folded, that probably mean the phone."""

_NAME = re.compile(NAME_PATTERN)
_INPUT = re.compile(OUTPUT_PATTERN)


@dataclass(frozen=True, slots=True)
class CsvIssue:
    """One thing that is wrong; ``path`` is the line, counted from 1 as editors count."""

    path: str
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    cells: Sequence[str]


def read_inputs(path: Path) -> dict[str, dict[str, str]]:
    """Values by phone and input, in the order of the file. An empty cell gives no value: the common one holds.

    Raises:
        InvalidInputError: ``FILE_UNREADABLE``, ``TOO_LARGE``, ``NOT_UTF8``, or ``BAD_CSV`` with every issue.
    """
    return parse_inputs(_text(path), source=str(path))


def parse_inputs(text: str, *, source: str) -> dict[str, dict[str, str]]:
    """As `read_inputs`, from the file's text; ``source`` names it in errors."""
    issues: list[CsvIssue] = []
    found: dict[str, dict[str, str]] = {}
    try:
        rows = list(_rows(text))
    except csv.Error as error:
        rows = []
        issues.append(CsvIssue("(file)", "BAD_CSV", f"it cannot be read as CSV: {error}."))
    if rows:
        header, *body = rows
        names = [cell.strip() for cell in header.cells]
        issues += _wrong_header(header.line, names)
        # A row's device cannot be told without its column; what is wrong with the header is enough then.
        if DEVICE in names:
            issues += _wrong_rows(body, names, found)
        if not body:
            issues.append(CsvIssue(f"line {header.line}", "EMPTY_FILE", "below the header there is no row."))
    elif not issues:
        hint = "Begin with a header such as `device,item`, and write one row for each phone."
        issues.append(CsvIssue("(file)", "EMPTY_FILE", "there is nothing in it.", hint))
    if issues:
        raise InvalidInputError("BAD_CSV", _count(source, len(issues)), issues=issues[:MAX_ISSUES])
    return found


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CSV_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(
            "FILE_UNREADABLE",
            f"the file {str(path)!r} cannot be read: {error.strerror}.",
            hint="Name an existing file.",
        ) from error
    if len(data) > MAX_CSV_BYTES:
        raise InvalidInputError(
            "TOO_LARGE",
            f"{str(path)!r} is larger than {MAX_CSV_BYTES // 1024 // 1024} MiB.",
            hint="Give what all phones share as common inputs, or split the rollout.",
        )
    try:
        # With the mark that spreadsheets put in front, or without.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(
            "NOT_UTF8",
            f"{str(path)!r} is no UTF-8 text: line {line} cannot be read.",
            hint="Save it from the spreadsheet as `CSV UTF-8`.",
        ) from error


def _rows(text: str) -> Iterator[_Row]:
    """The rows that hold anything, each with its first line.

    Raises:
        csv.Error: quotes that do not match, or a cell that no value could be.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    line = 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield _Row(line, cells)
        line = reader.line_num + 1


def _separator(text: str) -> str:
    """The separator of which the first line with anything in it has the most; names of inputs hold none of them."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    return max(_SEPARATORS, key=header.count)


def _wrong_header(line: int, names: Sequence[str]) -> Iterator[CsvIssue]:
    where = f"line {line}"
    if DEVICE not in names:
        meant = next((name for name in names if folded(name) in _DEVICE_WORDS), None)
        hint = f"Rename {shown(meant)} to `device`." if meant else "Add it: it names the phone of each row."
        yield CsvIssue(where, "MISSING_COLUMN", "the header has no column `device`.", hint)
    for place, name in enumerate(names, 1):
        if not name:
            yield CsvIssue(where, "BAD_COLUMN", f"column {place} has no name.", "Name it as its input, or delete it.")
        elif names.index(name) < place - 1:
            yield CsvIssue(where, "DUPLICATE_COLUMN", f"column {place} is named {shown(name)} as one before it.")
        elif not _INPUT.match(name) or len(name) > MAX_NAME_LENGTH:
            hint = "Inputs are named with letters, digits and underscores."
            yield CsvIssue(where, "BAD_COLUMN", f"column {place}, {shown(name)}, cannot be the name of an input.", hint)
    if len(names) == 1 and DEVICE in names:
        yield CsvIssue(where, "MISSING_COLUMN", "there is no column beside `device`.", "Add one for each input.")


def _wrong_rows(rows: Sequence[_Row], names: Sequence[str], found: dict[str, dict[str, str]]) -> Iterator[CsvIssue]:
    """What is wrong with the rows; the values of those that are right go to ``found``."""
    if len(rows) > MAX_ROWS:
        where = f"line {rows[MAX_ROWS].line}"
        yield CsvIssue(where, "TOO_MANY_ROWS", f"there are {len(rows):,} rows, and at most {MAX_ROWS:,} phones.")
    first: dict[str, int] = {}
    for row in rows[:MAX_ROWS]:
        where = f"line {row.line}"
        if len(row.cells) != len(names):
            # Its cells may have slipped, so none of them can be trusted.
            message = f"it has {len(row.cells)} cells, and the header has {len(names)}."
            yield CsvIssue(where, "BAD_ROW", message, 'A text that holds the separator stands in quotes: "a, b".')
            continue
        given = dict(zip(names, row.cells, strict=True))
        device = given.pop(DEVICE).strip()
        if not device:
            yield CsvIssue(where, "NO_DEVICE", "the cell `device` is empty.", "Name the phone, or delete the row.")
        elif not _NAME.match(device) or len(device) > MAX_NAME_LENGTH:
            yield CsvIssue(where, "BAD_DEVICE", f"{shown(device)} cannot be the name of a phone.")
        elif device in first:
            message = f"{shown(device)} has a row already, in line {first[device]}."
            yield CsvIssue(where, "DUPLICATE_DEVICE", message, "Write one row for each phone.")
        else:
            first[device] = row.line
            found[device] = {name: value for name, value in given.items() if value}


def _count(source: str, count: int) -> str:
    listed = f", of which {MAX_ISSUES} are listed" if count > MAX_ISSUES else ""
    return f"{source!r} cannot be used: {count} {'thing is' if count == 1 else 'things are'} wrong{listed}."
