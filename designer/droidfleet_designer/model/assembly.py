"""Puts a turn together from the pieces of a stream. Pure; nothing in a piece is taken on trust.

Known forms beside OpenAI's: thoughts in fields of their own (DeepSeek, Qwen), which are not kept; calls without ids,
with one id for all, or all with the number 0 (Ollama); arguments as an object instead of its text; a message whole
instead of in pieces; reasons to stop in other words; no count of tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from droidfleet_designer.conversation import Answer, Stop, ToolCall, Turn, Usage
from droidfleet_designer.model.port import ModelUnavailableError
from droidfleet_designer.observation.lines import estimated_tokens

MAX_CHARACTERS = 400_000
"""Of one answer, thoughts included, which some servers do not count into its bound. One that goes on is cut off."""

CHARACTERS_A_TOKEN = 10
"""More than any text takes for long, calls with much white space included. Past the tokens that were allowed times
this, the server does not keep to the bound, and is cut off."""

MAX_CALLS = 100
"""Of one answer; later ones are left out, as after so many nothing is carried out anyhow."""

MAX_ID = 200
"""Characters of a call's id that are kept."""

MAX_COUNT = 10**9
"""Tokens that a server may count in one answer; more is no count."""

_STOPS = {
    "stop": Stop.DONE,
    "tool_calls": Stop.CALLS,
    "function_call": Stop.CALLS,
    "length": Stop.LENGTH,
    "max_tokens": Stop.LENGTH,
    "content_filter": Stop.REFUSED,
    "refusal": Stop.REFUSED,
    "safety": Stop.REFUSED,
}


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


class Assembly:
    """One turn in the making. ``known``: the ids of earlier calls, so that no id stands for two."""

    def __init__(self, *, known: Collection[str], max_output_tokens: int) -> None:
        self._known = set(known)
        self._max_output_tokens = max_output_tokens
        self._texts: list[str] = []
        self._refused = False
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._reason: str | None = None
        self._usage: Usage | None = None
        self._said = 0
        self._thought = 0
        self._tokens = 0.0
        self._began = False

    @property
    def full(self) -> bool:
        """Whether it is longer than any answer: what comes after it is not read."""
        return self._said > self._max_output_tokens * CHARACTERS_A_TOKEN or self._said + self._thought > MAX_CHARACTERS

    @property
    def whole(self) -> bool:
        """Whether the server has said that the answer ended. A count of tokens may follow."""
        return self._reason is not None

    def add(self, piece: Mapping[str, object]) -> str:
        """Adds a piece as it came; the text that it brought."""
        if (usage := _usage(piece.get("usage"))) is not None:
            self._usage = usage
        choices = piece.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        self._began = True
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._reason = reason
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            return ""
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str):
            self._thought += self._counted(thought)
        self._add_calls(delta.get("tool_calls"))
        text = ""
        for said, refused in ((delta.get("content"), False), (delta.get("refusal"), True)):
            if isinstance(said, str) and said:
                text += said
                self._refused |= refused
        self._texts.append(text)
        self._said += self._counted(text)
        return whole_characters(text)

    def turn(self, *, input_tokens: int) -> Turn:
        """The whole. ``input_tokens``: an estimate, for a server that does not count.

        Raises:
            ModelUnavailableError: the stream ended before the answer did.
        """
        if not self._began:
            raise ModelUnavailableError(
                "the model's server sent no answer in the form of chat completions.",
                hint="Check model_url: most end in /v1.",
            )
        if not self.whole and not self.full:
            raise ModelUnavailableError("the answer broke off in the middle.")
        answer = Answer(text=whole_characters("".join(self._texts)), calls=self._made())
        usage = self._usage or Usage(input_tokens=input_tokens, output_tokens=self._estimated(), estimated=True)
        return Turn(answer=answer, stop=self._stop(answer), usage=usage)

    def _estimated(self) -> int:
        """Tokens of the answer, rather too many than too few; not past the bound where the server kept to it."""
        tokens = math.ceil(self._tokens)
        return tokens if self.full or self._thought else min(tokens, self._max_output_tokens)

    def _counted(self, text: str) -> int:
        """The length of a piece, whose tokens are added up for a server that does not count."""
        self._tokens += estimated_tokens(text)
        return len(text)

    def _stop(self, answer: Answer) -> Stop:
        if self.full:
            return Stop.LENGTH
        stop = _STOPS.get((self._reason or "").lower(), Stop.DONE)
        if stop is Stop.DONE and self._refused and not answer.calls:
            return Stop.REFUSED
        if stop in (Stop.DONE, Stop.CALLS):
            return Stop.CALLS if answer.calls else Stop.DONE
        return stop

    def _add_calls(self, pieces: object) -> None:
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            function = piece.get("function")
            function = function if isinstance(function, dict) else {}
            name, arguments = function.get("name"), _text_of(function.get("arguments"))
            call = self._meant(piece, name if isinstance(name, str) else "")
            if call is None:
                continue
            if isinstance(name, str) and not call.name:
                call.name = name[:MAX_ID]
            call.arguments += arguments
            self._said += self._counted(arguments)

    def _meant(self, piece: Mapping[str, object], name: str) -> _Call | None:
        """The call that a piece belongs to: by its number, unless it begins a new one under an old number. None: one
        too many."""
        index, call_id = piece.get("index"), piece.get("id")
        call_id = call_id[:MAX_ID] if isinstance(call_id, str) else ""
        if not isinstance(index, int):
            index = len(self._calls) if name or not self._calls else len(self._calls) - 1
        known = self._by_index.get(index)
        if known is not None and not (name and known.name and _another(known, name[:MAX_ID], call_id)):
            known.id = known.id or call_id
            return known
        if len(self._calls) >= MAX_CALLS:
            return None
        made = self._by_index[index] = _Call(id=call_id)
        self._calls.append(made)
        return made

    def _made(self) -> tuple[ToolCall, ...]:
        calls: list[ToolCall] = []
        taken = set(self._known)
        for number, call in enumerate(self._calls, 1):
            if not (call.name or call.arguments):
                continue
            call_id = whole_characters(call.id) or f"call-{number}"
            again = 2
            unique = call_id
            while unique in taken:
                unique, again = f"{call_id}-{again}", again + 1
            taken.add(unique)
            name, arguments = whole_characters(call.name), whole_characters(call.arguments)
            calls.append(ToolCall(id=unique, name=name, arguments=arguments))
        return tuple(calls)


def _another(known: _Call, name: str, call_id: str) -> bool:
    """Whether a piece with a name begins a call of its own: it has another name or id, or the one before it is whole.
    Servers also repeat both with each piece of one call."""
    if name != known.name or (call_id and known.id and call_id != known.id):
        return True
    return known.arguments.rstrip().endswith("}") and _is_object(known.arguments)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def whole_characters(text: str) -> str:
    """The text with halves of characters joined, or replaced where the other half is missing: JSON can say them, and
    nothing else can."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text_of(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else ""


def _usage(counted: object) -> Usage | None:
    if not isinstance(counted, dict):
        return None
    first, second = counted.get("prompt_tokens"), counted.get("completion_tokens")
    if not (isinstance(first, int) and isinstance(second, int)) or not (
        0 <= first < MAX_COUNT and 0 <= second < MAX_COUNT
    ):
        return None
    return Usage(input_tokens=first, output_tokens=second) if first or second else None
