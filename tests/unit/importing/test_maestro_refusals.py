"""What a Maestro flow may hold and no task can do is listed with its line, never dropped."""

from __future__ import annotations

import pytest

from droidfleet_controller.importing.maestro import MAX_FLOW_DEPTH, FlowUnreadableError, import_maestro
from droidfleet_controller.importing.maestro_commands import NOT_SUPPORTED
from droidfleet_controller.importing.report import What
from unit.importing.documents import checked, flow, refusals, the_refusal


@pytest.mark.parametrize("command", NOT_SUPPORTED)
def test_a_command_without_a_counterpart_is_refused_with_the_reason(command: str) -> None:
    entry = the_refusal(flow(f"- back\n- {command}: x"))
    assert (entry.code, entry.place) == ("NOT_SUPPORTED", "flow.yaml:4")
    assert NOT_SUPPORTED[command] in entry.message


@pytest.mark.parametrize(
    ("command", "code", "hint"),
    [
        ("tapOm: Buy", "UNKNOWN_TYPE", "Did you mean `tapOn`?"),
        ("fly", "UNKNOWN_TYPE", "There are `tapOn`"),
        ("{tapOn: Buy, optional: true}", "WRONG_TYPE", "A command has one name"),
        ("[back]", "WRONG_TYPE", "A command has one name"),
        ("tapOn: [Buy]", "WRONG_TYPE", "For example: `tapOn: Buy`"),
        ("tapOn: {txt: Buy}", "UNKNOWN_FIELD", "Did you mean `text`?"),
        ("tapOn: {index: 0}", "EMPTY_SELECTOR", "For example"),
        ("tapOn: ''", "EMPTY_SELECTOR", "For example"),
        ("tapOn", "EMPTY_SELECTOR", "For example"),
        ("tapOn: {text: Buy, width: 100}", "NOT_SUPPORTED", "Name the node"),
        ("tapOn: {text: Buy, traits: text}", "NOT_SUPPORTED", "Name the node"),
        ("tapOn: {id: '.*buy.*'}", "NOT_SUPPORTED", "Write the id itself"),
        ("tapOn: {point: '50%,50%'}", "POINT_NOT_ALLOWED", "--allow-points"),
        ("tapOn: {point: '100,200'}", "NOT_SUPPORTED", "Write percent"),
        ("tapOn: {text: Buy, point: '50%,50%'}", "NOT_SUPPORTED", "without a point"),
        ("tapOn: {text: Buy, repeat: 11}", "OUT_OF_RANGE", "For example"),
        ("tapOn: {text: Buy, enabled: maybe}", "WRONG_TYPE", "For example"),
        ("tapOn: {text: Buy, containsChild: a, containsDescendants: [b]}", "NOT_SUPPORTED", "Keep the one"),
        ("tapOn: {text: Buy, containsDescendants: [a, b]}", "NOT_SUPPORTED", "Keep the one"),
        ("tapOn: ${1 + 1}", "JAVASCRIPT", "one variable alone"),
        ("inputText: ${output.total}", "JAVASCRIPT", "one variable alone"),
        ("inputText: ${maestro.copiedText}", "JAVASCRIPT", "one variable alone"),
        ("inputText: {label: x}", "MISSING_FIELD", "For example"),
        ("pasteText", "NOT_SUPPORTED", "Copy a text first"),
        ("eraseText: lots", "WRONG_TYPE", "For example"),
        ("pressKey: Lock", "UNKNOWN_KEY", "There are"),
        ("pressKey", "MISSING_FIELD", "pressKey: Enter"),
        ("launchApp: {clearState: true}", "NOT_SUPPORTED", "prepare the phone"),
        ("launchApp: {permissions: {all: deny}}", "NOT_SUPPORTED", "prepare the phone"),
        ("launchApp: not a package", "BAD_VALUE", ""),
        ("swipe", "MISSING_FIELD", "swipe: {direction: LEFT}"),
        ("swipe: {direction: OUT}", "BAD_VALUE", "There are `UP`"),
        ("swipe: {start: '90%,20%', end: '10%,20%'}", "NOT_SUPPORTED", "Use `direction`"),
        ("swipe: {start: '900,20', end: '10,20'}", "NOT_SUPPORTED", "90%,50%"),
        ("scrollUntilVisible: {direction: DOWN}", "MISSING_FIELD", "element: Green tea"),
        ("extendedWaitUntil: {timeout: 100}", "MISSING_FIELD", "visible: Sent"),
        ("takeScreenshot: 'cart ${N}'", "NOT_SUPPORTED", "Write a name"),
        ("repeat: {commands: [back]}", "MISSING_FIELD", "times: 3"),
        ("repeat: {times: 2}", "MISSING_FIELD", "commands: [back]"),
        ("repeat: {times: 2, commands: []}", "EMPTY_STEPS", "- back"),
        ("repeat: {times: 2000, commands: [back]}", "OUT_OF_RANGE", "times: 3"),
        ("repeat: {while: {true: '${x < 3}'}, commands: [back]}", "JAVASCRIPT", "`visible` or `notVisible`"),
        ("repeat: {while: {platform: Android}, commands: [back]}", "NOT_SUPPORTED", "Say what is seen"),
        ("runFlow: {when: {true: '${x}'}, commands: [back]}", "JAVASCRIPT", "`visible` or `notVisible`"),
        ("runFlow: {when: later, commands: [back]}", "WRONG_TYPE", "For example"),
        ("runFlow: {when: {platform: Windows}, commands: [back]}", "BAD_VALUE", "There are `Android`"),
        ("runFlow: {when: {visible: x}}", "MISSING_FIELD", "For example"),
        ("runFlow: {file: a.yaml, commands: [back]}", "BAD_VALUE", "Keep one"),
        ("runFlow: a.yaml", "FILE_NOT_FOLLOWED", "Put it into the folder"),
        ("assertVisible: {point: '5%,5%'}", "NOT_SUPPORTED", "Name the node"),
    ],
)
def test_what_cannot_be_a_step_is_refused_with_its_line_and_a_repair(command: str, code: str, hint: str) -> None:
    entry = the_refusal(flow(f"- {command}"))
    assert (entry.code, entry.place) == (code, "flow.yaml:3")
    assert hint in entry.hint


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ("url: https://example.com", "NOT_SUPPORTED"),
        ("onFlowComplete: [back]", "NOT_SUPPORTED"),
        ("appID2: x", "UNKNOWN_FIELD"),
        ("env: [a]", "WRONG_TYPE"),
        ("env: {a-b: c}", "BAD_VALUE"),
        ("env: {a: '${1}'}", "JAVASCRIPT"),
        ("env: {a: [1]}", "WRONG_TYPE"),
        ("- back", "WRONG_TYPE"),
    ],
)
def test_a_configuration_that_means_what_no_task_can_is_refused(config: str, code: str) -> None:
    assert [found for found, _ in refusals(flow("- back", config))] == [code]


