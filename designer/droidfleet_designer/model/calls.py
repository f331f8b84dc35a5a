"""Reads the arguments of a tool call: whole, cut off, or malformed. Pure.

A call is carried out only when its arguments are one whole JSON object; a part of one never is. A text that could still
have become an object is *cut* (the model ran out of output, or its server lost the rest); any other is *malformed*.
The two are told apart because a model mends them differently: by saying less, or by writing it properly.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder

from pydantic import JsonValue

from droidfleet_designer.conversation import Stop, ToolCall
from droidfleet_shared.protocol.jsontext import parse

MAX_ARGUMENT_BYTES = 256 * 1024
"""Of one call: room for a task of the largest size that a person could review, and no more."""


@dataclass(frozen=True, slots=True)
class WholeCall:
    """``arguments``: the object as the model wrote it; which fields it must have is the tool's to say."""

    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class CutCall:
    """The arguments break off. ``reason``: a sentence for the model."""

    reason: str


@dataclass(frozen=True, slots=True)
class MalformedCall:
    """The arguments are complete, and no JSON object. ``reason``: a sentence for the model."""

    reason: str


def read_call(call: ToolCall, stop: Stop) -> WholeCall | CutCall | MalformedCall:
    """What the call's arguments are. ``stop`` is why the model stopped, which only words the reason: servers cut calls
    and say that all is well. No text at all is an object without fields, as some servers send it, unless the output was
    cut."""
    text = call.arguments.strip()
    if not text and stop is not Stop.LENGTH:
        return WholeCall({})
    if len(text.encode(errors="replace")) > MAX_ARGUMENT_BYTES:
        return MalformedCall(f"The arguments are longer than {MAX_ARGUMENT_BYTES // 1024} KiB.")
    if _breaks_off(text):
        why = "because the output was too long" if stop is Stop.LENGTH else "and the rest never came"
        return CutCall(f"The arguments break off after {len(text)} characters, {why}. Nothing was done.")
    parsed = parse(text, max_bytes=MAX_ARGUMENT_BYTES)
    if parsed.findings:
        said = parsed.findings[0].issue()
        return MalformedCall(f"The arguments are no valid JSON: {said.message} Nothing was done.")
    if not isinstance(parsed.value, dict):
        return MalformedCall("The arguments are no JSON object. Nothing was done.")
    return WholeCall(parsed.value)


_LAST_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,4})?$")
_WORD = "-+." + string.ascii_letters + string.digits
_LITERALS = ("true", "false", "null")
_BEGUN_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d*)?)?")


def _breaks_off(text: str) -> bool:
    """Whether more text could make it one JSON object."""
    if not text.startswith("{"):
        return not text
    try:
        JSONDecoder(strict=False).raw_decode(text)
    except JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or _at_the_end(text, error)
    except RecursionError:
        pass
    return False


def _at_the_end(text: str, error: JSONDecodeError) -> bool:
    """Whether the reader stumbled over nothing but the end: of the text, of an escape, of a literal, of a number."""
    if error.msg.startswith("Invalid"):
        # The reader wants to see what follows an escape.
        found = _LAST_ESCAPE.search(text)
        return found is not None and found.start() <= error.pos + 1
    start = len(text.rstrip(_WORD))
    if error.pos < start:
        return False
    word = text[start:]
    begun = any(literal.startswith(word) for literal in _LITERALS)
    return begun or _BEGUN_NUMBER.fullmatch(word) is not None
