"""`droidfleet record`: commands become steps on the phone and a task in a file."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet.v1 import device_pb2, execution_pb2
from droidfleet_controller.cli import live
from droidfleet_controller.cli.app import main
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.recorder import loop
from droidfleet_controller.cli.recorder.commands import (
    Back,
    Help,
    Look,
    NodeWord,
    Open,
    Press,
    Quit,
    Read,
    Scroll,
    Tap,
    Type,
    Undo,
    WaitFor,
    read,
)
from droidfleet_controller.cli.recorder.recording import Recording, scrolled_to
from droidfleet_controller.cli.screens import ScreenView, escaped
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.validate import validate_template
from support.commandline import Command, Ran
from support.fake_controller import FakeFleet
from support.looks import look
from support.screens import field, node
from support.workplace import eventually

LINE = (0, 0, 1080, 100)
SECOND = (0, 200, 1080, 300)
THIRD = (0, 400, 1080, 500)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, fleet: FakeFleet) -> None:
    """No pauses; a screen with a button, a field, and a price."""
    monkeypatch.setattr(live, "LOOK_PAUSE_S", 0.0)
    monkeypatch.setattr(loop, "LOOK_PAUSE_S", 0.0)
    monkeypatch.setattr(loop, "SCRIPT_WAIT_S", 0.0)
    fleet.screens = [
        look(
            node("Buy", LINE, class_name="android.widget.Button", clickable=True),
            field(SECOND, hint="Name", resource_id="com.example.shop:id/name"),
            node("$3.00", THIRD, resource_id="com.example.shop:id/price"),
        )
    ]


def sent(fleet: FakeFleet) -> list[dict[str, object]]:
    """The steps that the phone was told to run."""
    return [json.loads(each.step_json) for each in fleet.requests if isinstance(each, device_pb2.RunStepRequest)]


# Commands.


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("12", Tap(NodeWord(12))),
        ('"Add to \\"cart\\""', Tap(NodeWord(text='Add to "cart"'))),
        ("t 3 two  blanks ", Type(NodeWord(3), "two  blanks ")),
        ('t "Full name" Ada', Type(NodeWord(text="Full name"), "Ada")),
        ("t 3", Type(NodeWord(3), "")),
        ("b", Back()),
        ("k enter", Press("ENTER")),
        ("k KEYCODE_HOME", Press("HOME")),
        ("s", Scroll("DOWN")),
        ("s up", Scroll("UP")),
        ("w 1", WaitFor(NodeWord(1))),
        ('x "Total" total', Read(NodeWord(text="Total"), "total")),
        ("o com.example.shop", Open("com.example.shop")),
        ("u", Undo()),
        ("q", Quit()),
        ("?", Help()),
        ("", Look()),
    ],
)
def test_commands_are_read(line: str, command: object) -> None:
    assert read(f"{line}\n") == command


@pytest.mark.parametrize(
    "line", ["z", "12 x", '"open', "t", "t name x", "k", "k FOO", "k back", "s round", "x 3", "x 3 a-b", "b b", '"a"b']
)
def test_what_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(InvalidInputError, match="BAD_COMMAND"):
        read(line)


@given(st.text())
def test_any_line_is_a_command_or_is_refused(line: str) -> None:
    try:
        code = read(line).__class__.__name__
    except InvalidInputError as error:
        code = error.code
    assert code == "BAD_COMMAND" or code.isalpha()


# The task.


def test_what_was_done_becomes_a_task(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    out = tmp_path / "buy.json"
    ran = droidfleet(
        "record", "--device", "phone-01", "--out", str(out), stdin=b't "Name" Ada\nx "$3.00" price\n"Buy"\nb\nq\n'
    )
    assert ran.code == 0, ran
    body = json.loads(out.read_text())
    package = {"packageName": "com.example.shop"}
    assert body == {
        "schemaVersion": 1,
        "taskId": "buy",
        "steps": [
            {"id": "type-name", "action": "INPUT", **package, "selector": {"resourceId": "name"}, "value": "Ada"},
            {
                "id": "read-price",
                "action": "EXTRACT_TEXT",
                **package,
                "selector": {"resourceId": "price"},
                "outputField": "price",
            },
            {"id": "tap-buy", "action": "CLICK", **package, "selector": {"text": "Buy"}},
            {"id": "back", "action": "BACK", **package},
        ],
    }
    assert sent(fleet) == body["steps"]
    assert validate_template(out.read_text()).valid


def test_the_session_is_closed_at_the_end(droidfleet: Command, fleet: FakeFleet) -> None:
    droidfleet("record", "--device", "phone-01", stdin=b"b\n")
    closed = fleet.last(device_pb2.CloseSessionRequest)
    assert closed == device_pb2.CloseSessionRequest(device="phone-01", session_id="session-1")


def test_without_a_file_the_task_is_printed_alone(droidfleet: Command) -> None:
    ran = droidfleet("record", "--device", "phone-01", stdin=b"b\n")
    assert json.loads(ran.out)["taskId"] == "recorded-on-phone-01"


def test_a_step_that_was_taken_back_is_not_in_the_task(droidfleet: Command, fleet: FakeFleet) -> None:
    ran = droidfleet("record", "--device", "phone-01", stdin=b'b\n"Buy"\nu\n')
    assert [step["id"] for step in json.loads(ran.out)["steps"]] == ["back"]
    assert len(sent(fleet)) == 2


def test_steps_of_one_name_get_ids_of_their_own(droidfleet: Command) -> None:
    ran = droidfleet("record", "--device", "phone-01", stdin=b"b\nb\nb\n")
    assert [step["id"] for step in json.loads(ran.out)["steps"]] == ["back", "back-2", "back-3"]


def test_a_password_is_typed_and_not_recorded(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.screens = [look(field(LINE, hint="Password", password=True))]
    ran = droidfleet("record", "--device", "phone-01", stdin=b't "Password" hunter2\n')
    assert "hunter2" not in ran.out + ran.err
    assert sent(fleet)[0]["value"] == "hunter2"
    body = json.loads(ran.out)
    assert body["inputs"]["password"]["type"] == "secret"
    assert body["steps"][0]["value"] == "${inputs.password}"


def test_a_dollar_brace_is_text_and_no_reference(droidfleet: Command, fleet: FakeFleet) -> None:
    ran = droidfleet("record", "--device", "phone-01", stdin=b't "Name" ${x}\n')
    assert json.loads(ran.out)["steps"][0]["value"] == "$${x}" == sent(fleet)[0]["value"]


def test_a_script_ends_at_its_first_failure_and_writes_nothing(
    droidfleet: Command, fleet: FakeFleet, tmp_path: Path
) -> None:
    fleet.step_results = [execution_pb2.TaskResult(code="TARGET_NOT_FOUND", message="It is gone.")]
    ran = droidfleet("record", "-d", "phone-01", "--out", str(tmp_path / "a.json"), stdin=b'"Buy"\nb\n')
    assert ran.code == 4
    assert "TARGET_NOT_FOUND: line 1, '\"Buy\"': It is gone." in ran.err
    assert len(sent(fleet)) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_names_what_is_not_there_says_what_is(droidfleet: Command) -> None:
    ran = droidfleet("record", "-d", "phone-01", stdin=b'"Sell"\n')
    assert "NODE_NOT_FOUND: line 1" in ran.err
    assert 'Button "Buy"' in ran.err


def test_an_existing_file_is_kept_unless_it_may_be_replaced(droidfleet: Command, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    out.write_text("mine")
    refused = droidfleet("record", "-d", "phone-01", "--out", str(out), stdin=b"b\n")
    assert (refused.code, out.read_text()) == (4, "mine")
    assert droidfleet("record", "-d", "phone-01", "--out", str(out), "--force", stdin=b"b\n").code == 0
    assert json.loads(out.read_text())["taskId"] == "a"


def test_nothing_recorded_is_no_task(droidfleet: Command) -> None:
    assert "NOTHING_RECORDED" in droidfleet("record", "-d", "phone-01", stdin=b"q\n").err


def test_what_is_read_is_not_named_by_the_text_that_is_read(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.screens = [look(node("Delivered", LINE, resource_id="com.example.shop:id/state"))]
    ran = droidfleet("record", "-d", "phone-01", stdin=b'x "Delivered" state\n"Delivered"\n')
    read_it, tapped = json.loads(ran.out)["steps"]
    assert (read_it["selector"], tapped["selector"]) == ({"resourceId": "state"}, {"text": "Delivered"})


def test_a_note_says_when_there_is_no_other_name_than_the_text_that_is_read(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    fleet.screens = [look(node("Delivered", LINE))]
    ran = droidfleet("record", "-d", "phone-01", stdin=b'x "Delivered" state\n')
    assert "may not last: it is named by the very text that is read" in ran.err


def test_a_note_says_which_step_may_not_last(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.screens = [look(node("$3.00", LINE))]
    assert "may not last: it holds an amount of money" in droidfleet("record", "-d", "a", stdin=b'"$3.00"\n').err


# A person at a terminal.


class Terminal(io.TextIOWrapper):
    """Standard input as a person types it."""

    def isatty(self) -> bool:
        return True


class Keys(io.BytesIO):
    """What is typed; ``interrupted``: then Ctrl-C."""

    interrupted = False

    def read1(self, size: int | None = -1, /) -> bytes:
        typed = super().read1(size)
        if not typed and self.interrupted:
            raise KeyboardInterrupt
        return typed


@pytest.fixture
def person(address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `droidfleet ARGS...` with a person at the terminal."""

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setenv("DROIDFLEET_API", address)
        monkeypatch.setattr(sys, "argv", ["droidfleet", *arguments])
        monkeypatch.setattr(sys, "stdin", Terminal(Keys(stdin)))
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return Ran(int(left.value.code or 0), out, err)

    return run


