"""The conversation is made of the log alone; when it grows, old screens shrink and what was used of them stays."""

from __future__ import annotations

from itertools import pairwise

import pytest

from droidfleet_designer.conversation import Answer, Message, ToolAnswer
from droidfleet_designer.log import Entry, Resumed, Spoke, ToolEnded
from droidfleet_designer.loop.budget import estimated
from droidfleet_designer.loop.history import conversation
from droidfleet_designer.loop.screens import shortened, told_of
from droidfleet_designer.observation.lines import MAX_TOKENS
from droidfleet_designer.tools.catalogue import specs
from support.explorations import TASK, Trip
from support.scripted_model import Part, ScriptedModel, call, does, in_turn, on
from support.tokens import tokens

TOOLS = specs("en", allow_points=False)
SUBMIT = does(call("submit_task", summary="Opens the tea.", task=TASK))
WANDER = (on("Green tea", "tap"), does(call("back"), call("find_text", text="tea")))


async def entries_of(*parts: Part) -> list[Entry]:
    trip = Trip(in_turn(*parts, SUBMIT))
    await trip.run()
    return trip.log.kept


def texts(entries: list[Entry], most_tokens: int) -> list[str]:
    """The tools' answers."""
    messages, _ = conversation(entries, tools=TOOLS, shot=None, most_tokens=most_tokens)
    return [each.text for each in messages if isinstance(each, ToolAnswer)]


async def test_what_the_model_was_told_is_made_again_from_the_log() -> None:
    trip = Trip(in_turn(does(call("screen")), *WANDER, SUBMIT))
    await trip.run()
    assert isinstance(trip.model, ScriptedModel)
    spoken = [place for place, each in enumerate(trip.log.kept) if isinstance(each, Spoke)]

    again = [conversation(trip.log.kept[:place], tools=TOOLS, shot=None, most_tokens=40_000)[0] for place in spoken]

    assert [list(each) for each in trip.model.heard_of] == again


async def test_nothing_is_left_out_while_there_is_room() -> None:
    entries = await entries_of(does(call("screen")), *WANDER)

    assert texts(entries, 40_000) == [each.text for each in entries if isinstance(each, ToolEnded)]


async def test_old_screens_shrink_to_a_line_and_the_newest_stays_whole() -> None:
    entries = await entries_of(does(call("screen")), *WANDER)
    screens = [each for each in entries if isinstance(each, ToolEnded) and each.snapshot]

    *old, newest = [text for text in texts(entries, 1) if "Screen " in text]

    assert newest == screens[-1].text
    assert all(len(text) < len(whole.text) for text, whole in zip(old, screens[:-1], strict=True))
    assert all("left out by now" in text for text in old)


async def test_the_lines_that_were_used_stay() -> None:
    entries = await entries_of(does(call("screen")), *WANDER)

    first = texts(entries, 1)[0]

    assert '"Green tea"' in first
    assert "Delete account" not in first


async def test_what_was_said_stays_the_same_for_several_turns() -> None:
    entries = await entries_of(does(call("screen")), *WANDER * 2, *[does(call("find_text", text="tea 3")), *WANDER] * 2)
    spoken = [place for place, each in enumerate(entries) if isinstance(each, Spoke)][1:]
    _, short = conversation(entries, tools=TOOLS, shot=None, most_tokens=1)
    told = [conversation(entries[:place], tools=TOOLS, shot=None, most_tokens=short + 700)[0] for place in spoken]

    changed = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(told))

    assert 0 < changed <= len(spoken) // 2


async def test_every_call_has_one_answer_before_anything_else_is_said() -> None:
    entries = await entries_of(does(call("screen")), *WANDER)
    place = next(place for place, each in enumerate(entries) if isinstance(each, Spoke) and len(each.calls) == 2)
    entries.insert(place + 1, Resumed())

    messages, _ = conversation(entries, tools=TOOLS, shot=None, most_tokens=40_000)

    for at, message in enumerate(messages):
        if isinstance(message, Answer):
            answers = messages[at + 1 : at + 1 + len(message.calls)]
            assert [each.call_id for each in answers if isinstance(each, ToolAnswer)] == [
                each.id for each in message.calls
            ]


async def test_a_conversation_is_estimated_rather_too_long_than_too_short() -> None:
    entries = await entries_of(does(call("screen")), *WANDER)
    messages, estimate = conversation(entries, tools=TOOLS, shot=None, most_tokens=40_000)

    exact = sum(tokens(_text(each)) for each in messages)

    assert exact <= estimated(messages, ()) <= 2.5 * exact
    assert estimate > estimated(messages, ())


def _text(message: Message) -> str:
    calls = message.calls if isinstance(message, Answer) else ()
    return " ".join([getattr(message, "text", ""), *(f"{each.name} {each.arguments}" for each in calls)])


@pytest.mark.parametrize("text", ["", "3 devices:", "tap: done.\nScreen 6: com.example.shop\nlines"])
def test_a_text_without_that_screen_is_left_alone(text: str) -> None:
    assert shortened(text, "s7", keep={1}, note="(left out)") == text


def test_a_screen_is_found_in_what_a_tool_told() -> None:
    told = told_of('tap: done.\nScreen 12: com.example.shop\nquoted\n1 button "OK"', "s12")

    assert (told.before, told.header, told.lines) == (
        "tap: done.",
        "Screen 12: com.example.shop",
        ("quoted", '1 button "OK"'),
    )


def test_the_longest_conversation_has_room_for_several_screens() -> None:
    assert MAX_TOKENS * 6 < 40_000
