"""What the model is told, made of the log's entries. Pure: the same entries, the same conversation, in any process.

When it grows too long, the oldest screens are told in one line, some at once, so that the beginning stays the same for
several turns (servers remember it, and take less for it). The newest screen stays whole, and of the others the lines
that were used, which a task needs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from droidfleet_designer.conversation import Answer, Instruction, Message, Picture, Request, ToolAnswer
from droidfleet_designer.log import Began, Entry, Resumed, Spoke, Told, ToolBegan, ToolEnded
from droidfleet_designer.loop.budget import estimated
from droidfleet_designer.loop.screens import shortened
from droidfleet_designer.loop.telling import told
from droidfleet_designer.model.port import ToolSpec
from droidfleet_designer.observation.quoting import quoted
from droidfleet_designer.ports import Shot
from droidfleet_designer.prompts.instruction import instruction

AT_ONCE: Final = 4
"""Screens that are shortened at once."""


def newest_picture(entries: Sequence[Entry]) -> str:
    """The digest of the picture of the newest screen; empty: there is none. An older one is not shown again."""
    newest = next((each for each in reversed(entries) if isinstance(each, ToolEnded) and each.snapshot), None)
    return newest.picture if newest is not None else ""


def conversation(
    entries: Sequence[Entry], *, tools: Sequence[ToolSpec], shot: Shot | None, most_tokens: int
) -> tuple[list[Message], int]:
    """The conversation, at most so long if older screens are all that can be shortened, and its length in tokens.

    ``shot``: the picture of the newest screen, for a model that sees; None: there is none to show.
    """
    seen = [place for place, each in enumerate(entries) if isinstance(each, ToolEnded) and each.snapshot]
    shorten = 0
    while True:
        messages = _messages(entries, shorten=frozenset(seen[:shorten]), newest=seen[-1] if seen else -1, shot=shot)
        tokens = estimated(messages, tools)
        if tokens <= most_tokens or shorten >= len(seen) - 1:
            return messages, tokens
        shorten = min(shorten + AT_ONCE, len(seen) - 1)


def _messages(entries: Sequence[Entry], *, shorten: frozenset[int], newest: int, shot: Shot | None) -> list[Message]:
    used = _used(entries)
    language = "en"
    messages: list[Message] = []
    waiting: list[Message] = []
    unanswered = 0
    for place, entry in enumerate(entries):
        match entry:
            case Began():
                language = entry.brief.settings.language
                messages += [Instruction(text=instruction(language)), Request(text=_request(entry))]
            case Spoke():
                unanswered = len(entry.calls)
                if entry.text or entry.calls:
                    messages.append(Answer(text=entry.text, calls=entry.calls))
            case ToolEnded():
                unanswered -= 1
                text = entry.text
                if place in shorten:
                    note = told("LEFT_OUT", language)
                    text = shortened(text, entry.snapshot, keep=used.get(entry.snapshot, ()), note=note)
                messages.append(ToolAnswer(call_id=entry.call_id, name=entry.name, text=text))
                if shot is not None and place == newest:
                    caption = told("PICTURE", language, number=entry.snapshot[1:])
                    waiting.append(Picture(caption=caption, media_type=shot.media_type, data=shot.data))
            case Told():
                waiting.append(Request(text=entry.text))
            case Resumed():
                waiting.append(Request(text=told("RESUMED", language)))
            case _:
                pass
        if not unanswered:
            messages += waiting
            waiting = []
    return messages


def _request(began: Began) -> str:
    brief = began.brief
    settings = brief.settings.model_dump(mode="json", by_alias=True, exclude_none=True)
    return told(
        "BRIEF",
        brief.settings.language,
        description=brief.description,
        device=quoted(brief.device),
        settings=json.dumps(settings, ensure_ascii=False),
        turns=began.max_turns,
        tokens=f"{began.max_tokens:,}",
    )


def _used(entries: Sequence[Entry]) -> Mapping[str, set[int]]:
    """The numbers of the elements that calls named, by the look that listed them."""
    used: dict[str, set[int]] = defaultdict(set)
    for entry in entries:
        if isinstance(entry, ToolBegan):
            arguments: dict[str, JsonValue] = json.loads(entry.arguments_json)
            if isinstance(number := arguments.get("element"), int):
                used[f"s{arguments.get('screen')}"].add(number)
    return used
