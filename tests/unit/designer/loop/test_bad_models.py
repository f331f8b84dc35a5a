"""Whatever a model does, the exploration ends in a defined state, within its budget, with the phone given back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_designer.conversation import Message, Stop, Turn, Usage
from droidfleet_designer.log import Ending
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model.port import (
    ModelBusyError,
    ModelDeniedError,
    ModelRefusedError,
    ModelUnavailableError,
)
from support.exploration_judging import assert_whole
from support.explorations import TASK, WRONG, Trip
from support.scripted_model import Part, Saying, always, call, does, in_turn, on, says, turns_of, wants

SUBMIT = does(call("submit_task", summary="Opens the tea.", task=TASK))
SUBMIT_WRONG = does(call("submit_task", summary="Opens the tea.", task=WRONG))
LOOK = does(call("screen"))
CUT = always(wants(("tap", '{"screen": 1, "elem'), stop=Stop.LENGTH))
CUT_AND_SAYS_ALL_IS_WELL = always(wants(("tap", '{"screen": 1, "elem')))
MALFORMED = always(wants(("tap", '{"screen": listt"}')))


def in_a_row(count: int, part: Part, then: Part) -> Part:
    return in_turn(*[part] * count, then)


def at_first(*said: Saying) -> Part:
    """Says or raises each once, and then works."""
    left = list(said)

    def part(messages: Sequence[Message]) -> Saying:
        return left.pop(0) if left else SUBMIT(messages)

    return part


def wanders(messages: Sequence[Message]) -> Saying:
    """Never does the same twice, and never ends."""
    return does(call("scroll", direction="DOWN", max_scrolls=1 + turns_of(messages) % 20))(messages)


def rambles(messages: Sequence[Message]) -> Saying:
    calls = wants(call("find_text", text=f"{turns_of(messages)} {'very ' * 30}long"))
    return calls.model_copy(update={"usage": Usage(input_tokens=9_000, output_tokens=900)})


@dataclass(frozen=True)
class Bad:
    """A behaviour, and the end that it leads to."""

    part: Part
    ends: str
    """The code; empty: with a draft."""

    limits: Limits | None = None


BAD = {
    "cut JSON": Bad(CUT, "CALL_CUT"),
    "cut JSON that is said to be whole": Bad(CUT_AND_SAYS_ALL_IS_WELL, "CALL_CUT"),
    "cut JSON, and then better": Bad(in_a_row(3, CUT, SUBMIT), ""),
    "malformed JSON": Bad(MALFORMED, "CALL_MALFORMED"),
    "malformed JSON, and then better": Bad(in_a_row(3, MALFORMED, SUBMIT), ""),
    "malformed and cut in turns, with a right call now and then": Bad(
        lambda messages: (CUT, MALFORMED, wanders)[turns_of(messages) % 3](messages), "BUDGET_SPENT"
    ),
    "a tool that is not there": Bad(does(call("run_shell", command="reboot")), "UNKNOWN_TOOL"),
    "arguments that no tool takes": Bad(does(call("tap", where="the middle")), "BAD_ARGUMENTS"),
    "the same for ever": Bad(LOOK, "STAGNATION"),
    "a circle for ever": Bad(
        lambda messages: (does(call("back")), on("Green tea", "tap"))[turns_of(messages) % 2](messages), "STAGNATION"
    ),
    "an old number for ever": Bad(does(call("tap", screen=99, element=1)), "STAGNATION"),
    "something else for ever": Bad(wanders, "TURN_LIMIT", Limits(max_turns=20)),
    "a refusal": Bad(always(says("I cannot help with that.", Stop.REFUSED)), "MODEL_REFUSED"),
    "a refusal beside a call": Bad(always(wants(call("back"), stop=Stop.REFUSED)), "MODEL_REFUSED"),
    "an empty answer for ever": Bad(always(says("")), "NO_CALL"),
    "an empty answer once": Bad(at_first(says("")), ""),
    "the task as text for ever": Bad(always(says('{"task": {}}')), "NO_CALL"),
    "words without an end": Bad(always(says("and so on", Stop.LENGTH)), "OUTPUT_CUT"),
    "a rate limit for ever": Bad(always(ModelBusyError("too many requests", retry_after_s=5)), "MODEL_BUSY"),
    "a rate limit that asks for a day": Bad(always(ModelBusyError("quota", retry_after_s=86_400)), "MODEL_BUSY"),
    "a rate limit for a while": Bad(at_first(*[ModelBusyError("slowly", retry_after_s=20)] * 3), ""),
    "an error of the server for ever": Bad(always(ModelUnavailableError("500")), "MODEL_UNAVAILABLE"),
    "a broken stream once": Bad(at_first(ModelUnavailableError("the stream broke")), ""),
    "a key that is wrong": Bad(always(ModelDeniedError("401")), "MODEL_DENIED"),
    "a request that it does not take": Bad(always(ModelRefusedError("400")), "MODEL_REFUSED_REQUEST"),
    "a conversation that is always too long": Bad(
        always(ModelRefusedError("8k", too_long=True)), "MODEL_REFUSED_REQUEST"
    ),
    "a conversation that is too long once": Bad(at_first(ModelRefusedError("8k", too_long=True)), ""),
    "a defect": Bad(always(KeyError("choices")), "INTERNAL"),
    "a hundred calls in one turn": Bad(
        in_turn(does(*[call("find_text", text=f"tea {place}") for place in range(100)]), SUBMIT), ""
    ),
    "a task that is wrong for ever": Bad(SUBMIT_WRONG, "NO_ACCEPTABLE_DRAFT"),
    "a task that is wrong three times": Bad(in_a_row(3, SUBMIT_WRONG, SUBMIT), ""),
    "more tokens than there are": Bad(rambles, "BUDGET_SPENT", Limits(max_tokens=60_000)),
    "more money than there is": Bad(rambles, "BUDGET_SPENT", Limits(max_money=0.5, prices=(10.0, 30.0))),
    "a budget that is too small for one turn": Bad(SUBMIT, "BUDGET_SPENT", Limits(max_tokens=2_000)),
    "what the screen tells it to": Bad(in_a_row(3, on("Delete account", "tap"), SUBMIT), ""),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_a_bad_behaviour_ends_in_a_defined_state(bad: Bad) -> None:
    trip = Trip(bad.part, limits=bad.limits, allow=None)

    end = await trip.run()

    assert (end.ending, end.code) == (Ending.FAILED if bad.ends else Ending.DRAFTED, bad.ends), end
    assert_whole(trip, end)


ARGUMENTS = st.text(max_size=12) | st.sampled_from(
    [
        "",
        "{",
        "{}",
        "null",
        '{"screen":1,"element":1}',
        '{"package":"com.example.chat"}',
        '{"direction":"DOWN"}',
        '{"task":{"steps":[1]},"summary":"x"}',
        '{"task":{}}',
    ]
)
TOOLS = st.sampled_from(["screen", "tap", "back", "type_text", "scroll", "submit_task", "open_app", "nothing"])
STOPS = st.sampled_from(list(Stop))
CALLING = st.builds(
    lambda calls, stop: wants(*calls, stop=stop), st.lists(st.tuples(TOOLS, ARGUMENTS), max_size=4), STOPS
)
SAYING = st.builds(says, st.text(max_size=20), STOPS)
FAILING = st.sampled_from(
    [ModelBusyError("busy"), ModelUnavailableError("broken"), ModelRefusedError("long", too_long=True)]
)
SAID = st.lists(CALLING | SAYING | FAILING, min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(SAID)
async def test_any_mixture_of_answers_ends_in_a_defined_state(answers: list[Turn | Exception]) -> None:
    endless = itertools.cycle(answers)
    trip = Trip(lambda _: next(endless), limits=Limits(max_turns=20), allow=None)

    assert_whole(trip, await trip.run())