def test_an_app_must_be_named_where_none_is() -> None:
    assert refusals(flow("- launchApp", "name: x")) == [("MISSING_FIELD", "flow.yaml:3")]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("", "UNKNOWN_FORM", "flow.yaml:1"),
        ("a: b\n---\n- back\n---\n- back\n", "UNKNOWN_FORM", "flow.yaml:1"),
        ("appId: a.b\n---\nback: 1\n", "WRONG_TYPE", "flow.yaml:3"),
        ("appId: a.b\n---\n- tapOn: 'open\n", "BAD_YAML", "flow.yaml:4"),
        ("appId: a.b\n---\n- tapOn: %x\n", "BAD_YAML", "flow.yaml:3"),
        ("- &a back\n- *a\n", "BAD_YAML", "flow.yaml:1"),
        ("- *a\n", "BAD_YAML", "flow.yaml:1"),
        ("- !!python/name:os.system x\n", "BAD_YAML", "flow.yaml:1"),
        ("- tapOn:\n    text: a\n    text: b\n", "BAD_YAML", "flow.yaml:3"),
        ("- ? [a]\n  : b\n", "BAD_YAML", "flow.yaml:1"),
        ("[" * 5000, "BAD_YAML", "flow.yaml:1"),
        ("\x00", "BAD_YAML", "flow.yaml:1"),
    ],
)
def test_a_file_that_is_no_flow_is_refused(text: str, code: str, place: str) -> None:
    assert refusals(checked(import_maestro(text))) == [(code, place)]


