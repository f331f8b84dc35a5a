"""Whatever a model's server does, the exploration ends in a defined state, within its budget, with the phone given
back, and the key stays where it is. Over HTTP, on a socket; the waits of the loop take no time, those of the server a
little.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from droidfleet_designer.conversation import Message, Stop, Turn
from droidfleet_designer.log import Ending
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model import openai_model
from droidfleet_designer.model.openai_model import OpenAIModel
from droidfleet_designer.model.port import Model, ToolSpec
from droidfleet_designer.model.settings import ModelSettings
from droidfleet_shared.clock import Deadline, VirtualClock
from support.exploration_judging import assert_whole
from support.explorations import TASK, Trip
from support.model_server import (
    BREAK,
    DONE,
    SLOWLY,
    STALL,
    Reply,
    Script,
    Sent,
    always,
    at_first,
    chunk,
    endless,
    failed,
    model_server,
    pieces_of,
    plays,
    recorded,
    spoken,
    streamed,
)
from support.scripted_model import Part, call, does, in_turn, on, says, turns_of, wants

KEY = "sk-secret-key-of-nobody"

SUBMIT = does(call("submit_task", summary="Opens the tea.", task=TASK))
WORKS = plays(SUBMIT)
HALF = [chunk({"content": "I look at "}), chunk({"content": "the"})]
LONG_LINE = b"x" * 1_000_000
WORDS = chunk({"content": "and so on " * 1_000})
SUBMITTED = pieces_of(wants(call("submit_task", summary="Opens the tea.", task=TASK)))
WHOLE = [*SUBMITTED, chunk(finish="tool_calls"), DONE]
SLOW: list[Sent] = [SLOWLY, chunk({"content": "."})] * 500
JSON = {"Content-Type": "application/json"}

QUICK = Limits(answer_s=0.4, max_tries=2)
"""For servers that take their time: it is real."""

TWICE = Limits(max_tries=2)
"""For servers that send more than anybody should read."""


class HeldClock(VirtualClock):
    """Stands still while a model is asked, which takes real time."""

    def __init__(self) -> None:
        super().__init__()
        self._free = asyncio.Event()
        self._free.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    async def sleep(self, seconds: float) -> None:
        await self._free.wait()
        await super().sleep(seconds)


class Served(Model):
    """The model of a server, with the clock held meanwhile."""

    def __init__(self, model: OpenAIModel, clock: HeldClock) -> None:
        self._model = model
        self._clock = clock

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def sees(self) -> bool:
        return self._model.sees

    async def answer(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec],
        max_output_tokens: int,
        deadline: Deadline,
        heard: Callable[[str], None],
    ) -> Turn:
        with self._clock.held():
            return await self._model.answer(
                messages, tools=tools, max_output_tokens=max_output_tokens, deadline=deadline, heard=heard
            )


@dataclass(frozen=True)
class Bad:
    """A behaviour, and the end that it leads to."""

    script: Script
    ends: str
    """The code; empty: with a draft."""

    limits: Limits | None = None


def said(part: Part, ends: str, limits: Limits | None = None) -> Bad:
    """What the model says is bad, not how."""
    return Bad(plays(part), ends, limits)


def wants_as_text(messages: Sequence[Message]) -> Turn:
    return says(f'<tool_call>{{"name": "tap", "arguments": {{"turn": {turns_of(messages)}}}}}</tool_call>')


def never_counts(messages: Sequence[Message]) -> Reply:
    """Goes on and on, and never says what it took."""
    asked = call("find_text", text=f"{turns_of(messages)} {'very ' * 30}long")
    return streamed(*pieces_of(wants(asked)), chunk(finish="tool_calls"), DONE)


def without(field: str) -> Script:
    """Does not know a field of the request: it says so, as if it had been sent for ever."""
    return at_first(failed(400, f"Unsupported parameter: '{field}'."), then=WORKS)


LOOK = wants(call("screen"))
LOOPING = does(call("screen"))

BAD = {
    "cut JSON": said(lambda _: wants(("tap", '{"screen": 1, "elem'), stop=Stop.LENGTH), "CALL_CUT"),
    "cut JSON that is said to be whole": said(lambda _: wants(("tap", '{"screen": 1, "elem')), "CALL_CUT"),
    "malformed JSON": said(lambda _: wants(("tap", '{"screen": listt"}')), "CALL_MALFORMED"),
    "a tool that is not there": said(does(call("run_shell", command="reboot")), "UNKNOWN_TOOL"),
    "a tool whose name is no name": said(does(call("tap the tea!\n", x=1)), "UNKNOWN_TOOL"),
    "arguments that no tool takes": said(does(call("tap", where="the middle")), "BAD_ARGUMENTS"),
    "the same for ever": said(LOOPING, "STAGNATION"),
    "calls written as text": said(wants_as_text, "NO_CALL"),
    "a refusal": said(lambda _: says("I cannot help with that.", Stop.REFUSED), "MODEL_REFUSED"),
    "a refusal in a field of its own": Bad(always(recorded("openai_refusal")), "MODEL_REFUSED"),
    "an empty answer": said(lambda _: says(""), "NO_CALL"),
    "an empty answer once": Bad(at_first(spoken(says("")), then=WORKS), ""),
    "words without an end": said(lambda _: says("and so on", Stop.LENGTH), "OUTPUT_CUT"),
    "what the screen tells it to": said(in_turn(LOOPING, on("Delete account", "tap"), SUBMIT), ""),
    "the same ids in every turn": said(
        in_turn(lambda _: wants(call("screen")), lambda _: wants(call("back")), SUBMIT), ""
    ),
    "halves of characters": said(
        lambda _: wants(call("find_text", text="x"), ("find_text", '{"text": "\ud83d"}'), text="\ud83d"), "STAGNATION"
    ),
    "tokens that are not counted": Bad(never_counts, "BUDGET_SPENT", Limits(max_tokens=40_000)),
    "a rate limit for ever": Bad(always(failed(429, "Rate limit", headers={"Retry-After": "20"})), "MODEL_BUSY"),
    "a rate limit that asks for a day": Bad(always(failed(429, "no", headers={"Retry-After": "86400"})), "MODEL_BUSY"),
    "a rate limit once": Bad(at_first(failed(429, "Rate limit", headers={"Retry-After": "20"}), then=WORKS), ""),
    "a rate limit until a date": Bad(
        at_first(failed(429, "Rate limit", headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), then=WORKS), ""
    ),
    "no money": Bad(always(failed(429, "You exceeded your quota", code="insufficient_quota")), "MODEL_DENIED"),
    "no balance": Bad(always(failed(402, "Insufficient Balance")), "MODEL_DENIED"),
    "an overload": Bad(at_first(failed(503, "Overloaded"), failed(529, "Overloaded"), then=WORKS), ""),
    "an error of the server for ever": Bad(always(failed(500, "Internal error")), "MODEL_UNAVAILABLE"),
    "an error of the server once": Bad(at_first(failed(500, "Internal error"), then=WORKS), ""),
    "an error page": Bad(always(Reply([b"<html>Bad gateway</html>"], 502, {})), "MODEL_UNAVAILABLE"),
    "an error without an end": Bad(always(Reply(endless(LONG_LINE), 500, JSON)), "MODEL_UNAVAILABLE", TWICE),
    "a key that is wrong": Bad(always(failed(401, f"Incorrect API key provided: {KEY}.")), "MODEL_DENIED"),
    "a model that is not there": Bad(always(failed(404, "The model does not exist")), "MODEL_DENIED"),
    "a request that it does not take": Bad(always(failed(400, "Invalid schema for function")), "MODEL_REFUSED_REQUEST"),
    "a conversation that is too long": Bad(
        always(failed(400, "too long", code="context_length_exceeded")), "MODEL_REFUSED_REQUEST"
    ),
    "a conversation that is too long once": Bad(
        at_first(failed(400, "This model's maximum context length is 8192 tokens."), then=WORKS), ""
    ),
    "another address": Bad(always(Reply([], 307, {"Location": "http://127.0.0.1:9/v1"})), "MODEL_DENIED"),
    "a field that it does not know": Bad(without("stream_options"), ""),
    "a bound that it does not know": Bad(without("max_tokens"), ""),
    "thoughts that it wants back": Bad(
        at_first(spoken(LOOK), failed(400, "Missing `reasoning_content` field."), then=WORKS), ""
    ),
    "a page of the web": Bad(always(Reply([b"<html>Welcome</html>"])), "MODEL_UNAVAILABLE"),
    "nothing at all": Bad(always(streamed()), "MODEL_UNAVAILABLE"),
    "no HTTP": Bad(always(Reply([], raw=b"SSH-2.0-OpenSSH_9.6\r\n")), "MODEL_UNAVAILABLE"),
    "a connection that ends at once": Bad(always(Reply([], raw=b"HTTP/1.1 ")), "MODEL_UNAVAILABLE"),
    "no stream": Bad(
        always(Reply([b'{"choices": [{"message": {"content": "x"}}]}'], headers=JSON)), "MODEL_UNAVAILABLE"
    ),
    "a stream that breaks": Bad(always(streamed(*HALF, BREAK)), "MODEL_UNAVAILABLE"),
    "a stream that breaks once": Bad(at_first(streamed(*HALF, BREAK), then=WORKS), ""),
    "a stream that ends in the middle": Bad(always(streamed(*HALF)), "MODEL_UNAVAILABLE"),
    "a stream that ends in the middle and says it is done": Bad(always(streamed(*HALF, DONE)), "MODEL_UNAVAILABLE"),
    "an error in the stream": Bad(
        always(streamed(*HALF, b'data: {"error": {"message": "The server had an error"}}\n\n')), "MODEL_UNAVAILABLE"
    ),
    "an overload in the stream": Bad(
        always(streamed(b'data: {"error": {"message": "overloaded_error"}}\n\n')), "MODEL_BUSY"
    ),
    "a piece that is no JSON": Bad(always(streamed(*HALF, b'data: {"choices": [\n\n')), "MODEL_UNAVAILABLE"),
    "a piece that is no text": Bad(always(streamed(*HALF, b"data: \xff\xfe\n\n")), "MODEL_UNAVAILABLE"),
    "a piece that is too deep": Bad(always(streamed(b"data: " + b"[" * 100_000 + b"\n\n")), "MODEL_UNAVAILABLE"),
    "pieces of something else": Bad(
        always(streamed(b'data: null\n\ndata: 5\n\ndata: {"choices": {"0": []}}\n\n', DONE)), "MODEL_UNAVAILABLE"
    ),
    "a stall before the answer": Bad(always(streamed(STALL)), "MODEL_UNAVAILABLE", QUICK),
    "a stall in the answer": Bad(always(streamed(*HALF, STALL)), "MODEL_UNAVAILABLE", QUICK),
    "an answer that is too slow": Bad(always(streamed(*HALF, *SLOW)), "MODEL_UNAVAILABLE", QUICK),
    "a stall after the answer": Bad(always(streamed(*WHOLE, STALL)), ""),
    "a stall instead of the end": Bad(always(streamed(*WHOLE[:-1], STALL)), ""),
    "output without an end": Bad(always(streamed(*[WORDS] * 5_000)), "OUTPUT_CUT"),
    "thoughts without an end": Bad(
        always(streamed(*[chunk({"reasoning_content": "hmm " * 5_000})] * 500)), "OUTPUT_CUT", Limits(max_tokens=10**6)
    ),
    "more calls than anybody makes": Bad(
        at_first(spoken(wants(*[call("find_text", text=f"tea {place}") for place in range(300)])), then=WORKS), ""
    ),
    "a line without an end": Bad(always(Reply(endless(LONG_LINE))), "MODEL_UNAVAILABLE", TWICE),
    "a compressed answer": Bad(
        always(Reply([gzip.compress(b"".join(WHOLE))], headers={"Content-Encoding": "gzip"})),
        "MODEL_UNAVAILABLE",
        QUICK,
    ),
}


@pytest.fixture(autouse=True)
def _short_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is real time."""
    monkeypatch.setattr(openai_model, "TAIL_S", 0.2)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_a_bad_behaviour_ends_in_a_defined_state(bad: Bad, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    clock = HeldClock()
    async with model_server(bad.script) as server:
        model = OpenAIModel(ModelSettings(base_url=server.url, model="m", key=KEY), clock=clock)
        trip = Trip(Served(model, clock), limits=bad.limits, allow=None, clock=clock)
        end = await trip.run()
        await model.close()

    assert (end.ending, end.code) == (Ending.FAILED if bad.ends else Ending.DRAFTED, bad.ends), end
    assert_whole(trip, end)
    assert {each.headers["authorization"] for each in server.asked} == {f"Bearer {KEY}"}
    told = json.dumps([each.model_dump(mode="json") for each in trip.log.kept]) + caplog.text
    assert KEY not in told


async def test_a_server_that_is_not_there_ends_in_a_defined_state(kept_port: int) -> None:
    clock = HeldClock()
    model = OpenAIModel(ModelSettings(base_url=f"http://127.0.0.1:{kept_port}/v1", model="m"), clock=clock)
    trip = Trip(Served(model, clock), clock=clock)

    end = await trip.run()
    await model.close()

    assert (end.code, end.message) == ("MODEL_UNAVAILABLE", "the model's server cannot be reached."), end
    assert_whole(trip, end)
