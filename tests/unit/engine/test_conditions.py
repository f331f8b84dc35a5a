"""Conditions: true, false, or not decided by this look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.driver.memory import Fault, Page
from droidfleet_agent.engine.conditions import evaluate, needs_activity, needs_look
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.result import OutputValue
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Screen
from support.runs import run_step, run_steps
from support.screens import PACKAGE, dump, node, screen, window
from support.shop import shop

Json = dict[str, Any]  # a condition as it is written

HOME = replace(screen(node("Shop", (0, 0, 900, 90)), node("Tea", (0, 100, 900, 190))), activity=f"{PACKAGE}.Main")
CHANGING = replace(HOME, activity="")
SHADE = replace(HOME, root=None, package="com.android.systemui", activity="")
NOTHING = replace(HOME, root=None, package="", activity="")

SHOP: Json = {"visible": {"text": "Shop"}}
NEVER: Json = {"visible": {"text": "Never"}}
MAIN: Json = {"activity": ".Main"}
OUTPUTS: dict[str, OutputValue] = {
    "total": "19.90 EUR",
    "empty": "",
    "names": ["Green tea", None, "Black  tea"],
    "none": [],
}


def holds(condition: Json, on: Screen | None = HOME) -> bool | None:
    return evaluate(Condition.model_validate(condition), None if on is None else Matcher(on), OUTPUTS)


@pytest.mark.parametrize(
    ("condition", "home", "changing", "shade", "nothing"),
    [
        (SHOP, True, True, False, None),
        (NEVER, False, False, False, None),
        ({"gone": {"text": "Shop"}}, False, False, True, None),
        ({"gone": {"text": "Never"}}, True, True, True, None),
        ({"foreground": PACKAGE}, True, True, False, None),
        ({"foreground": "com.android.systemui"}, False, False, True, None),
        (MAIN, True, None, False, None),
        ({"activity": f"{PACKAGE}.Main"}, True, None, False, None),
        ({"activity": ".Other"}, False, None, False, None),
        ({"output": "total", "contains": "EUR"}, True, True, True, True),
        ({"not": SHOP}, False, False, True, None),
        ({"not": MAIN}, False, None, True, None),
        ({"all": [SHOP, MAIN]}, True, None, False, None),
        ({"all": [NEVER, MAIN]}, False, False, False, None),
        ({"any": [SHOP, MAIN]}, True, True, False, None),
        ({"any": [NEVER, MAIN]}, True, None, False, None),
        ({"any": [MAIN, {"output": "total", "contains": "EUR"}]}, True, True, True, True),
        ({"all": [MAIN, {"output": "total", "contains": "USD"}]}, False, False, False, False),
    ],
)
def test_a_condition_is_decided_by_what_the_look_shows(
    condition: Json, home: bool | None, changing: bool | None, shade: bool | None, nothing: bool | None
) -> None:
    assert [holds(condition, on) for on in (HOME, CHANGING, SHADE, NOTHING)] == [home, changing, shade, nothing]


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ({"output": "total", "equals": "19.90 EUR"}, True),
        ({"output": "total", "equals": " 19.90\u00a0EUR\u200b "}, True),
        ({"output": "total", "equals": "19.90"}, False),
        ({"output": "total", "contains": "90 EU"}, True),
        ({"output": "total", "matches": r"\d+\.\d\d EUR"}, True),
        ({"output": "total", "matches": r"\d+\.\d\d"}, False),
        ({"output": "empty", "equals": ""}, True),
        ({"output": "empty", "contains": "x"}, False),
        ({"output": "names", "contains": "Black tea"}, True),
        ({"output": "names", "contains": "tea"}, False),
        ({"output": "names", "matches": "Green.*"}, True),
        ({"output": "names", "matches": "Red.*"}, False),
        ({"output": "names", "equals": "Green tea"}, False),
        ({"output": "none", "contains": "x"}, False),
        ({"output": "none", "equals": ""}, False),
        ({"output": "missing", "equals": ""}, False),
        ({"output": "missing", "matches": ".*"}, False),
    ],
)
def test_outputs_are_compared_without_a_look(comparison: Json, expected: bool) -> None:
    assert holds(comparison, None) is expected


LEAVES = st.sampled_from([SHOP, NEVER, MAIN, {"gone": {"text": "Shop"}}, {"output": "total", "contains": "EUR"}])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"all": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"any": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=6,
)


@given(TREES)
def test_what_is_undecided_is_so_because_an_undecided_part_would_turn_it(condition: Json) -> None:
    """Kleene's logic: decided exactly when neither answer of the open parts changes it, taken each on its own."""
    value = holds(condition, CHANGING)
    answers = {_with_activity(condition, answer) for answer in (True, False)}
    if value is not None:
        assert answers == {value}


def _with_activity(condition: Json, answer: bool) -> bool:
    [(kind, inner), *_] = condition.items()
    if kind in ("all", "any"):
        parts = [_with_activity(part, answer) for part in inner]
        return all(parts) if kind == "all" else any(parts)
    if kind == "not":
        return not _with_activity(inner, answer)
    if kind == "activity":
        return answer
    return bool(holds(condition, CHANGING))


