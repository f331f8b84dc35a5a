"""A model that plays a part, well or badly. What it says depends on the conversation alone, so that the process around
it can be killed, and it is asked again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from pydantic import JsonValue

from droidfleet_designer.conversation import Answer, Message, Picture, Stop, ToolAnswer, ToolCall, Turn, Usage
from droidfleet_designer.model.port import Model, ToolSpec
from droidfleet_shared.clock import Deadline
from support.tokens import tokens

Wanted = tuple[str, str]
"""A call: the tool, and its arguments as text."""

Saying = Turn | Exception
Part = Callable[[Sequence[Message]], Saying]
"""What the model says next in a conversation."""


class ScriptedModel(Model):
    """``heard_of``: the conversations that it was asked in; ``outputs``: how long each answer might have been."""

    def __init__(self, part: Part, *, sees: bool = False) -> None:
        self._part = part
        self._sees = sees
        self.heard_of: list[Sequence[Message]] = []
        self.outputs: list[int] = []

    @property
    def name(self) -> str:
        return "scripted"

    @property
    def sees(self) -> bool:
        return self._sees

    async def answer(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec],
        max_output_tokens: int,
        deadline: Deadline,
        heard: Callable[[str], None],
    ) -> Turn:
        self.heard_of.append(tuple(messages))
        self.outputs.append(max_output_tokens)
        said = self._part(messages)
        if isinstance(said, Exception):
            raise said
        heard(said.answer.text)
        if said.usage != Usage():
            return said
        read = sum(tokens(_text(each)) for each in messages) + sum(
            tokens(json.dumps(each.parameters)) for each in tools
        )
        written = min(tokens(_text(said.answer)), max_output_tokens)
        return said.model_copy(update={"usage": Usage(input_tokens=read, output_tokens=written)})


def wants(*calls: Wanted, text: str = "I go on.", stop: Stop = Stop.CALLS, ids: str = "call") -> Turn:
    """A turn with these calls. ``ids``: how their ids begin."""
    made = tuple(ToolCall(id=f"{ids}-{place}", name=name, arguments=given) for place, (name, given) in enumerate(calls))
    return Turn(answer=Answer(text=text, calls=made), stop=stop, usage=Usage())


def says(text: str, stop: Stop = Stop.DONE) -> Turn:
    """A turn of nothing but words."""
    return wants(text=text, stop=stop)


def call(name: str, **arguments: JsonValue) -> Wanted:
    """A call with whole arguments."""
    return name, json.dumps(arguments)


def always(said: Saying) -> Part:
    """Says the same whatever it is told."""
    return lambda _: said


def turns_of(messages: Sequence[Message]) -> int:
    """How often the model has spoken."""
    return sum(isinstance(each, Answer) for each in messages)


def in_turn(*parts: Part) -> Part:
    """Plays one part after the other, the last for good."""
    return lambda messages: parts[min(turns_of(messages), len(parts) - 1)](messages)


def on(words: str, tool: str, **arguments: JsonValue) -> Part:
    """Calls a tool on the line of the newest screen in which the words stand; looks, if there is none."""

    def part(messages: Sequence[Message]) -> Turn:
        found = _newest(messages, words)
        ids = f"call-{turns_of(messages)}"
        return wants(call("screen"), ids=ids) if found is None else wants(call(tool, **found, **arguments), ids=ids)

    return part


def does(*calls: Wanted) -> Part:
    """Makes these calls, with ids of their own."""
    return lambda messages: wants(*calls, ids=f"call-{turns_of(messages)}")


def _newest(messages: Sequence[Message], words: str) -> Mapping[str, JsonValue] | None:
    answers = [each.text for each in messages if isinstance(each, ToolAnswer)]
    shown = [each for each in answers if re.search(r"^Screen \d+:", each, re.MULTILINE)]
    if not shown:
        return None
    number = re.findall(r"^Screen (\d+):", shown[-1], re.MULTILINE)[-1]
    line = re.search(rf"^(\d+) .*{re.escape(words)}", shown[-1], re.MULTILINE)
    return {"screen": int(number), "element": int(line[1])} if line is not None else None


def _text(message: Message) -> str:
    if isinstance(message, Picture):
        return message.caption
    calls = message.calls if isinstance(message, Answer) else ()
    return " ".join([message.text, *(f"{each.name} {each.arguments}" for each in calls)])
