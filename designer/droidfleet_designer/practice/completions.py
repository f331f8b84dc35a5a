"""The planner in the words of an OpenAI-compatible server of chat completions. Pure.

Requests are read as far as the planner needs them, and what it does not know is left out: a picture, say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from droidfleet_designer.conversation import Answer, Instruction, Message, Request, ToolAnswer, ToolCall
from droidfleet_designer.observation.lines import estimated_tokens
from droidfleet_designer.practice.planning import Planned, planned
from droidfleet_shared.errors import InvalidInputError

MODEL = "practice"
"""The one model that there is."""

MAX_REQUEST_BYTES = 8_000_000
"""Of a request: the longest conversation of an exploration with a picture, and more."""

PIECE = 40
"""Characters of a text, or of a call's arguments, in one piece of a stream."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str = "text"
    text: str = ""


class _Function(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    arguments: str = ""


class _Call(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    function: _Function


class _Said(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        """The words of it."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """What of a request counts."""

    model_config = ConfigDict(extra="ignore")

    model: str = MODEL
    messages: list[_Said] = Field(min_length=1, max_length=2_000)
    stream: bool = False
    stream_options: _StreamOptions | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer. ``wire_id`` and ``created`` (Unix seconds) go into each document of it."""

    planned: Planned
    wire_id: str
    created: int
    input_tokens: int
    output_tokens: int

    @property
    def usage(self) -> dict[str, JsonValue]:
        """The tokens, estimated: there is no tokeniser here."""
        return {
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        }


def read_request(body: bytes) -> CompletionRequest:
    """Reads a request.

    Raises:
        InvalidInputError: ``BAD_REQUEST``, with the first thing that is wrong.
    """
    try:
        return CompletionRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise InvalidInputError("BAD_REQUEST", f"{where}: {first['msg']}") from None


def completed(request: CompletionRequest, *, wire_id: str, created: int) -> Completion:
    """The planner's answer to a request."""
    messages = messages_of(request)
    answer = planned(messages)
    read = sum(estimated_tokens(each.text) for each in request.messages)
    written = estimated_tokens(answer.text) + (estimated_tokens(answer.call.arguments) if answer.call else 0.0)
    return Completion(answer, wire_id, created, round(read), round(written))


def messages_of(request: CompletionRequest) -> Sequence[Message]:
    """The conversation."""
    names = {call.id: call.function.name for said in request.messages for call in said.tool_calls or ()}
    return [_message(said, names) for said in request.messages]


def whole(completion: Completion) -> dict[str, JsonValue]:
    """The answer as one document."""
    answer = completion.planned
    message: dict[str, JsonValue] = {"role": "assistant", "content": None if answer.refused else answer.text}
    message["refusal"] = answer.text if answer.refused else None
    if answer.call is not None:
        message["tool_calls"] = [_call(answer.call, answer.call.arguments)]
    choice: dict[str, JsonValue] = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
    return {**_head(completion, "chat.completion"), "choices": [choice], "usage": completion.usage}


def pieces(completion: Completion, *, with_usage: bool) -> Iterator[dict[str, JsonValue]]:
    """The answer as the documents of a stream."""
    answer = completion.planned
    said = "refusal" if answer.refused else "content"
    yield _piece(completion, {"role": "assistant", "content": ""})
    for text in _cut(answer.text):
        yield _piece(completion, {said: text})
    if answer.call is not None:
        yield _piece(completion, {"tool_calls": [{"index": 0, **_call(answer.call, "")}]})
        for text in _cut(answer.call.arguments):
            yield _piece(completion, {"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
    yield _piece(completion, {}, finish=_finish(answer))
    if with_usage:
        yield {**_head(completion, "chat.completion.chunk"), "choices": [], "usage": completion.usage}


def models(created: int) -> dict[str, JsonValue]:
    """The models that there are: the planner alone."""
    model: dict[str, JsonValue] = {"id": MODEL, "object": "model", "created": created, "owned_by": "droidfleet"}
    return {"object": "list", "data": [model]}


def refusal(error: InvalidInputError) -> dict[str, JsonValue]:
    """The document for a request that is none."""
    return {"error": {"message": error.message, "type": "invalid_request_error", "param": None, "code": error.code}}


def _message(said: _Said, names: Mapping[str, str]) -> Message:
    match said.role:
        case "system" | "developer":
            return Instruction(text=said.text)
        case "user":
            return Request(text=said.text)
        case "tool":
            return ToolAnswer(call_id=said.tool_call_id, name=names.get(said.tool_call_id, ""), text=said.text)
        case "assistant":
            calls = [
                ToolCall(id=each.id, name=each.function.name, arguments=each.function.arguments)
                for each in said.tool_calls or ()
            ]
            return Answer(text=said.text, calls=tuple(calls))


def _head(completion: Completion, kind: str) -> dict[str, JsonValue]:
    return {"id": completion.wire_id, "object": kind, "created": completion.created, "model": MODEL}


def _piece(completion: Completion, delta: dict[str, JsonValue], *, finish: str | None = None) -> dict[str, JsonValue]:
    choice: dict[str, JsonValue] = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_head(completion, "chat.completion.chunk"), "choices": [choice]}


def _call(call: ToolCall, arguments: str) -> dict[str, JsonValue]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _finish(answer: Planned) -> str:
    return "stop" if answer.call is None else "tool_calls"


def _cut(text: str) -> Iterator[str]:
    return (text[place : place + PIECE] for place in range(0, len(text), PIECE))
