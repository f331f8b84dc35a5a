"""What becomes of each command of a Maestro flow."""

from __future__ import annotations

import json

import pytest

from droidfleet_controller.importing.keys import KEY_CODES, KEY_NAMES, key_step
from droidfleet_controller.importing.maestro import EXAMPLES, import_maestro
from droidfleet_controller.importing.maestro_commands import COMMANDS
from droidfleet_controller.importing.report import What
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.validate import validate_template
from unit.importing.documents import DATA, Object, checked, flow, notes, steps_of

LOOKUP: Object = {"timeoutMs": 17_000}
BUY: Object = {"text": "Buy"}
HAS_BUY: Object = {"resourceId": "row", "has": {"text": "Buy"}}
DISABLED: Object = {"resourceId": "sent", "enabled": False}
TYPED: Object = {"action": "INPUT", "selector": {"focused": True}}


def seen(text: str) -> Json:
    """The condition that a label is seen, as text or as description."""
    return {"any": [{"visible": {"text": text}}, {"visible": {"description": text}}]}


def seen_in_any_case(text: str) -> Json:
    pattern = f"(?i){text}"
    return {"any": [{"visible": {"textMatches": pattern}}, {"visible": {"descriptionMatches": pattern}}]}


def gone(text: str) -> Json:
    pattern = f"(?i){text}"
    return {"all": [{"gone": {"textMatches": pattern}}, {"gone": {"descriptionMatches": pattern}}]}


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("tapOn: Buy", [{"action": "CLICK", "selector": BUY, **LOOKUP}]),
        ("tapOn: {id: buy}", [{"action": "CLICK", "selector": {"resourceId": "buy"}, **LOOKUP}]),
        ("tapOn: {id: 'a.b:id/buy'}", [{"action": "CLICK", "selector": {"resourceId": "a.b:id/buy"}, **LOOKUP}]),
        ("tapOn: {id: '.*:id/buy'}", [{"action": "CLICK", "selector": {"resourceId": "buy"}, **LOOKUP}]),
        ("tapOn: {text: Buy, index: 2}", [{"action": "CLICK", "selector": {**BUY, "index": 2}, **LOOKUP}]),
        (
            "tapOn: {text: Buy, enabled: true, checked: false}",
            [{"action": "CLICK", "selector": {**BUY, "enabled": True, "checked": False}, **LOOKUP}],
        ),
        (
            "tapOn: {text: Buy, below: Total, childOf: {id: list}}",
            [
                {
                    "action": "CLICK",
                    "selector": {**BUY, "below": {"text": "Total"}, "within": {"resourceId": "list"}},
                    **LOOKUP,
                }
            ],
        ),
        (
            "tapOn: {id: row, containsDescendants: [Buy]}",
            [{"action": "CLICK", "selector": HAS_BUY, **LOOKUP}],
        ),
        (
            "tapOn: {id: row, containsChild: {text: Buy}}",
            [{"action": "CLICK", "selector": HAS_BUY, **LOOKUP}],
        ),
        (
            "tapOn: {text: Buy, optional: true}",
            [{"action": "CLICK", "selector": BUY, "timeoutMs": 7_000, "optional": True}],
        ),
        ("tapOn: {text: Buy, label: Pay}", [{"action": "CLICK", "selector": BUY, **LOOKUP, "label": "Pay"}]),
        (
            "tapOn: {text: Buy, retryTapIfNoChange: true}",
            [{"action": "CLICK", "selector": BUY, **LOOKUP, "redo": True}],
        ),
        ("tapOn: {text: Buy, retryTapIfNoChange: false}", [{"action": "CLICK", "selector": BUY, **LOOKUP}]),
        (
            "tapOn: {text: Buy, repeat: 3, delay: 500}",
            [{"action": "CLICK", "selector": BUY, "times": 3, "intervalMs": 500, "timeoutMs": 18_000}],
        ),
        ("tapOn: {text: Buy, waitToSettleTimeoutMs: 500}", [{"action": "CLICK", "selector": BUY, **LOOKUP}]),
        ("doubleTapOn: Buy", [{"action": "CLICK", "selector": BUY, "times": 2, **LOOKUP}]),
        ("longPressOn: Buy", [{"action": "LONG_CLICK", "selector": BUY, **LOOKUP}]),
        ("inputText: 007", [{**TYPED, "value": "007", "clear": False}]),
        ("eraseText", [{**TYPED, "value": ""}]),
        (
            "eraseText: 3",
            [{"action": "REPEAT", "maxIterations": 3, "steps": [{"action": "KEY", "key": "DELETE"}]}],
        ),
        ("assertVisible: Sent", [{"action": "ASSERT", "condition": seen("Sent"), **LOOKUP}]),
        (
            "assertVisible: {id: sent, enabled: false}",
            [{"action": "ASSERT", "condition": {"visible": DISABLED}, **LOOKUP}],
        ),
        ("assertNotVisible: Error", [{"action": "ASSERT", "condition": gone("Error"), **LOOKUP}]),
        ("extendedWaitUntil: {visible: Sent}", [{"action": "WAIT", "condition": seen("Sent"), **LOOKUP}]),
        (
            "extendedWaitUntil: {notVisible: {id: x}, timeout: 30000}",
            [{"action": "WAIT", "condition": {"gone": {"resourceId": "x"}}, "timeoutMs": 30_000}],
        ),
        (
            "extendedWaitUntil: {visible: {id: x}, timeout: 70000}",
            [
                {
                    "action": "REPEAT",
                    "maxIterations": 2,
                    "until": {"visible": {"resourceId": "x"}},
                    "steps": [
                        {
                            "action": "WAIT",
                            "condition": {"visible": {"resourceId": "x"}},
                            "timeoutMs": 30_000,
                            "optional": True,
                        }
                    ],
                },
                {"action": "WAIT", "condition": {"visible": {"resourceId": "x"}}, "timeoutMs": 10_000},
            ],
        ),
        ("waitForAnimationToEnd", [{"action": "DELAY", "minMs": 1_000}]),
        ("waitForAnimationToEnd: {timeout: 300}", [{"action": "DELAY", "minMs": 300}]),
        ("back", [{"action": "BACK"}]),
        ("pressKey: Enter", [{"action": "KEY", "key": "ENTER"}]),
        ("pressKey: Volume Up", [{"action": "KEY", "key": "VOLUME_UP"}]),
        ("pressKey: back", [{"action": "BACK"}]),
        ("scroll", [{"action": "SCROLL", "direction": "DOWN", "maxScrolls": 1}]),
        (
            "scrollUntilVisible: {element: Tea}",
            [
                {
                    "action": "SCROLL",
                    "direction": "DOWN",
                    "until": {"text": "Tea"},
                    "maxScrolls": 50,
                    "timeoutMs": 20_000,
                }
            ],
        ),
        (
            "scrollUntilVisible: {element: {id: x}, direction: up, timeout: 90000, speed: 40}",
            [
                {
                    "action": "SCROLL",
                    "direction": "UP",
                    "until": {"resourceId": "x"},
                    "maxScrolls": 50,
                    "timeoutMs": 30_000,
                }
            ],
        ),
        ("swipe: {direction: LEFT}", [{"action": "SWIPE", "direction": "LEFT", "distancePercent": 80}]),
        (
            "swipe: {start: '50%,80%', end: '50%, 20%', duration: 400}",
            [{"action": "SWIPE", "direction": "UP", "distancePercent": 60, "durationMs": 400}],
        ),
        (
            "swipe: {from: {id: card}, direction: RIGHT}",
            [{"action": "SWIPE", "selector": {"resourceId": "card"}, "direction": "RIGHT"}],
        ),
        ("launchApp", [{"action": "OPEN", "packageName": "com.example.shop", "stopFirst": True}]),
        ("launchApp: com.other", [{"action": "OPEN", "packageName": "com.other", "stopFirst": True}]),
        (
            "launchApp: {stopApp: false, clearState: false}",
            [{"action": "OPEN", "packageName": "com.example.shop"}],
        ),
        ("stopApp", [{"action": "STOP_APP", "packageName": "com.example.shop"}]),
        ("killApp: com.other", [{"action": "STOP_APP", "packageName": "com.other"}]),
        ("takeScreenshot: cart", [{"action": "SCREENSHOT", "name": "cart"}]),
        (
            "repeat: {times: 3, commands: [back]}",
            [{"action": "REPEAT", "maxIterations": 3, "steps": [{"action": "BACK"}]}],
        ),
        (
            "repeat: {while: {visible: More}, commands: [back]}",
            [{"action": "REPEAT", "maxIterations": 1_000, "until": gone("More"), "steps": [{"action": "BACK"}]}],
        ),
        (
            "repeat: {times: 9, while: {notVisible: Done}, commands: [back]}",
            [
                {
                    "action": "REPEAT",
                    "maxIterations": 9,
                    "until": seen_in_any_case("Done"),
                    "steps": [{"action": "BACK"}],
                }
            ],
        ),
        (
            "runFlow: {commands: [back, scroll]}",
            [{"action": "BACK"}, {"action": "SCROLL", "direction": "DOWN", "maxScrolls": 1}],
        ),
        (
            "runFlow: {commands: [back], label: Leave}",
            [{"action": "GROUP", "steps": [{"action": "BACK"}], "label": "Leave"}],
        ),
        (
            "runFlow: {when: {visible: {id: later}, platform: Android}, commands: [back]}",
            [
                {
                    "action": "WAIT",
                    "condition": {"visible": {"resourceId": "later"}},
                    "timeoutMs": 7_000,
                    "optional": True,
                },
                {"action": "IF", "condition": {"visible": {"resourceId": "later"}}, "then": [{"action": "BACK"}]},
            ],
        ),
    ],
)
def test_a_command_becomes_the_steps_that_do_the_same(command: str, made: Json) -> None:
    assert steps_of(flow(f"- {command}")) == made


