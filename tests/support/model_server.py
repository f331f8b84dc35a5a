"""An OpenAI-compatible server on a real socket that plays a part, well or as badly as servers do.

It speaks HTTP by hand, so that it can also do what no HTTP library lets it: stall, break off, never end a line.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from droidfleet_designer.conversation import Answer, Instruction, Message, Request, Stop, ToolAnswer, ToolCall, Turn
from support.scripted_model import Part

RECORDED = Path(__file__).parents[1] / "data" / "model"
"""Streams in the forms of the usual servers."""

Object = Mapping[str, JsonValue]

STALL: Literal["stall"] = "stall"
"""Nothing more comes, and the connection stays."""

BREAK: Literal["break"] = "break"
"""The connection is gone, in the middle."""

GAP_S = 0.01
"""Between two pieces of a slow answer."""

SLOWLY: Literal["slowly"] = "slowly"

Sent = bytes | Literal["stall", "break", "slowly"] | asyncio.Event
"""A part of a reply. An event: the reply waits for it."""

_FINISH = {Stop.DONE: "stop", Stop.CALLS: "tool_calls", Stop.LENGTH: "length", Stop.REFUSED: "content_filter"}


@dataclass(frozen=True)
class Reply:
    """A response: its head, and what is sent one after the other. ``raw``: instead of all that."""

    parts: Iterable[Sent]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    raw: bytes = b""


Script = Callable[[Sequence[Message]], Reply]
"""What the server replies to a conversation."""


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    headers: Mapping[str, str]
    body: dict[str, JsonValue]


class ModelServer:
    """``asked``: the requests so far, over so many ``connections``. ``stalled``: a reply is. ``hung_up``: a client went
    away in the middle."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._writers: set[asyncio.StreamWriter] = set()
        self._idle = asyncio.Event()
        self.connections = 0
        self.asked: list[Asked] = []
        self.hung_up = asyncio.Event()
        self.stalled = asyncio.Event()
        self.url = ""

    async def drop(self) -> None:
        """Breaks all connections; nobody is answered any more after it."""
        for writer in self._writers:
            writer.transport.abort()
        if self._writers:
            await self._idle.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        self._writers.add(writer)
        self._idle.clear()
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hung_up.set()
        finally:
            writer.close()
            self._writers.discard(writer)
            if not self._writers:
                self._idle.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection stays."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))))
        self.asked.append(Asked(headers, body))
        reply = self._script(conversation_of(body))
        if reply.raw:
            writer.write(reply.raw)
            return False
        lines = [f"HTTP/1.1 {reply.status} As it is", "Transfer-Encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for part in reply.parts:
            if part == STALL:
                self.stalled.set()
                await reader.read()
                self.hung_up.set()
                return False
            if part == BREAK:
                await writer.drain()
                return False
            if part == SLOWLY:
                await asyncio.sleep(GAP_S)
            elif isinstance(part, asyncio.Event):
                await part.wait()
            elif isinstance(part, bytes):
                writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def model_server(script: Script) -> AsyncIterator[ModelServer]:
    """The server, while the block lasts."""
    server = ModelServer(script)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()
        await server.drop()
        await listening.wait_closed()


# Replies --------------------------------------------------------------------------------------------------------------


def event(piece: JsonValue) -> bytes:
    """One event of a stream."""
    return f"data: {json.dumps(piece)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def chunk(delta: Object | None = None, *, finish: str | None = None, usage: Object | None = None) -> bytes:
    """A piece of an answer, as OpenAI sends it."""
    choices: list[JsonValue] = [{"index": 0, "delta": dict(delta or {}), "finish_reason": finish}]
    return event(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "scripted",
            "choices": choices if usage is None else [],
            "usage": None if usage is None else dict(usage),
        }
    )


def pieces_of(turn: Turn) -> list[bytes]:
    """A turn in pieces, without its end."""
    half = len(turn.answer.text) // 2
    pieces = [chunk({"role": "assistant", "content": ""})]
    pieces += [chunk({"content": text}) for text in (turn.answer.text[:half], turn.answer.text[half:]) if text]
    for index, call in enumerate(turn.answer.calls):
        pieces.append(chunk({"tool_calls": [_begun(index, call)]}))
        for at in range(0, len(call.arguments), 40):
            written: Object = {"index": index, "function": {"arguments": call.arguments[at : at + 40]}}
            pieces.append(chunk({"tool_calls": [dict(written)]}))
    return pieces


def spoken(turn: Turn) -> Reply:
    """A turn as a whole stream; with the count of its tokens where it has one."""
    usage = turn.usage
    end = [chunk(finish=_FINISH[turn.stop])]
    if usage.input_tokens:
        counted: Object = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        end.append(chunk(usage=counted))
    return streamed(*pieces_of(turn), *end, DONE)


def streamed(*parts: Sent) -> Reply:
    """A stream of these parts."""
    return Reply(parts)


def failed(status: int, message: str, *, code: str = "", headers: Mapping[str, str] | None = None) -> Reply:
    """An error as OpenAI says it."""
    body = {"error": {"message": message, "type": "error", "code": code or None}}
    return Reply([json.dumps(body).encode()], status, {"Content-Type": "application/json", **(headers or {})})


def recorded(name: str) -> Reply:
    """A stream from the files, event by event."""
    text = (RECORDED / f"{name}.sse").read_bytes()
    return streamed(*(each + b"\n\n" for each in text.split(b"\n\n") if each.strip()))


# Scripts --------------------------------------------------------------------------------------------------------------


def plays(part: Part) -> Script:
    """Says over HTTP what a part says."""

    def script(messages: Sequence[Message]) -> Reply:
        said = part(messages)
        if isinstance(said, Exception):
            raise said
        return spoken(said)

    return script


def always(reply: Reply) -> Script:
    """Replies the same for ever."""
    return lambda _: reply


def at_first(*replies: Reply, then: Script) -> Script:
    """Replies each once, and then follows the other."""
    left = list(replies)
    return lambda messages: left.pop(0) if left else then(messages)


def endless(*parts: Sent) -> Iterable[Sent]:
    """The parts over and over."""
    for each in repeat(parts):
        yield from each


def conversation_of(body: Object) -> list[Message]:
    """A request's conversation in our words, as far as scripts need it: pictures are left out."""
    said: list[Message] = []
    names: dict[str, str] = {}
    messages = body.get("messages")
    for each in messages if isinstance(messages, list) else ():
        assert isinstance(each, dict)
        text = each.get("content")
        match each.get("role"):
            case "assistant":
                calls = tuple(_call(given) for given in _list(each.get("tool_calls")))
                names |= {call.id: call.name for call in calls}
                said.append(Answer(text=str(text or ""), calls=calls))
            case "tool":
                call_id = str(each["tool_call_id"])
                said.append(ToolAnswer(call_id=call_id, name=names[call_id], text=str(text)))
            case "system":
                said.append(Instruction(text=str(text)))
            case _ if isinstance(text, str):
                said.append(Request(text=text))
    return said


def _begun(index: int, call: ToolCall) -> JsonValue:
    return {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}


def _call(given: JsonValue) -> ToolCall:
    assert isinstance(given, dict)
    function = given["function"]
    assert isinstance(function, dict)
    return ToolCall(id=str(given["id"]), name=str(function["name"]), arguments=str(function["arguments"]))


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
