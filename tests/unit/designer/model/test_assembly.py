"""A turn is put together from pieces of any form; nothing in them is taken on trust."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from droidfleet_designer.conversation import Stop, Turn
from droidfleet_designer.model.assembly import CHARACTERS_A_TOKEN, MAX_CALLS, MAX_CHARACTERS, Assembly
from droidfleet_designer.model.port import ModelUnavailableError

Piece = dict[str, JsonValue]


def piece(finish: str | None = None, **delta: JsonValue) -> Piece:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(name: str | None = None, arguments: JsonValue = None, **more: JsonValue) -> Piece:
    return piece(tool_calls=[{"function": {"name": name, "arguments": arguments}, **more}])


END = piece("stop")


def made(*pieces: Piece, known: Collection[str] = (), bound: int = 1_000) -> Turn:
    assembly = Assembly(known=known, max_output_tokens=bound)
    for each in pieces:
        assembly.add(each)
    return assembly.turn(input_tokens=7)


def calls_of(turn: Turn) -> list[tuple[str, str, str]]:
    return [(each.id, each.name, each.arguments) for each in turn.answer.calls]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([called("tap", "{}"), called("back", "{}")], [("call-1", "tap", "{}"), ("call-2", "back", "{}")]),
        (
            [called("tap", "{}", index=0, id="a"), called("tap", "{}", index=0, id="b")],
            [("a", "tap", "{}"), ("b", "tap", "{}")],
        ),
        (
            [called("tap", "{}", index=0, id="a"), called("tap", "{}", index=0, id="a")],
            [("a", "tap", "{}"), ("a-2", "tap", "{}")],
        ),
        (
            [called("tap", "{}", index=0), called("back", "{}", index=0)],
            [("call-1", "tap", "{}"), ("call-2", "back", "{}")],
        ),
        (
            [called("tap", '{"a":', index=0, id="a"), called("tap", '{"b":', index=0, id="a")],
            [("a", "tap", '{"a":{"b":')],
        ),
        ([called("tap", '{"a"', index=0, id="a"), called("", ":1}", index=0, id="")], [("a", "tap", '{"a":1}')]),
        ([called("tap", '{"a"', id="a"), called(None, ":1}")], [("a", "tap", '{"a":1}')]),
        ([called("tap", {"a": "茶"}, index=0, id="a")], [("a", "tap", '{"a": "茶"}')]),
        ([called("tap", None, index=0, id="a")], [("a", "tap", "")]),
        (
            [called("tap", "", index=1, id="b"), called("back", "", index=0, id="a")],
            [("b", "tap", ""), ("a", "back", "")],
        ),
        ([called(None, None, index=0)], []),
    ],
    ids=[
        "no numbers and no ids",
        "one number for all",
        "one number and one id for all",
        "one number and no ids",
        "name and id in each piece",
        "empty name and id in later pieces",
        "no numbers",
        "arguments as an object",
        "no arguments",
        "numbers in another order",
        "nothing in it",
    ],
)
def test_calls_are_told_apart(pieces: Sequence[Piece], calls: list[tuple[str, str, str]]) -> None:
    assert calls_of(made(*pieces, END)) == calls


def test_no_id_stands_for_two_calls_of_a_conversation() -> None:
    turn = made(called("tap", "{}", index=0, id="a"), called("tap", "{}", index=1, id="a-2"), END, known={"a", "a-3"})
    assert [each.id for each in turn.answer.calls] == ["a-2", "a-2-2"]


def test_a_message_that_comes_whole_is_taken_whole() -> None:
    message: JsonValue = {
        "content": "Fine.",
        "tool_calls": [{"id": "a", "function": {"name": "tap", "arguments": "{}"}}],
    }
    turn = made({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert (turn.answer.text, calls_of(turn)) == ("Fine.", [("a", "tap", "{}")])


CALL = called("tap", "{}", id="a")


@pytest.mark.parametrize(
    ("reason", "calls", "stop"),
    [
        ("stop", [], Stop.DONE),
        ("stop", [CALL], Stop.CALLS),
        ("tool_calls", [CALL], Stop.CALLS),
        ("tool_calls", [], Stop.DONE),
        ("function_call", [CALL], Stop.CALLS),
        ("length", [CALL], Stop.LENGTH),
        ("MAX_TOKENS", [], Stop.LENGTH),
        ("content_filter", [CALL], Stop.REFUSED),
        ("eos_token", [CALL], Stop.CALLS),
        ("insufficient_system_resource", [], Stop.DONE),
    ],
)
def test_a_reason_to_stop_is_understood_in_the_words_of_each(reason: str, calls: list[Piece], stop: Stop) -> None:
    assert made(*calls, piece(reason)).stop is stop


@pytest.mark.parametrize(
    "pieces", [[], [{}], [{"choices": []}], [{"usage": {"prompt_tokens": 1}}], [piece(content="I")]]
)
def test_a_stream_that_ends_before_the_answer_is_no_answer(pieces: list[Piece]) -> None:
    with pytest.raises(ModelUnavailableError):
        made(*pieces)


@pytest.mark.parametrize(
    "more",
    [
        [piece(content="and so on ") for _ in range(CHARACTERS_A_TOKEN)],
        [called("tap", '{"text": "' + "x" * 100) for _ in range(CHARACTERS_A_TOKEN)],
        [piece(reasoning_content="hmm " * MAX_CHARACTERS)],
    ],
    ids=["text", "calls", "thoughts"],
)
def test_what_goes_on_past_its_bound_is_cut_and_counted(more: list[Piece]) -> None:
    assembly = Assembly(known=(), max_output_tokens=9)
    for each in more:
        assembly.add(each)
    turn = assembly.turn(input_tokens=7)
    assert assembly.full
    assert turn.stop is Stop.LENGTH
    assert turn.usage.output_tokens > 20


def test_thoughts_take_no_room_from_the_answer() -> None:
    assert made(piece(reasoning="hmm " * 1_000), END, bound=10).stop is Stop.DONE


def test_calls_past_the_limit_are_left_out() -> None:
    many = [called("tap", "{}", index=place, id=f"c{place}") for place in range(MAX_CALLS + 5)]
    assert len(made(*many, END).answer.calls) == MAX_CALLS


@pytest.mark.parametrize(
    ("counted", "estimated"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, False),
        (None, True),
        ({}, True),
        ({"prompt_tokens": 0, "completion_tokens": 0}, True),
        ({"prompt_tokens": -1, "completion_tokens": 2}, True),
        ({"prompt_tokens": 1.5, "completion_tokens": "2"}, True),
        ({"prompt_tokens": 10**30, "completion_tokens": 2}, True),
    ],
)
def test_a_count_that_is_none_is_estimated(counted: JsonValue, estimated: bool) -> None:
    usage = made(piece(content="I tap the tea. 我点茶。"), END, {"choices": [], "usage": counted}).usage
    assert usage.estimated == estimated
    assert (usage.input_tokens, 5 < usage.output_tokens < 20) == ((7, True) if estimated else (10, False))


def test_an_estimate_keeps_to_the_bound_of_a_server_that_kept_to_it() -> None:
    assert made(piece(content="茶" * 9), piece("length"), bound=8).usage.output_tokens == 8


def test_halves_of_characters_are_joined_or_replaced() -> None:
    turn = made(piece(content="\ud83c"), piece(content="\udf75 \ud83c"), called("tap", '"\ud83c'), END)
    assert turn.answer.text == "🍵 \ufffd"
    assert turn.answer.calls[0].arguments == '"\ufffd'


TEXTS = st.text(max_size=8)
ARGUMENTS = st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3).map(json.dumps)
CALLS = st.lists(st.tuples(st.sampled_from(["tap", "back"]), ARGUMENTS), max_size=3)


@settings(max_examples=50)
@given(TEXTS, CALLS, st.data())
def test_an_answer_is_the_same_however_it_is_cut_into_pieces(
    text: str, calls: list[tuple[str, str]], data: st.DataObject
) -> None:
    pieces = [piece(content=part) for part in _cut(text, data)]
    for index, (name, arguments) in enumerate(calls):
        pieces.append(called(name, "", index=index, id=f"id-{index}"))
        pieces += [called(None, part, index=index) for part in _cut(arguments, data)]
    turn = made(*pieces, END)
    assert turn.answer.text == text
    assert calls_of(turn) == [(f"id-{index}", *each) for index, each in enumerate(calls)]


FIELDS = """choices delta message content refusal tool_calls function name arguments id index usage finish_reason
prompt_tokens completion_tokens reasoning"""
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "tap", "stop", "{}", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS.split()), inner, max_size=4),
    max_leaves=8,
)
JUNK_PIECES = st.fixed_dictionaries(
    {
        "choices": JUNK
        | st.lists(
            st.fixed_dictionaries({"delta": JUNK | st.fixed_dictionaries({"tool_calls": JUNK | st.lists(JUNK)})})
        ),
        "usage": JUNK,
    }
)


@settings(max_examples=50)
@given(st.lists(JUNK_PIECES, max_size=4))
def test_pieces_of_any_form_make_a_turn_that_can_be_written_down(pieces: list[Piece]) -> None:
    assert made(*pieces, END).model_dump_json()


def _cut(text: str, data: st.DataObject) -> list[str]:
    if not text:
        return [text]
    ends = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=3))})
    return [text[start:end] for start, end in pairwise(ends)]
