"""Arguments of tool calls are whole, cut or malformed; nothing is ever carried out in part."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_designer.conversation import Stop, ToolCall
from droidfleet_designer.model.calls import MAX_ARGUMENT_BYTES, CutCall, MalformedCall, WholeCall, read_call

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(st.text(max_size=8), VALUES, min_size=1, max_size=4)


def read(arguments: str, stop: Stop = Stop.CALLS) -> WholeCall | CutCall | MalformedCall:
    return read_call(ToolCall(id="c1", name="tap", arguments=arguments), stop)


@given(OBJECTS, st.booleans(), st.sampled_from([None, 2]))
def test_a_whole_object_is_read_as_it_was_written(written: dict[str, object], ascii_only: bool, indent: int) -> None:
    text = json.dumps(written, ensure_ascii=ascii_only, indent=indent)
    assert read(text) == WholeCall(json.loads(text))


@given(OBJECTS, st.booleans(), st.data())
def test_every_beginning_of_an_object_is_cut_and_never_whole(
    written: dict[str, object], ascii_only: bool, data: st.DataObject
) -> None:
    text = json.dumps(written, ensure_ascii=ascii_only)
    kept = text[: data.draw(st.integers(1, len(text) - 1))]
    assert isinstance(read(kept), CutCall), kept


@pytest.mark.parametrize(
    "arguments",
    [
        '{"action": listt"}',
        '{"a": 1}}',
        '{"a": 1} {"b": 2}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "{'a': 1}",
        '["a"]',
        '"a"',
        "tap the button",
        '<tool_call>{"a": 1}</tool_call>',
        '{"a": tru3}',
        '{"a": 01}',
        '{"a" 1}',
        '{"a": "\\x41"}',
    ],
)
def test_what_no_more_text_can_mend_is_malformed(arguments: str) -> None:
    assert isinstance(read(arguments), MalformedCall)


@pytest.mark.parametrize("stop", [Stop.LENGTH, Stop.CALLS])
def test_a_cut_call_is_cut_whatever_the_server_says_of_its_end(stop: Stop) -> None:
    found = read('{"text":"abc', stop)
    assert isinstance(found, CutCall)
    assert ("output was too long" in found.reason) == (stop is Stop.LENGTH)


def test_no_text_is_an_object_without_fields_unless_the_output_was_cut() -> None:
    assert read(" ") == WholeCall({})
    assert isinstance(read("", Stop.LENGTH), CutCall)


def test_a_whole_object_at_the_end_of_a_cut_output_is_whole() -> None:
    assert read('{"a": 1}', Stop.LENGTH) == WholeCall({"a": 1})


def test_arguments_past_the_limit_are_refused_unread() -> None:
    found = read(json.dumps({"a": "x" * MAX_ARGUMENT_BYTES}))
    assert isinstance(found, MalformedCall)
    assert "longer than" in found.reason


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ('{"action": listt"}', "line 1, column 12: expected a value, found `listt`"),
        ('{\n  "a": 1,\n  "b": tru3}', "line 3, column 8: expected a value, found `tru3`"),
        ('{"a": 1, "a": 2}', "the key `a` stands twice in one object"),
    ],
)
def test_the_reason_says_where_it_went_wrong(arguments: str, where: str) -> None:
    found = read(arguments)
    assert isinstance(found, MalformedCall)
    assert where in found.reason


def test_the_reason_of_a_cut_says_how_much_arrived() -> None:
    found = read('{"text":"abc')
    assert isinstance(found, CutCall)
    assert "break off after 12 characters" in found.reason
