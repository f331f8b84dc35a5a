"""The light phone writes what it felt, and outlives the agent that drove it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from chaos.effects import read_effects
from chaos.light_phone import CONFIRM_AT, FIELD_AT, SEND_AT, LightPhone
from chaos.posts import CONFIRMED, EFFECTS, PLAIN, SENT, SETTLED, TYPED, task
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.validate import validate_task
from support.runs import AGENT, Recorder
from support.screens import Rectangle

CALL_S = 10.0
CLOCK = SystemClock()


def phone(file: Path) -> LightPhone:
    return LightPhone(file, "phone", clock=CLOCK, random=Random(1))


async def tap(on: LightPhone, at: Rectangle) -> None:
    assert await on.tap((at[0] + at[2]) // 2, (at[1] + at[3]) // 2, deadline=CLOCK.deadline(CALL_S))


def felt(file: Path) -> list[tuple[str, str]]:
    return [(effect.kind, effect.word) for effect in read_effects(file, "phone")]


async def test_effects_name_the_word_that_is_in_the_field(tmp_path: Path) -> None:
    file = tmp_path / "effects"
    light = phone(file)
    await tap(light, FIELD_AT)
    assert await light.set_focused_text("tea", deadline=CLOCK.deadline(CALL_S))
    await tap(light, SEND_AT)
    await tap(light, CONFIRM_AT)
    assert felt(file) == [(TYPED, "tea"), (SENT, "tea"), (CONFIRMED, "tea")]


async def test_the_next_process_finds_the_screen_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "effects"
    first = phone(file)
    await tap(first, FIELD_AT)
    assert await first.set_focused_text("tea", deadline=CLOCK.deadline(CALL_S))
    await tap(first, SEND_AT)
    second = phone(file)
    assert "= tea" in await second.dump(deadline=CLOCK.deadline(CALL_S))
    await tap(second, CONFIRM_AT)
    assert felt(file)[-1] == (CONFIRMED, "tea")


async def test_both_tasks_have_each_effect_once(tmp_path: Path) -> None:
    for task_id in (PLAIN, SETTLED):
        file = tmp_path / task_id
        document = {**json.loads(task(task_id)), "assignedAgentName": AGENT, "inputValues": {"word": task_id}}
        result = await Engine(phone(file), clock=CLOCK).run(
            validate_task(json.dumps(document)).require(),
            execution_id="x",
            agent_name=AGENT,
            observer=Recorder(),
            control=RunControl(),
        )
        assert result.code is StepCode.OK, result.message
        assert felt(file) == [(kind, task_id) for kind in EFFECTS]