def test_a_person_sees_the_nodes_with_numbers_and_chooses_by_them(person: Command, fleet: FakeFleet) -> None:
    ran = person("record", "-d", "phone-01", stdin=b"1\nq\n")
    assert any(line.split()[:3] == ["1", "Button", '"Buy"'] for line in ran.err.splitlines())
    assert sent(fleet)[0]["selector"] == {"text": "Buy"}


def test_a_person_may_try_again(person: Command, fleet: FakeFleet) -> None:
    fleet.step_results = [execution_pb2.TaskResult(code="TARGET_DISABLED", message="It is disabled.")]
    ran = person("record", "-d", "phone-01", stdin=b"99\nwhat\n1\n1\nq\n")
    assert [code for code in ("BAD_NUMBER", "BAD_COMMAND", "TARGET_DISABLED") if code in ran.err] == [
        "BAD_NUMBER",
        "BAD_COMMAND",
        "TARGET_DISABLED",
    ]
    assert len(json.loads(ran.out)["steps"]) == 1


def test_what_a_person_recorded_is_kept_when_they_interrupt_it(
    person: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Keys, "interrupted", True)
    out = tmp_path / "a.json"
    ran = person("record", "-d", "phone-01", "--out", str(out), stdin=b"b\n")
    assert (ran.code, len(json.loads(out.read_text())["steps"])) == (130, 1)


