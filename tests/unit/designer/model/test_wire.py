"""A conversation is sent in a form that every server takes."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from droidfleet_designer.conversation import Answer, Instruction, Message, Picture, Request, ToolAnswer, ToolCall
from droidfleet_designer.model.wire import MAX_NAME, messages_of

PICTURE = Picture(caption="Screen 1", media_type="image/png", data=b"\x89PNG")


def call(call_id: str, arguments: str = "{}", name: str = "tap") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def answer_to(call_id: str) -> ToolAnswer:
    return ToolAnswer(call_id=call_id, name="tap", text="Done.")


def roles(conversation: list[Message], *, sees: bool = True) -> list[JsonValue]:
    return [each["role"] for each in messages_of(conversation, sees=sees)]


def test_pictures_come_after_all_answers_of_a_turn() -> None:
    conversation: list[Message] = [
        Answer(calls=(call("a"), call("b"))),
        answer_to("a"),
        PICTURE,
        answer_to("b"),
        PICTURE,
        Request(text="Go on."),
    ]
    sent = messages_of(conversation, sees=True)
    assert [each["role"] for each in sent] == ["assistant", "tool", "tool", "user", "user", "user"]
    assert [type(each["content"]) for each in sent[3:]] == [list, list, str]


def test_a_picture_at_the_end_is_sent() -> None:
    assert roles([Answer(calls=(call("a"),)), answer_to("a"), PICTURE]) == ["assistant", "tool", "user"]


def test_a_model_that_does_not_see_is_sent_no_picture() -> None:
    assert roles([Answer(calls=(call("a"),)), answer_to("a"), PICTURE], sees=False) == ["assistant", "tool"]


def test_an_answer_without_anything_is_left_out() -> None:
    assert roles([Request(text="x"), Answer(), Request(text="y")]) == ["user", "user"]


def test_thoughts_have_their_field_only_where_it_is_wanted() -> None:
    conversation: list[Message] = [Request(text="x"), Answer(calls=(call("a"),)), answer_to("a")]
    sent = [messages_of(conversation, sees=False, thoughts=wanted) for wanted in (False, True)]
    assert [["reasoning_content" in each for each in messages] for messages in sent] == [
        [False, False, False],
        [False, True, False],
    ]


def test_whole_arguments_are_sent_as_they_were_written() -> None:
    assert _sent(call("a", ' {"text": "茶"}'))["arguments"] == ' {"text": "茶"}'


CONTENT = st.text(max_size=12)
ANY_CALL = st.builds(
    lambda name, arguments: (name, arguments),
    st.text(max_size=80),
    st.text(max_size=12) | st.sampled_from(['{"a": 1', "[]", "null", "NaN", '{"a": 1}', "[" * 5_000, '{"a": NaN}']),
)
TURNS = st.lists(st.tuples(CONTENT, st.lists(ANY_CALL, max_size=3), st.booleans()), max_size=4)


@settings(max_examples=60)
@given(TURNS, st.booleans())
def test_any_conversation_has_the_form_that_servers_want(
    turns: list[tuple[str, list[tuple[str, str]], bool]], sees: bool
) -> None:
    conversation: list[Message] = [Instruction(text="Explore."), Request(text="Open the tea.")]
    for number, (text, calls, pictured) in enumerate(turns):
        made = tuple(call(f"{number}-{at}", given, name) for at, (name, given) in enumerate(calls))
        conversation.append(Answer(text=text, calls=made))
        for each in made:
            conversation += [answer_to(each.id), *([PICTURE] if pictured else [])]
    sent = messages_of(conversation, sees=sees)
    waiting: list[JsonValue] = []
    for message in json.loads(json.dumps(sent, allow_nan=False)):
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        for each in message.get("tool_calls", ()):
            waiting.append(each["id"])
            assert re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}", each["function"]["name"])
            assert isinstance(json.loads(each["function"]["arguments"], parse_constant=_none), dict)
    assert waiting == []


def _none(constant: str) -> JsonValue:
    raise AssertionError(f"{constant} is no JSON")


def _sent(given: ToolCall) -> dict[str, JsonValue]:
    calls = messages_of([Answer(calls=(given,))], sees=False)[0]["tool_calls"]
    assert isinstance(calls, list)
    assert isinstance(calls[0], dict)
    function = calls[0]["function"]
    assert isinstance(function, dict)
    return function