@pytest.mark.parametrize("name", [*COMMANDS, *EXAMPLES])
def test_the_example_of_every_command_is_read(name: str) -> None:
    example = (COMMANDS[name].example if name in COMMANDS else EXAMPLES[name]).strip("`")
    copied = "- copyTextFrom: {id: a}\n" if name == "pasteText" else "- back\n"
    imported = checked(
        import_maestro(f"appId: com.a.b\n---\n{copied}- {example}\n", read=lambda _path: "appId: a.b\n---\n- back\n")
    )
    assert imported.document is not None


# Labels.


@pytest.mark.parametrize(
    ("label", "selector"),
    [
        ("Sign in", {"text": "Sign in"}),
        ("Are you sure?", {"text": "Are you sure?"}),
        ("Loading...", {"text": "Loading..."}),
        ("Done. Go on.", {"text": "Done. Go on."}),
        ("50% off", {"text": "50% off"}),
        (".*Error.*", {"textMatches": "(?i).*Error.*"}),
        ("Yes|No", {"textMatches": r"(?i)(?:Yes|No|Yes\|No)"}),
        ("Total (2)", {"textMatches": r"(?i)(?:Total (2)|Total \(2\))"}),
        (r"Total \(2\)", {"textMatches": r"(?i)(?:Total \(2\)|Total \\\(2\\\))"}),
    ],
)
def test_a_label_is_literal_unless_it_is_an_expression(label: str, selector: Json) -> None:
    (made,) = steps_of(flow(f"- tapOn: {json.dumps(label)}"))
    assert isinstance(made, dict)
    assert made["selector"] == selector