def test_a_session_is_renewed_while_a_person_thinks(
    address: str, fleet: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RENEW_S", 0.01)
    with ControllerClient(address) as client, live.LiveDevice(client, "phone-01", doing="a test"):
        eventually(
            lambda: any(isinstance(each, device_pb2.RenewSessionRequest) for each in fleet.requests),
            within_s=10,
            what="renewed",
        )


# Scrolls.

SCROLL: dict[str, object] = {"id": "s", "action": "SCROLL", "direction": "DOWN", "maxScrolls": 1}
UP: dict[str, object] = SCROLL | {"direction": "UP"}
TAP: dict[str, object] = {"id": "t", "action": "CLICK", "selector": {"text": "Buy"}}
BACK: dict[str, object] = {"id": "b", "action": "BACK"}


def test_scrolls_before_a_choice_become_one_that_looks_for_it() -> None:
    made = scrolled_to([SCROLL, SCROLL | {"id": "s2"}, TAP])
    assert made == [SCROLL | {"until": {"text": "Buy"}, "maxScrolls": 10}, TAP]


def test_many_scrolls_leave_room_for_a_smaller_screen() -> None:
    assert scrolled_to([SCROLL] * 8 + [TAP])[0]["maxScrolls"] == 16


def test_scrolls_with_no_choice_after_them_are_counted() -> None:
    assert scrolled_to([SCROLL, SCROLL, BACK]) == [SCROLL | {"maxScrolls": 2}, BACK]


def test_only_the_last_of_scrolls_to_and_fro_looks_for_the_choice() -> None:
    assert scrolled_to([SCROLL, UP, TAP]) == [SCROLL, UP | {"until": {"text": "Buy"}, "maxScrolls": 10}, TAP]


@given(st.text(alphabet="${}a"))
def test_an_escaped_text_is_read_as_it_was(text: str) -> None:
    assert escaped(text).replace("$${", "${") == text


@given(
    st.lists(
        st.sampled_from([Back(), Scroll("DOWN"), Scroll("UP"), Open("com.example.shop"), Press("HOME")]), min_size=1
    )
)
def test_whatever_was_recorded_is_a_valid_task(actions: list[Back | Scroll | Open | Press]) -> None:
    recording = Recording("task")
    view = ScreenView(look(node("Buy", LINE)))
    for action in actions[:200]:
        recording.add(recording.plan(action, view, {}))
    assert validate_template(recording.document()).valid
