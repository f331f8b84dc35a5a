"""What a turn of an exploration takes beside the model and the phone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import cast

from benchmarks.figures import Figure, median_ms
from droidfleet_designer.conversation import Message, Stop, ToolCall, Turn, Usage
from droidfleet_designer.log import Entry, OutcomeKind, Spoke, ToolBegan, ToolEnded
from droidfleet_designer.loop.budget import conversation_room
from droidfleet_designer.loop.deciding import next_move
from droidfleet_designer.loop.history import conversation
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.loop.state import state_of
from droidfleet_designer.observation.observe import observe
from droidfleet_designer.tools.catalogue import specs
from droidfleet_shared.protocol.effects import effect_words
from droidfleet_shared.screen.snapshot import snapshot_of
from support.explorations import Trip
from support.known_screens import scenario_screens, size_of
from support.scripted_model import ScriptedModel, call, does, turns_of

TURNS = 40
LIMITS = Limits(max_turns=TURNS, max_tokens=10_000_000)
MOST_MS = 50.0
"""For a turn beside the model, by the issue."""


class TimedModel(ScriptedModel):
    """Notes when it is asked and when it has answered."""

    def __init__(self) -> None:
        super().__init__(_looks_for_something_else)
        self.asked: list[float] = []
        self.answered: list[float] = []

    async def answer(self, messages: Sequence[Message], **how: object) -> Turn:
        self.asked.append(time.perf_counter())
        turn = await super().answer(messages, **how)  # type: ignore[arg-type]  # passed on
        self.answered.append(time.perf_counter())
        return turn


async def figures() -> list[Figure]:
    """Medians over the turns of one exploration, and of the conversation when it is full of large screens."""
    model = TimedModel()
    trip = Trip(model, limits=LIMITS)
    end = await trip.run()
    assert end.code == "TURN_LIMIT", end
    turns = [later - earlier for earlier, later in zip(model.answered, model.asked[1:], strict=False)]
    making = list(_making(trip.log.kept[0]))
    return [
        Figure("designer: a turn beside the model", median_ms(turns), "ms", MOST_MS, note=f"{len(turns)} turns"),
        Figure(
            "designer: next turn of a full conversation", median_ms(making[1:]), "ms", MOST_MS, note="large screens"
        ),
        Figure("designer: first turn after a restart", making[0] * 1000, "ms", MOST_MS, note=f"{TURNS} large screens"),
    ]


def _making(began: Entry) -> Iterator[float]:
    """How long it takes to decide and to make the conversation, when every turn so far showed the largest screen."""
    screens = scenario_screens()
    largest = snapshot_of(screens[max(screens, key=lambda name: size_of(screens[name]))])
    entries = [began]
    for turn in range(1, 2 * TURNS):
        text = observe(largest, number=turn, words=effect_words()).text
        # Other words on each, as on a phone: nothing is the same text twice.
        entries += _turn(turn, re.sub(r'"(\w)', rf'"{turn} \1', text))
        if turn < TURNS:
            continue
        start = time.perf_counter()
        state = state_of(entries)
        next_move(state, limits=LIMITS)
        conversation(
            entries,
            tools=specs("en", allow_points=False),
            shot=None,
            most_tokens=conversation_room(state, LIMITS),
        )
        yield time.perf_counter() - start


def _turn(turn: int, text: str) -> list[Entry]:
    calls = (ToolCall(id=f"call-{turn}", name="tap", arguments=f'{{"screen": {turn}, "element": 3}}'),)
    return [
        Spoke(turn=turn, text="I go on.", calls=calls, stop=Stop.CALLS, usage=Usage(), spent_tokens=turn * 1_000),
        ToolBegan(call_id=calls[0].id, name="tap", arguments_json=calls[0].arguments),
        ToolEnded(
            call_id=calls[0].id, name="tap", outcome=OutcomeKind.RESULT, text=f"tap: done.\n{text}", snapshot=f"s{turn}"
        ),
    ]


def _looks_for_something_else(messages: Sequence[Message]) -> Turn:
    return cast("Turn", does(call("find_text", text=f"tea {turns_of(messages)}"))(messages))