@pytest.mark.parametrize(
    ("condition", "look", "activity"),
    [
        ({"output": "total", "equals": "x"}, False, False),
        ({"all": [{"output": "a", "equals": "x"}, {"not": {"output": "b", "equals": "x"}}]}, False, False),
        ({"any": [{"output": "a", "equals": "x"}, SHOP]}, True, False),
        ({"foreground": PACKAGE}, True, False),
        ({"not": MAIN}, True, True),
        ({"all": [SHOP, {"any": [NEVER, MAIN]}]}, True, True),
    ],
)
def test_a_condition_says_what_has_to_be_read_for_it(condition: Json, look: bool, activity: bool) -> None:
    parsed = Condition.model_validate(condition)
    assert (needs_look(parsed), needs_activity(parsed)) == (look, activity)


# WAIT and ASSERT.


@pytest.mark.parametrize("action", ["WAIT", "ASSERT"])
async def test_a_condition_is_looked_for_until_it_holds(clock: VirtualClock, action: str) -> None:
    phone = shop(clock, start="detail", latency={"dump": 0.1})
    phone.fail("dump", Fault.DIES_BEFORE)
    step = {"action": action, "condition": {"visible": {"text": "Add to cart"}}}
    result = await run_step(phone, clock, step)
    assert (result.successful, result.detail, result.dispatched) == (True, Detail.HELD, 0)


@pytest.mark.parametrize("action", ["WAIT", "ASSERT"])
async def test_a_condition_that_never_holds_fails_at_the_deadline(clock: VirtualClock, action: str) -> None:
    result = await run_step(shop(clock), clock, {"action": action, "condition": NEVER, "timeoutMs": 700})
    assert result.code is StepCode.CONDITION_NOT_MET
    assert clock.monotonic() == pytest.approx(0.7)
    assert '{"visible": {"text": "Never"}}' in result.message
    assert '"Tea"' in result.message  # what was there instead


async def test_a_condition_of_outputs_alone_is_not_waited_for(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {"action": "ASSERT", "condition": {"output": "x", "equals": "y"}})
    assert (result.code, phone.calls, clock.monotonic()) == (StepCode.CONDITION_NOT_MET, [], 0.0)


async def test_a_failure_names_the_parts_that_did_not_hold(clock: VirtualClock) -> None:
    condition = {"all": [{"visible": {"text": "Tea"}}, {"all": [NEVER, {"gone": {"text": "Never"}}]}]}
    result = await run_step(shop(clock), clock, {"action": "ASSERT", "condition": condition, "timeoutMs": 100})
    assert 'did not hold. Of it not: {"visible": {"text": "Never"}}. On the screen' in result.message


async def test_a_failure_says_what_the_output_is_instead(clock: VirtualClock) -> None:
    read = {"action": "EXTRACT_TEXT", "selector": {"text": "Tea"}, "outputField": "drink"}
    check = {"action": "ASSERT", "condition": {"all": [{"output": name, "equals": "Mate"} for name in ("drink", "x")]}}
    message = (await run_steps(shop(clock), clock, read, check)).message
    assert message.endswith("Output 'drink' is \"Tea\". Output 'x' is not extracted yet. Waiting changes no output.")


async def test_a_condition_of_outputs_waits_for_the_app_of_its_step(clock: VirtualClock) -> None:
    step = {"action": "WAIT", "condition": {"not": {"output": "x", "equals": "y"}}, "packageName": "com.other"}
    assert (await run_step(shop(clock), clock, {**step, "timeoutMs": 300})).code is StepCode.PACKAGE_MISMATCH


async def test_a_condition_on_the_activity_reads_it(clock: VirtualClock) -> None:
    phone = shop(clock)
    assert (await run_step(phone, clock, {"action": "ASSERT", "condition": {"activity": ".MainActivity"}})).successful
    assert phone.calls.count("focus") == 2


async def test_a_condition_without_an_activity_does_not_read_it(clock: VirtualClock) -> None:
    phone = shop(clock)
    await run_step(phone, clock, {"action": "ASSERT", "condition": SHOP})
    assert "focus" not in phone.calls


async def test_a_wait_for_something_to_go_is_not_met_by_a_screen_without_windows(clock: VirtualClock) -> None:
    phone = shop(clock, start="nothing", more={"nothing": Page(dump())})
    step = {"action": "WAIT", "condition": {"gone": {"text": "Shop"}}, "timeoutMs": 500}
    assert (await run_step(phone, clock, step)).code is StepCode.CONDITION_NOT_MET


async def test_a_lock_screen_shows_that_something_is_gone(clock: VirtualClock) -> None:
    locked = Page(dump(window(package="com.android.systemui")))
    phone = shop(clock, start="locked", more={"locked": locked})
    assert (await run_step(phone, clock, {"action": "WAIT", "condition": {"gone": {"text": "Shop"}}})).successful


async def test_a_condition_is_content_with_several_matches(clock: VirtualClock) -> None:
    assert (
        await run_step(shop(clock), clock, {"action": "WAIT", "condition": {"visible": {"text": "Delete"}}})
    ).successful


async def test_each_look_of_a_step_asks_what_its_own_condition_needs(clock: VirtualClock) -> None:
    phone = shop(clock)
    step = {
        "action": "ASSERT",
        "condition": SHOP,
        "when": {"activity": ".MainActivity"},
        "after": {"condition": {"foreground": PACKAGE}},
    }
    task = await run_steps(phone, clock, step)
    assert task.successful
    assert phone.calls.count("focus") == 2  # of `when` alone
