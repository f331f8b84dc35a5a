"""A CSV file gives each phone its values, or an error that names every line that is wrong."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.cli.csv_inputs import (
    MAX_CSV_BYTES,
    MAX_ISSUES,
    MAX_ROWS,
    CsvIssue,
    parse_inputs,
    read_inputs,
)
from droidfleet_controller.cli.failures import text_of
from droidfleet_shared.errors import InvalidInputError


def refused(text: str) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        parse_inputs(text, source="inputs.csv")
    return caught.value


def issues(text: str) -> list[tuple[str, str]]:
    """(line, code) of all that is wrong."""
    found = []
    for issue in refused(text).issues:
        assert isinstance(issue, CsvIssue)
        found.append((issue.path, issue.code))
    return found


def test_each_row_gives_a_phone_its_values() -> None:
    assert parse_inputs("device,item,count\np1,tea,2\np2,milk,1\n", source="x") == {
        "p1": {"item": "tea", "count": "2"},
        "p2": {"item": "milk", "count": "1"},
    }


def test_an_empty_cell_gives_no_value() -> None:
    assert parse_inputs("device,item\np1,\n", source="x") == {"p1": {}}


def test_the_device_may_stand_in_any_column() -> None:
    assert parse_inputs("item,device\ntea,p1\n", source="x") == {"p1": {"item": "tea"}}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separators_of_spreadsheets_are_known(separator: str) -> None:
    text = f'device{separator}item\r\np1{separator}"a, b; c"\r\n'
    assert parse_inputs(text, source="x") == {"p1": {"item": "a, b; c"}}


def test_the_mark_of_spreadsheets_in_front_is_no_part_of_the_header(tmp_path: Path) -> None:
    file = tmp_path / "inputs.csv"
    file.write_bytes(b"\xef\xbb\xbfdevice,item\np1,tee gr\xc3\xbcn\n")
    assert read_inputs(file) == {"p1": {"item": "tee grün"}}


def test_empty_lines_are_passed_over() -> None:
    assert list(parse_inputs("\ndevice,item\n\np1,tea\n,\n", source="x")) == ["p1"]


def test_all_problems_are_listed_with_their_lines() -> None:
    text = 'device,item\np1,tea\np1,milk\n,salt\np2,"two\nlines"\np3\np4,a,b\n p 5\x01,x\n'
    assert issues(text) == [
        ("line 3", "DUPLICATE_DEVICE"),
        ("line 4", "NO_DEVICE"),
        ("line 7", "BAD_ROW"),
        ("line 8", "BAD_ROW"),
        ("line 9", "BAD_DEVICE"),
    ]


def test_a_doubled_phone_names_the_line_of_the_first() -> None:
    assert "line 2" in text_of(refused("device,item\np1,tea\np1,milk\n"))


def test_wrong_columns_are_listed_with_the_wrong_rows() -> None:
    assert issues("device,item,,item,my item\np1,1,2,3\n") == [
        ("line 1", "BAD_COLUMN"),
        ("line 1", "DUPLICATE_COLUMN"),
        ("line 1", "BAD_COLUMN"),
        ("line 2", "BAD_ROW"),
    ]


@pytest.mark.parametrize("header", ["Device,item", "phone;item", "agent name\titem"])
def test_a_column_that_means_the_device_is_named(header: str) -> None:
    assert "Rename" in text_of(refused(f"{header}\np1{header[-5]}tea\n"))


@pytest.mark.parametrize("text", ["", "\n\n", " , \n"])
def test_an_empty_file_says_what_to_write(text: str) -> None:
    assert "header" in text_of(refused(text))


def test_a_header_alone_is_an_empty_file() -> None:
    assert issues("device,item\n") == [("line 1", "EMPTY_FILE")]


def test_a_file_without_inputs_is_refused() -> None:
    assert issues("device\np1\n") == [("line 1", "MISSING_COLUMN")]


def test_quotes_that_do_not_end_are_an_error_of_the_file() -> None:
    assert issues('device,item\np1,"tea\n') == [("(file)", "BAD_CSV")]


def test_more_rows_than_phones_are_refused() -> None:
    text = "device,item\n" + "".join(f"p{number},x\n" for number in range(MAX_ROWS + 1))
    assert issues(text) == [(f"line {MAX_ROWS + 2}", "TOO_MANY_ROWS")]


def test_many_problems_are_counted_and_the_first_ones_listed() -> None:
    error = refused("device,item\n" + ",x\n" * 500)
    assert (len(error.issues), "500" in error.message) == (MAX_ISSUES, True)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "inputs.csv"
    file.write_bytes(b"device,item\n" + b"x" * MAX_CSV_BYTES)
    with pytest.raises(InvalidInputError) as caught:
        read_inputs(file)
    assert caught.value.code == "TOO_LARGE"


def test_a_text_in_another_encoding_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "inputs.csv"
    file.write_bytes("device,item\np1,grün\n".encode("cp1252"))
    with pytest.raises(InvalidInputError) as caught:
        read_inputs(file)
    assert (caught.value.code, "line 2" in caught.value.message) == ("NOT_UTF8", True)


@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_a_file_that_is_none_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_inputs(tmp_path / name)
    assert caught.value.code == "FILE_UNREADABLE"


VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)


@given(st.dictionaries(st.from_regex(r"p[a-z0-9]{1,5}", fullmatch=True), VALUES, min_size=1), st.sampled_from(",;\t"))
def test_what_a_spreadsheet_writes_is_read_back(values: dict[str, str], separator: str) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator)
    writer.writerows([("device", "item"), *values.items()])
    assert parse_inputs(file.getvalue(), source="x") == {device: {"item": value} for device, value in values.items()}


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_inputs(text, source="x")
    except InvalidInputError as error:
        assert error.issues  # noqa: PT017  # both ends are right, and this one says why
