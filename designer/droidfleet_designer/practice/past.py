"""What was said so far, read back from the conversation: what is wanted, and what each call was for. Pure.

The planner remembers nothing. A call's id says which wish it served and how, and the conversation gives it back, so
that any process can go on with any exploration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from pydantic import JsonValue

from droidfleet_designer.conversation import Answer, Instruction, Message, Request, ToolAnswer
from droidfleet_designer.loop.telling import template
from droidfleet_designer.practice.reading import Shown, shown_in

LANGUAGES = ("en", "zh")


class Purpose(StrEnum):
    """What a call was for."""

    LOOK = "look"
    HOME = "home"
    """To find an app on the launcher."""
    LAUNCH = "launch"
    """A tap on the app's icon there."""
    OPEN = "open"
    CLEAR = "clear"
    """A tap on what closes something that lies in the way."""
    REVEAL = "reveal"
    """A tap on what brings up the field for searching."""
    SCROLL = "scroll"
    WAIT = "wait"
    ACT = "act"
    """The wish itself."""
    SUBMIT = "submit"


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made. ``wish``: the place of the clause that it served. ``shown``: the screen in its answer."""

    wish: int
    purpose: Purpose
    arguments: Mapping[str, JsonValue]
    answer: str
    done: bool
    shown: Shown | None

    @property
    def element(self) -> int | None:
        """The number of the line that was acted on."""
        number = self.arguments.get("element")
        return number if isinstance(number, int) else None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the first request says."""

    description: str
    device: str
    language: str
    settings: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Past:
    """A conversation. ``wanted``: None: nobody asked for a task. ``turns``: answers so far. ``hurry``: it must come to
    an end now."""

    wanted: Wanted | None
    made: tuple[Made, ...]
    turns: int
    hurry: bool


_ID = re.compile(r"practice-\d+-(\d+)-([a-z]+)")


def call_id(turn: int, wish: int, purpose: Purpose) -> str:
    """The id of a turn's one call."""
    return f"practice-{turn}-{wish}-{purpose}"


def past_of(messages: Sequence[Message]) -> Past:
    """Reads a conversation back."""
    requests = [each.text for each in messages if isinstance(each, Request)]
    calls = {call.id: call for each in messages if isinstance(each, Answer) for call in each.calls}
    made: list[Made] = []
    for each in messages:
        if not isinstance(each, ToolAnswer) or each.call_id not in calls:
            continue
        found = _ID.fullmatch(each.call_id)
        if found is not None and found[2] in {purpose.value for purpose in Purpose}:
            made.append(_made(int(found[1]), Purpose(found[2]), calls[each.call_id].arguments, each))
    hurry = any(text == template("LAST_TURNS", language) for text in requests for language in LANGUAGES)
    wanted = _wanted(requests[0]) if requests and any(isinstance(each, Instruction) for each in messages) else None
    return Past(wanted, tuple(made), sum(isinstance(each, Answer) for each in messages), hurry)


def _made(wish: int, purpose: Purpose, arguments: str, answer: ToolAnswer) -> Made:
    given = json.loads(arguments)
    return Made(
        wish,
        purpose,
        given if isinstance(given, dict) else {},
        answer.text,
        answer.text.startswith(f"{answer.name}: done"),
        shown_in(answer.text),
    )


def _wanted(request: str) -> Wanted | None:
    for language in LANGUAGES:
        found = _brief(language).fullmatch(request)
        if found is None:
            continue
        settings = json.loads(found["settings"])
        return Wanted(found["description"], json.loads(found["device"]), language, settings)
    return None


@cache
def _brief(language: str) -> re.Pattern[str]:
    """The request that begins an exploration, as the loop words it."""
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*)", re.escape(template("BRIEF", language)))
    return re.compile(pattern, re.DOTALL)
