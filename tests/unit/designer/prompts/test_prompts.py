"""The prompts are there in both languages, say the same, and what they show is valid."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from droidfleet_designer.loop import deciding, state
from droidfleet_designer.prompts.instruction import instruction
from droidfleet_designer.prompts.load import prompt
from droidfleet_designer.prompts.reference import reference
from droidfleet_designer.tools.catalogue import TOOLS
from droidfleet_shared.protocol.steps import FlowStep, LeafStep
from droidfleet_shared.protocol.validate import validate_template
from support.tokens import tokens

LANGUAGES = ("en", "zh")
ACTIONS = [get_args(each.model_fields["action"].annotation)[0] for each in get_args(LeafStep | FlowStep)]
BLOCK = re.compile(r"```json\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_task_that_a_prompt_shows_is_valid(language: str) -> None:
    shown = BLOCK.findall(prompt("protocol", language))

    assert len(shown) == 2
    assert [validate_template(each).errors for each in shown] == [()] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_tool_that_a_prompt_names_is_there(language: str) -> None:
    text = prompt("system", language) + prompt("told", language)

    named = set(re.findall(r"`([a-z]+_[a-z]+)`", text))

    assert named
    assert named <= set(TOOLS)


def test_both_languages_say_the_same_things() -> None:
    sections = [re.findall(r"^# (\w+)$", prompt("told", each), re.MULTILINE) for each in LANGUAGES]
    values = [re.findall(r"\{(\w+)\}", prompt("told", each)) for each in LANGUAGES]
    words = [sorted(set(re.findall(r"`([^`]+)`", prompt("system", each)))) for each in LANGUAGES]

    assert sections[0] == sections[1]
    assert values[0] == values[1]
    assert words[0] == words[1]


def test_whatever_the_loop_says_has_a_text() -> None:
    sections = set(re.findall(r"^# (\w+)$", prompt("told", "en"), re.MULTILINE))

    said = {state.NO_CALL, state.OUTPUT_CUT, state.CALL_CUT, state.CALL_MALFORMED, state.RESTARTED}
    said |= {state.NOT_CARRIED_OUT, state.TASK_NOT_RIGHT, state.LAST_TURNS, deciding.STAGNATION}

    assert said <= sections


def test_the_reference_names_every_action_with_its_required_fields() -> None:
    lines = dict(line.partition(": ")[::2] for line in reference().splitlines())

    assert "selector* Selector" in lines["CLICK"]
    assert "packageName* text" in lines["OPEN"]
    assert "steps* [step]" in lines["REPEAT"]
    assert set(ACTIONS) == {name for name in lines if name.isupper()} - {"TASK", "EVERY STEP"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_model_reads_with_every_turn_is_short(language: str) -> None:
    assert tokens(instruction(language)) <= 4_000
