"""The practice planner goes on with an exploration whose process ended, wherever that was."""

from __future__ import annotations

import asyncio
import json

import pytest

from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_designer.draft.draft import Brief
from droidfleet_designer.log import Ending
from support.memory_log import KillingLog
from support.practice_runs import DEVICE, PracticeRun, executed

BRIEF = Brief(description='Open Shop, type "Ada" into "Name", check that "Tea" is shown, tap "Tea".', device=DEVICE)


def scenario() -> Scenario:
    field = {"type": "field", "hint": "Name", "bind": "name"}
    tea = {"type": "button", "text": "Tea", "on_click": [{"effect": "tea", "details": {"name": "{{name}}"}}]}
    root = {"type": "column", "height": "fill", "children": [field, tea]}
    app = {"package": "com.example.shop", "label": "Shop", "home": "main", "variables": {"name": ""}}
    app["screens"] = {"main": {"activity": ".Main", "root": root}}
    return parse_scenario(json.dumps({"format": 1, "name": "shop", "start": "com.example.shop", "apps": [app]}))


ENTRIES = 20
"""Of the exploration when nothing ends it, but for the last two: what began, and three for each call."""


@pytest.mark.parametrize("last", range(2, ENTRIES + 1))
async def test_it_drafts_the_same_task_or_says_what_is_missing(last: int) -> None:
    run = PracticeRun(scenario(), last=last)
    assert isinstance(run.log, KillingLog)
    first = asyncio.get_running_loop().create_task(run.explore(BRIEF))
    async with asyncio.timeout(10):
        await run.log.killed.wait()
    first.cancel()
    await asyncio.wait({first})
    ended = await run.explore(BRIEF)
    if ended.ending is not Ending.DRAFTED:
        assert ended.code == "MODEL_REFUSED", ended
        return
    assert run.draft is not None
    result, phone = await executed(run.draft, scenario())
    missing = any("not in the task" in note for note in run.draft.notes)
    did = [dict(effect.details) for effect in phone.happened]
    assert (result.successful, did) == (True, [] if missing else [{"name": "Ada"}])