# Flows that run flows.


def run(files: dict[str, str]) -> list[tuple[str, str]]:
    """The refusals of a flow that runs others."""

    def read(path: str) -> str:
        if path not in files:
            raise FlowUnreadableError("there is none")
        return files[path]

    return refusals(checked(import_maestro(files["a.yaml"], file="a.yaml", read=read)))


def test_a_flow_that_runs_itself_is_refused() -> None:
    assert run({"a.yaml": "- runFlow: a.yaml"}) == [("FILE_NOT_FOLLOWED", "a.yaml:1")]
    assert run({"a.yaml": "- runFlow: in/b.yaml", "in/b.yaml": "- back\n- runFlow: ../a.yaml"}) == [
        ("FILE_NOT_FOLLOWED", "in/b.yaml:2")
    ]


@pytest.mark.parametrize(
    "path", ["../b.yaml", "/etc/passwd", "..\\b.yaml", "in/../../b.yaml", "${NAME}.yaml", "''", "."]
)
def test_a_flow_outside_the_folder_is_not_followed(path: str) -> None:
    codes = [code for code, _ in run({"a.yaml": f"- back\n- runFlow: {path}", "b.yaml": "- back"})]
    assert codes == ["FILE_NOT_FOLLOWED"]


def test_flows_may_run_flows_to_the_limit_and_not_deeper() -> None:
    files = {"a.yaml": "- runFlow: 2.yaml"}
    files |= {f"{depth}.yaml": f"- runFlow: {depth + 1}.yaml" for depth in range(2, MAX_FLOW_DEPTH + 1)}
    assert run(files) == [("FILE_NOT_FOLLOWED", f"{MAX_FLOW_DEPTH}.yaml:1")]
    assert run({**files, f"{MAX_FLOW_DEPTH}.yaml": "- back"}) == []


def test_flows_that_multiply_are_bounded() -> None:
    files = {"a.yaml": "- runFlow: b.yaml\n" * 40, "b.yaml": "- runFlow: c.yaml\n" * 40, "c.yaml": "- back\n"}
    assert {code for code, _ in run(files)} == {"FILE_NOT_FOLLOWED"}


def test_what_is_wrong_in_a_flow_that_is_run_is_said_with_its_own_line() -> None:
    assert run({"a.yaml": "- runFlow: b.yaml", "b.yaml": "- back\n- fly\n"}) == [("UNKNOWN_TYPE", "b.yaml:2")]
    assert run({"a.yaml": "- runFlow: b.yaml", "b.yaml": "- 'back\n"}) == [("BAD_YAML", "b.yaml:2")]


def test_commands_nested_deeper_than_a_task_are_refused_with_the_place() -> None:
    command = "back"
    for _ in range(5):
        command = f"{{repeat: {{times: 2, commands: [{command}]}}}}"
    assert [code for code, _ in refusals(flow(f"- {command}"))] == ["TOO_DEEP"]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    imported = flow("- fly\n- openLink: x\n- back\n- tapOn: ${1+1}")
    assert [code for code, _ in refusals(imported)] == ["UNKNOWN_TYPE", "NOT_SUPPORTED", "JAVASCRIPT"]
    assert imported.count(What.MAPPED) == 1