@pytest.mark.parametrize("label", ["(?=a)b", "a{2000}", "(", r"\1"])
def test_an_expression_of_unbounded_cost_is_refused(label: str) -> None:
    imported = flow(f"- tapOn: {json.dumps(label)}")
    assert [entry.code for entry in imported.report if entry.what is What.REFUSED] == ["BAD_REGEX"]


def test_what_must_not_be_seen_is_looked_for_in_any_case() -> None:
    (made,) = steps_of(flow("- assertNotVisible: Error!"))
    assert made == {"action": "ASSERT", "condition": gone("Error!"), **LOOKUP}


# Variables.


def test_variables_become_inputs() -> None:
    imported = flow("- tapOn: ${ITEM}\n- inputText: 'for ${WHO}'", "appId: ${APP}\nenv:\n  ITEM: tea\n")
    assert imported.document is not None
    assert imported.document["inputs"] == {
        "ITEM": {"type": "string", "default": "tea"},
        "APP": {"type": "string"},
        "WHO": {"type": "string"},
    }
    assert steps_of(imported) == [
        {"action": "CLICK", "selector": {"text": "${inputs.ITEM}"}, **LOOKUP},
        {"action": "INPUT", "selector": {"focused": True}, "value": "for ${inputs.WHO}", "clear": False},
    ]


