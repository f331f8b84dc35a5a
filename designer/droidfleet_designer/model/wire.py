"""A conversation in the words of chat completions. Pure.

Servers refuse a conversation whose form is not exact, and an exploration would end by that. So what a model once wrote
is sent back in a form that every server takes: arguments that are no JSON object as an empty one, a name that is none
with its odd characters replaced. The answers to a turn's calls stand directly behind it, pictures after all of them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import assert_never

from pydantic import JsonValue

from droidfleet_designer.conversation import Answer, Instruction, Message, Picture, Request, ToolAnswer, ToolCall
from droidfleet_designer.model.port import ToolSpec

Object = dict[str, JsonValue]

MAX_NAME = 64
"""Characters of a tool's name that servers take."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NAMELESS = "unnamed"


def messages_of(conversation: Sequence[Message], *, sees: bool, thoughts: bool = False) -> list[Object]:
    """The ``messages`` of a request. ``sees``: pictures are sent. ``thoughts``: answers have the field of thoughts,
    which is empty."""
    sent: list[Object] = []
    pictures: list[Picture] = []
    for message in conversation:
        if not isinstance(message, ToolAnswer | Picture):
            sent += map(_picture, pictures)
            pictures.clear()
        match message:
            case Instruction(text=text):
                sent.append({"role": "system", "content": text})
            case Request(text=text):
                sent.append({"role": "user", "content": text})
            case Answer():
                sent += [each | ({"reasoning_content": ""} if thoughts else {}) for each in _answer(message)]
            case ToolAnswer(call_id=call_id, text=text):
                sent.append({"role": "tool", "tool_call_id": call_id, "content": text})
            case Picture():
                pictures += [message] if sees else []
            case _ as never:
                assert_never(never)
    return sent + [_picture(each) for each in pictures]


def tools_of(specs: Sequence[ToolSpec]) -> list[Object]:
    """The ``tools`` of a request."""
    return [
        {
            "type": "function",
            "function": {"name": each.name, "description": each.description, "parameters": dict(each.parameters)},
        }
        for each in specs
    ]


def _answer(answer: Answer) -> list[Object]:
    """What the model said; nothing where it said nothing: some servers refuse an empty answer."""
    if not answer.calls:
        return [{"role": "assistant", "content": answer.text}] if answer.text else []
    return [{"role": "assistant", "content": answer.text, "tool_calls": [_call(each) for each in answer.calls]}]


def _call(call: ToolCall) -> JsonValue:
    name = _NOT_IN_A_NAME.sub("_", call.name)[:MAX_NAME] or _NAMELESS
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": _arguments(call.arguments)}}


def _arguments(text: str) -> str:
    try:
        return text if isinstance(json.loads(text, parse_constant=_no_json), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def _no_json(constant: str) -> None:
    """Python reads NaN and infinities, and nobody else does."""
    raise ValueError(constant)


def _picture(picture: Picture) -> Object:
    data = base64.b64encode(picture.data).decode()
    return {
        "role": "user",
        "content": [
            {"type": "text", "text": picture.caption},
            {"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{data}"}},
        ],
    }
