"""What the practice planner does on a phone, and what it says of what it did not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_designer.conversation import Answer, Instruction, Message, Request, ToolAnswer
from droidfleet_designer.draft.draft import Brief, Draft, DraftSettings
from droidfleet_designer.log import Ended, Ending, Entry
from droidfleet_designer.loop.history import conversation
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.loop.telling import told
from droidfleet_designer.practice.planning import planned
from droidfleet_designer.tools.catalogue import specs
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Issue
from support.practice_runs import DEVICE, Plans, PracticeRun

PACKAGE = "com.example.practised"


def button(text: str, **more: JsonValue) -> Mapping[str, JsonValue]:
    return {"type": "button", "text": text, "on_click": [{"effect": "pressed", "details": {"name": text}}], **more}


def run_on(
    *widgets: Mapping[str, JsonValue],
    plans: Plans | None = None,
    limits: Limits | None = None,
    toolkit: str = "views",
    **variables: JsonValue,
) -> PracticeRun:
    """A run on an app of one page with these widgets."""
    root = {"type": "column", "height": "fill", "children": list(widgets)}
    app = {"package": PACKAGE, "label": "Shop", "home": "main", "variables": variables}
    app["screens"] = {"main": {"activity": ".Main", "root": root, "toolkit": toolkit}}
    document = {"format": 1, "name": "practice", "start": PACKAGE, "apps": [app]}
    return PracticeRun(parse_scenario(json.dumps(document)), plans=plans, limits=limits)


def explored(run: PracticeRun, description: str, **settings: object) -> Ended:
    given = DraftSettings.model_validate(settings)
    return asyncio.run(run.explore(Brief(description=description, device=DEVICE, settings=given)))


def drafted(run: PracticeRun, description: str, **settings: object) -> Draft:
    ended = explored(run, description, **settings)
    assert ended.ending is Ending.DRAFTED, ended
    assert run.draft is not None
    return run.draft


def steps_of(draft: Draft) -> list[dict[str, JsonValue]]:
    steps = draft.task["steps"]
    assert isinstance(steps, list)
    return [
        {key: value for key, value in step.items() if key not in {"id", "label"}}
        for step in steps
        if isinstance(step, dict)
    ]


def test_a_task_opens_the_app_on_its_first_page_and_names_what_was_seen() -> None:
    draft = drafted(run_on(button("Green tea")), 'Open Shop, tap "Green tea".')
    assert steps_of(draft) == [
        {"action": "OPEN", "packageName": PACKAGE, "stopFirst": True},
        {"action": "CLICK", "selector": {"text": "Green tea"}},
    ]


def test_the_app_in_front_is_taken_where_none_is_named_and_a_note_says_so() -> None:
    draft = drafted(run_on(button("Green tea")), 'Tap "Green tea".')
    assert any("opens the one that was in front" in note for note in draft.notes)


def test_a_draft_says_that_no_language_model_made_it() -> None:
    assert "no language model" in drafted(run_on(button("Tea")), 'Tap "Tea".').notes[0]


def test_two_things_of_one_name_are_not_guessed_between() -> None:
    run = run_on(button("First"), button("Tea"), button("Tea"))
    draft = drafted(run, 'Tap "First", tap "Tea", tap "First".')
    assert [step["action"] for step in steps_of(draft)] == ["OPEN", "CLICK"]
    assert any("2 things on the screen may be meant" in note for note in draft.notes)


def test_a_name_is_never_taken_for_a_longer_one_but_that_is_offered() -> None:
    ended = explored(run_on(button("Green tea, 100 g")), 'Tap "Green tea".')
    assert ended.code == "MODEL_REFUSED"
    assert "Green tea, 100 g" in ended.message


def test_nothing_that_may_not_be_undone_is_done_while_exploring() -> None:
    run = run_on(button("Tea"), button("Delete all"))
    draft = drafted(run, 'Tap "Tea", tap "Delete all".')
    assert [effect.details for effect in run.phone.happened] == [{"name": "Tea"}]
    assert [mark.path for mark in draft.marks] == ["/steps/2"]


def test_a_password_is_an_input_and_written_down_nowhere() -> None:
    run = run_on(
        {"type": "field", "hint": "Word", "kind": "password", "bind": "word"}, button("Sign in"), word="", other=""
    )
    draft = drafted(run, 'Type "Sunflower-7" into "Word", tap "Sign in".')
    assert "Sunflower" not in draft.model_dump_json()
    assert draft.task["inputs"] == {"password": {"type": "secret"}}


def test_a_search_is_proved_on_the_field_as_it_was_before_and_not_marked() -> None:
    field = {"type": "field", "hint": "Search the list", "kind": "search", "bind": "query"}
    draft = drafted(run_on(field, button("Tea"), toolkit="compose", query=""), 'Search for "Tea", tap "Tea".')
    assert draft.marks == ()
    assert [each.path for each in draft.evidence if "Search the list" in each.element] == ["/steps/1/selector"]


def test_what_was_searched_for_is_named_by_its_words_though_the_field_says_them_too() -> None:
    field = {"type": "field", "hint": "Search the list", "kind": "search", "bind": "query"}
    draft = drafted(run_on(field, button("Tea"), query=""), 'Search for "Tea", tap "Tea".')
    selector = steps_of(draft)[2]["selector"]
    assert isinstance(selector, dict)
    assert selector["text"] == "Tea"


def test_a_switch_that_is_as_wished_is_left_and_the_task_leaves_it_too() -> None:
    run = run_on({"type": "switch", "text": "Sound", "bind": "sound"}, sound=True)
    draft = drafted(run, 'Turn on "Sound".')
    assert steps_of(draft)[1]["unlessVisible"] == {"text": "Sound", "checked": True}
    assert run.phone.effects.all()[-1].kind != "tap"


def test_what_is_said_of_time_comes_into_the_task() -> None:
    run = run_on(button("Like"))
    draft = drafted(run, 'Open Shop and for 10 minutes randomly tap "Like" every 5 to 20 seconds.')
    [_, repeat] = steps_of(draft)
    assert (repeat["action"], repeat["maxDurationMs"]) == ("REPEAT", 600_000)
    like, pause = repeat["steps"] if isinstance(repeat["steps"], list) else []
    assert isinstance(like, dict)
    assert isinstance(pause, dict)
    assert (like["probability"], pause["minMs"], pause["maxMs"]) == (30, 5_000, 20_000)


def test_a_plan_that_the_fleet_does_not_take_is_left_out_and_a_note_says_so() -> None:
    issue = Issue("/target/group", ValidationCode.WRONG_TYPE, "There is no such group.", "Name another.")
    draft = drafted(run_on(button("Tea"), plans=Plans(issue)), 'On group "lab", tap "Tea".')
    assert draft.target.device == DEVICE
    assert any("The fleet does not take" in note for note in draft.notes)


def test_it_hands_over_what_it_has_when_the_turns_run_out() -> None:
    names = [f"Tea {place}" for place in range(12)]
    run = run_on(*map(button, names), limits=Limits(max_turns=10))
    draft = drafted(run, ", ".join(f'tap "{name}"' for name in names))
    assert any("budget was nearly spent" in note for note in draft.notes)


def test_the_same_conversation_gets_the_same_answer_at_each_of_its_turns() -> None:
    run = run_on(button("Tea"), button("Coffee"))
    drafted(run, 'Tap "Tea", check that "Coffee" is shown, tap "Coffee".')
    for place, entry in enumerate(run.log.kept):
        if entry.kind == "spoke":
            answer = planned(_before(run.log.kept[:place]))
            assert (answer.text, (answer.call,)) == (entry.text, entry.calls)


def test_a_conversation_that_is_no_exploration_is_told_what_the_planner_is() -> None:
    answer = planned([])
    assert (answer.call, answer.refused, "no language model" in answer.text) == (None, False, True)


def _before(entries: Sequence[Entry]) -> Sequence[Message]:
    tools = specs("en", allow_points=False)
    return conversation(entries, tools=tools, shot=None, most_tokens=40_000)[0]


def test_an_app_that_is_slow_to_come_is_not_taken_for_the_launcher() -> None:
    tapped = 'tap: done.\nScreen 3: com.example.launcher .Home, 1080x2400\nquotes\n1 button desc "Shop"'
    came = "wait: done.\nScreen 4: com.example.shop .Main, 1080x2400\nquotes"
    home = 'press_key: done.\nScreen 2: com.example.launcher .Home, 1080x2400\nquotes\n1 button desc "Shop"'
    look = "Screen 1: com.example.other .Main, 1080x2400\nquotes"
    messages: list[Message] = [
        Instruction(text="You explore a phone."),
        Request(
            text=told("BRIEF", "en", description="Open Shop.", device='"p"', settings="{}", turns=60, tokens="1,000")
        ),
    ]
    asked = []
    for answer in (look, home, tapped, came):
        call = planned(messages).call
        assert call is not None
        asked.append(call.name)
        messages += [Answer(calls=(call,)), ToolAnswer(call_id=call.id, name=call.name, text=answer)]
    last = planned(messages).call
    assert asked == ["screen", "press_key", "tap", "wait"]
    assert last is not None
    assert json.loads(last.arguments)["package"] == "com.example.shop"