def test_a_copied_text_is_an_output_that_can_be_pasted() -> None:
    imported = flow("- copyTextFrom: {id: total}\n- pasteText\n- assertVisible: 'Paid ${maestro.copiedText}'")
    paste, check = steps_of(imported)[1:]
    assert isinstance(paste, dict)
    assert (paste["action"], paste["value"]) == ("INPUT", "${outputs.copiedText}")
    assert check == {"action": "ASSERT", "condition": seen("Paid ${outputs.copiedText}"), **LOOKUP}


def test_an_escaped_brace_is_text() -> None:
    (made,) = steps_of(flow(r"- inputText: '\${x}'"))
    assert isinstance(made, dict)
    assert made["value"] == "$${x}"


# The file.


def test_a_command_that_needs_nothing_leaves_a_note() -> None:
    imported = flow("- back\n- hideKeyboard\n- runFlow: {when: {platform: iOS}, commands: [unknownThing]}")
    assert steps_of(imported) == [{"action": "BACK"}]
    assert notes(imported) == {"NOT_NEEDED"}


def test_a_flow_is_named_by_its_configuration() -> None:
    imported = checked(import_maestro("appId: a.b\nname: Buy tea\ntags: [x]\n---\n- back\n"))
    assert imported.document is not None
    assert imported.document["taskId"] == "Buy tea"
    assert imported.aside == {"tags": ["x"]}


def test_what_runs_before_the_flow_comes_first() -> None:
    imported = flow("- back", "appId: a.b\nonFlowStart:\n  - scroll\n")
    assert [each["action"] for each in steps_of(imported) if isinstance(each, dict)] == ["SCROLL", "BACK"]


def test_a_flow_without_configuration_is_read() -> None:
    assert steps_of(checked(import_maestro("- back\n"))) == [{"action": "BACK"}]


def test_a_real_flow_becomes_the_task_that_is_kept_beside_it() -> None:
    folder = DATA / "flows"
    text = (folder / "buy-tea.yaml").read_text(encoding="utf-8")
    imported = import_maestro(text, file="buy-tea.yaml", read=lambda path: (folder / path).read_text(encoding="utf-8"))
    assert imported.document == json.loads((DATA / "buy-tea.expected.json").read_text(encoding="utf-8"))
    assert "common/sign-in.yaml:3" in {entry.place for entry in imported.report}


@pytest.mark.parametrize("key", [*KEY_NAMES, *map(str, KEY_CODES), *(f"KEYCODE_{each}" for each in KEY_CODES.values())])
def test_every_key_is_one_that_can_be_pressed(key: str) -> None:
    step = key_step(key)
    assert step is not None
    document: Json = {"schemaVersion": 1, "taskId": "t", "steps": [{"id": "a", **step}]}
    assert validate_template(json.dumps(document)).valid
