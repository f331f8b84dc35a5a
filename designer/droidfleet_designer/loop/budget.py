"""What an exploration may still spend. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

from droidfleet_designer.conversation import Answer, Message, Picture, Usage
from droidfleet_designer.loop.limits import TOKENS_A_MILLION, Limits
from droidfleet_designer.loop.state import State
from droidfleet_designer.model.port import ToolSpec
from droidfleet_designer.observation.lines import estimated_tokens

PICTURE_TOKENS = 2_000
"""Of one picture: more than the usual models take for a phone's screen (some 800 to 1,600)."""

MESSAGE_TOKENS = 8
"""Around each message and call: the role, the ids."""

LAST_SHARE = 0.8
"""Spent so much of anything, the model is told to finish: a fifth is enough to hand over what it has."""

CONTEXT_SHARE = 8
"""The conversation is read with every turn: a budget is for at least so many of the longest."""

MAX_HALVINGS = 3
"""Of the conversation, for a server that finds it too long: after them hardly a screen is left."""


def cost(usage: Usage, prices: tuple[float, float]) -> float:
    """The money of one answer."""
    return (usage.input_tokens * prices[0] + usage.output_tokens * prices[1]) / TOKENS_A_MILLION


def output_room(state: State, *, input_tokens: int, limits: Limits) -> int:
    """How many tokens the next answer may have, if the conversation takes so many. 0: no answer is worth asking for."""
    began = state.began_with
    room = min(limits.max_output_tokens, began.max_tokens - state.spent_tokens - input_tokens)
    if began.max_money is not None and began.prices is not None:
        for_input, for_output = (price / TOKENS_A_MILLION for price in began.prices)
        left = began.max_money - (state.spent_money or 0.0) - input_tokens * for_input
        room = min(room, int(left / for_output)) if for_output > 0 else room if left >= 0 else 0
    return room if room >= limits.min_output_tokens else 0


def nearly_spent(state: State) -> bool:
    """Whether so little is left of turns, tokens or money that the model should finish."""
    began = state.began_with
    shares = [state.turn / began.max_turns, state.spent_tokens / began.max_tokens]
    if began.max_money and state.spent_money is not None:
        shares.append(state.spent_money / began.max_money)
    return max(shares) >= LAST_SHARE


def conversation_room(state: State, limits: Limits) -> int:
    """How long the conversation may be before older screens are told in one line, in tokens."""
    room = min(limits.max_context_tokens, state.began_with.max_tokens // CONTEXT_SHARE)
    return room >> min(state.too_long, MAX_HALVINGS)


def estimated(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> int:
    """About how many tokens a conversation takes, rather too many than too few."""
    told = sum(_of_text(f"{each.name} {each.description} {json.dumps(each.parameters)}") for each in tools)
    return round(told + sum(map(_of_message, messages)))


def _of_message(message: Message) -> float:
    if isinstance(message, Picture):
        return PICTURE_TOKENS + _of_text(message.caption) + MESSAGE_TOKENS
    calls = message.calls if isinstance(message, Answer) else ()
    said = sum(_of_text(each.name) + _of_text(each.arguments) + MESSAGE_TOKENS for each in calls)
    return _of_text(message.text) + MESSAGE_TOKENS + said


@lru_cache(maxsize=4_096)
def _of_text(text: str) -> float:
    """Remembered: what was said is said again with every turn."""
    return estimated_tokens(text)
