"""The adapter on a socket: the forms of the usual servers, what is sent, how long it waits, and what it keeps quiet."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from pydantic import JsonValue

from droidfleet_designer.conversation import Answer, Instruction, Message, Picture, Request, Stop, ToolCall, Turn, Usage
from droidfleet_designer.model import openai_model
from droidfleet_designer.model.form import MAX_ADAPTATIONS
from droidfleet_designer.model.openai_model import OpenAIModel
from droidfleet_designer.model.port import (
    ModelBusyError,
    ModelDeniedError,
    ModelRefusedError,
    ModelUnavailableError,
    ToolSpec,
)
from droidfleet_designer.model.settings import ModelSettings
from droidfleet_shared.clock import SystemClock
from support.model_server import (
    DONE,
    STALL,
    ModelServer,
    Reply,
    Script,
    Sent,
    always,
    at_first,
    chunk,
    event,
    failed,
    model_server,
    recorded,
    spoken,
    streamed,
)
from support.scripted_model import says

CLOCK = SystemClock()
KEY = "sk-secret-key-of-nobody"
TALK: Sequence[Message] = (Instruction(text="Explore."), Request(text="Open the tea."))
TOOL = ToolSpec("tap", "Taps.", {"type": "object", "properties": {}})
FINE = always(spoken(says("Fine.")))
LONG_S = 30.0
STALLED_S = 1.0
"""Real time, in which a busy machine connects and sends."""
TAIL_S = 0.2


@asynccontextmanager
async def served(script: Script, *, sees: bool = False) -> AsyncIterator[tuple[OpenAIModel, ModelServer]]:
    async with model_server(script) as server:
        model = OpenAIModel(ModelSettings(base_url=server.url, model="some-model", key=KEY, sees=sees), clock=CLOCK)
        yield model, server
        await model.close()


async def ask(model: OpenAIModel, *messages: Message, within_s: float = LONG_S, heard: list[str] | None = None) -> Turn:
    pieces: list[str] = [] if heard is None else heard
    return await model.answer(
        messages or TALK,
        tools=[TOOL],
        max_output_tokens=500,
        deadline=CLOCK.deadline(within_s),
        heard=pieces.append,
    )


TAP = '{"screen":1,"element":2}'
SPACED = '{"screen": 1, "element": 2}'
COUNTED = Usage(input_tokens=1200, output_tokens=80)
SHAPES = {
    "openai": (("call_a1", TAP), "call_a2", COUNTED),
    "deepseek": (("call_00_b1", SPACED), "call_01_b2", COUNTED),
    "qwen": (("call_c1", SPACED), "call_c2", COUNTED),
    "vllm": (("chatcmpl-tool-d1", SPACED), "chatcmpl-tool-d2", COUNTED),
    "ollama": (("call_e1", '{"element":2,"screen":1}'), "call_e2", None),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_answer_is_the_same_in_the_form_of_every_server(shape: str) -> None:
    (first, arguments), second, usage = SHAPES[shape]
    heard: list[str] = []
    async with served(always(recorded(shape))) as (model, _):
        turn = await ask(model, heard=heard)
    assert turn.answer == Answer(
        text="I tap the tea.",
        calls=(
            ToolCall(id=first, name="tap", arguments=arguments),
            ToolCall(id=second, name="screen", arguments="{}"),
        ),
    )
    assert turn.stop is Stop.CALLS
    assert "".join(heard) == "I tap the tea."
    assert turn.usage == usage or (usage is None and turn.usage.estimated and 0 < turn.usage.output_tokens < 100)


async def test_a_refusal_in_a_field_of_its_own_is_one() -> None:
    async with served(always(recorded("openai_refusal"))) as (model, _):
        turn = await ask(model)
    assert (turn.stop, turn.answer.text) == (Stop.REFUSED, "I can't help with that.")


# What is sent ---------------------------------------------------------------------------------------------------------


async def test_a_request_says_what_is_wanted_and_nothing_else() -> None:
    async with served(FINE) as (model, server):
        await ask(model)
    assert server.asked[0].body == {
        "model": "some-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 500,
        "messages": [
            {"role": "system", "content": "Explore."},
            {"role": "user", "content": "Open the tea."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "tap",
                    "description": "Taps.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
    }


@pytest.mark.parametrize("sees", [True, False])
async def test_a_picture_is_sent_only_to_a_model_that_sees(sees: bool) -> None:
    picture = Picture(caption="Screen 1", media_type="image/png", data=b"\x89PNG")
    async with served(FINE, sees=sees) as (model, server):
        await ask(model, *TALK, picture)
    assert ("data:image/png;base64,iVBORw==" in str(server.asked[0].body)) == sees


OTHERS = {
    "OPENAI_API_KEY": "sk-another-account",
    "OPENAI_ADMIN_KEY": "sk-another-admin",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_ORG_ID": "another-organisation",
    "OPENAI_PROJECT_ID": "another-project",
    "OPENAI_CUSTOM_HEADERS": "X-Another: another",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
}


@pytest.mark.parametrize("key", [KEY, ""])
async def test_nothing_of_another_account_is_taken_from_the_environment(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    async with model_server(FINE) as server:
        model = OpenAIModel(ModelSettings(base_url=server.url, model="m", key=key), clock=CLOCK)
        await ask(model)
        await model.close()
    headers = server.asked[0].headers
    assert "another" not in str(headers)
    assert headers["authorization"] == f"Bearer {key or 'none'}"


async def test_a_server_elsewhere_is_asked_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with model_server(FINE) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        model = OpenAIModel(ModelSettings(base_url="http://models.invalid/v1", model="m"), clock=CLOCK)
        await ask(model)
        await model.close()
    assert proxy.asked[0].headers["host"] == "models.invalid"


# Fields that a server does not know -----------------------------------------------------------------------------------

NO_OPTIONS = failed(400, "Unrecognized request argument supplied: stream_options")
NO_BOUND = failed(
    400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
FORBIDDEN = Reply(
    [b'{"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]}'],
    422,
    {"Content-Type": "application/json"},
)


@pytest.mark.parametrize(
    ("replies", "left"),
    [
        ([NO_OPTIONS], {"max_tokens"}),
        ([FORBIDDEN], {"max_tokens"}),
        ([NO_BOUND], {"stream_options", "max_completion_tokens"}),
        ([NO_BOUND, NO_OPTIONS], {"max_completion_tokens"}),
    ],
    ids=["stream_options", "stream_options of FastAPI", "max_tokens", "both"],
)
async def test_a_field_that_the_server_does_not_know_is_left_out_from_then_on(
    replies: list[Reply], left: set[str]
) -> None:
    async with served(at_first(*replies, then=FINE)) as (model, server):
        await ask(model)
        await ask(model)
    assert len(server.asked) == len(replies) + 2
    optional = {"stream_options", "max_tokens", "max_completion_tokens"}
    assert [optional & set(each.body) for each in server.asked[-2:]] == [left, left]


NO_THOUGHTS = [
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "Missing `reasoning_content` field in the assistant message at message index 2.",
]


@pytest.mark.parametrize("complaint", NO_THOUGHTS)
async def test_a_server_that_misses_the_thoughts_of_earlier_answers_is_given_their_field(complaint: str) -> None:
    async with served(at_first(failed(400, complaint), then=FINE)) as (model, server):
        await ask(model, *TALK, Answer(text="I look."), Request(text="Go on."))
    sent = [each.body["messages"] for each in server.asked]
    assert [str(messages).count("'reasoning_content': ''") for messages in sent] == [0, 1]


ASKING = 3


async def test_several_who_ask_at_once_learn_the_form_together() -> None:
    """Each is refused for what it sent, however much the others have learned meanwhile."""
    here = asyncio.Event()

    def script(_: Sequence[Message]) -> Reply:
        if len(server.asked) == ASKING:
            here.set()
        refused = "stream_options" in server.asked[-1].body
        return replace(NO_OPTIONS, parts=[here, *NO_OPTIONS.parts]) if refused else spoken(says("Fine."))

    async with model_server(script) as server, asyncio.timeout(LONG_S):
        model = OpenAIModel(ModelSettings(base_url=server.url, model="m"), clock=CLOCK)
        turns = await asyncio.gather(*[ask(model) for _ in range(ASKING)])
        await model.close()
    assert [each.answer.text for each in turns] == ["Fine."] * ASKING


async def test_an_error_in_a_stream_is_told_by_the_status_in_it() -> None:
    broken = event({"error": {"code": 429, "message": "Provider returned error"}})
    async with served(always(streamed(chunk({"content": "I"}), broken))) as (model, _):
        with pytest.raises(ModelBusyError):
            await ask(model)


@pytest.mark.parametrize(
    "complaint",
    ["max_tokens is too large: 500. This model supports at most 100 completion tokens.", "Unknown tool type."],
)
async def test_another_complaint_is_not_answered_with_another_request(complaint: str) -> None:
    async with served(always(failed(400, complaint))) as (model, server):
        with pytest.raises(ModelRefusedError):
            await ask(model)
    assert len(server.asked) == 1


async def test_a_server_that_knows_no_form_is_not_asked_for_ever() -> None:
    async with served(always(failed(400, "unknown: stream_options, max_tokens, max_completion_tokens"))) as (
        model,
        server,
    ):
        with pytest.raises(ModelRefusedError):
            await ask(model)
    assert len(server.asked) == 1 + MAX_ADAPTATIONS


# Time -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [[STALL], [chunk({"content": "I"}), STALL]], ids=["nothing", "a piece"])
async def test_the_deadline_ends_a_stall_and_the_connection(parts: list[bytes]) -> None:
    async with served(always(Reply(parts))) as (model, server):
        with pytest.raises(ModelUnavailableError, match="did not answer in time"):
            await ask(model, within_s=STALLED_S)
        async with asyncio.timeout(LONG_S):
            await server.hung_up.wait()


async def test_no_time_left_asks_nobody() -> None:
    async with served(FINE) as (model, server):
        with pytest.raises(ModelUnavailableError):
            await ask(model, within_s=0.0)
    assert server.asked == []


@pytest.mark.parametrize(
    "after", [[DONE, STALL], [STALL], ["break"], [b"data: {\n\n"]], ids=["tail", "no end", "a break", "nonsense"]
)
async def test_a_whole_answer_is_kept_whatever_comes_after_it(
    after: list[Sent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_model, "TAIL_S", TAIL_S)
    whole = [chunk({"content": "Fine."}), chunk(finish="stop")]
    async with served(always(Reply([*whole, *after]))) as (model, _), asyncio.timeout(LONG_S / 2):
        turn = await ask(model)
    assert (turn.answer.text, turn.stop, turn.usage.estimated) == ("Fine.", Stop.DONE, True)


async def test_who_stops_asking_closes_the_stream() -> None:
    script = always(streamed(chunk({"content": "I"}), STALL))
    async with served(script) as (model, server), asyncio.timeout(LONG_S), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ask(model))
        await server.stalled.wait()
        asking.cancel()
        await server.hung_up.wait()
    assert asking.cancelled()


async def test_closing_twice_is_harmless() -> None:
    async with served(FINE) as (model, _):
        await model.close()


# What is kept quiet ---------------------------------------------------------------------------------------------------


async def test_an_error_knows_nothing_of_the_request() -> None:
    async with served(always(failed(401, f"Incorrect API key provided: {KEY}. Bearer {KEY}"))) as (model, _):
        with pytest.raises(ModelDeniedError) as raised:
            await ask(model)
    error = raised.value
    assert error.__context__ is None
    assert KEY not in "".join([*traceback.format_exception(error), error.hint, repr(error)])


async def test_neither_the_model_nor_its_settings_show_the_key() -> None:
    async with served(FINE) as (model, _):
        assert KEY not in repr(model)
    assert KEY not in repr(ModelSettings(base_url="https://host/v1", model="m", key=KEY))


async def test_words_of_an_error_are_cut_and_on_one_line() -> None:
    async with served(always(failed(400, "Bad\n\x1b[31m" + "x" * 10_000))) as (model, _):
        with pytest.raises(ModelRefusedError) as raised:
            await ask(model)
    message = raised.value.message
    assert len(message) < 400
    assert message.isprintable()


# Answers that are not to be trusted -----------------------------------------------------------------------------------


async def test_pieces_of_any_form_break_nothing() -> None:
    odd: list[JsonValue] = [
        None,
        5,
        "text",
        [],
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": {"0": {}}, "role": 7}}]},
        {"choices": [{"delta": {"tool_calls": [None, {"index": "0", "function": "tap"}, {"index": -1}]}}]},
        {"usage": {"prompt_tokens": "many", "completion_tokens": -5}},
    ]
    async with served(always(streamed(*map(event, odd), chunk({"content": "Fine."}), chunk(finish="stop"), DONE))) as (
        model,
        _,
    ):
        turn = await ask(model)
    assert (turn.answer.text, turn.stop) == ("Fine.", Stop.DONE)


async def test_the_same_server_is_asked_over_the_same_connection() -> None:
    async with served(FINE) as (model, server):
        for _ in range(3):
            await ask(model)
    assert server.connections == 1
