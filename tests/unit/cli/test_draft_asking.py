"""`droidfleet draft` with a person at the terminal: questions of an exploration, accepting, an editor."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from droidfleet.v1 import draft_pb2
from droidfleet_controller.cli.app import main
from support.commandline import Command, Ran
from support.fake_controller import FakeFleet
from support.fake_drafts import DRAFT_ID, PROPOSAL, draft, entry

EXPLORING = draft_pb2.DRAFT_STATE_EXPLORING


class Terminal(io.TextIOWrapper):
    """Standard input or error of a person."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def person(address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `droidfleet ARGS...` with a person at the terminal."""

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        screen = io.BytesIO()
        monkeypatch.setenv("DROIDFLEET_API", address)
        monkeypatch.setattr(sys, "argv", ["droidfleet", *arguments])
        monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(stdin)))
        monkeypatch.setattr(sys, "stderr", Terminal(screen, write_through=True))
        with pytest.raises(SystemExit) as left:
            main()
        return Ran(int(left.value.code or 0), capsys.readouterr().out, screen.getvalue().decode())

    return run


@pytest.fixture
def asking(fleet: FakeFleet) -> FakeFleet:
    """A controller whose exploration withholds a call."""
    asked = entry(1, "approval_asked", approvalId="a-7", name="tap", argumentsJson="{}", why='the word "Send" on it')
    fleet.answers["FollowDraft"] = [asked, entry(2, "ended", ending="DRAFTED", spentTokens=1)]
    fleet.answers["GetDraft"] = [
        draft_pb2.GetDraftResponse(draft=draft(EXPLORING, pending="a-7")),
        draft_pb2.GetDraftResponse(draft=draft(proposal=PROPOSAL)),
    ]
    fleet.answers["AnswerApproval"] = [draft_pb2.AnswerApprovalResponse()]
    return fleet


@pytest.fixture
def ready(fleet: FakeFleet) -> FakeFleet:
    """A controller with a draft for review."""
    fleet.answers["GetDraft"] = [draft_pb2.GetDraftResponse(draft=draft(proposal=PROPOSAL))]
    accepted = draft(draft_pb2.DRAFT_STATE_ACCEPTED, proposal=PROPOSAL)
    accepted.accepted.task_id = "tea"
    fleet.answers["AcceptDraft"] = [draft_pb2.AcceptDraftResponse(draft=accepted)]
    fleet.answers["EditDraft"] = [draft_pb2.EditDraftResponse(draft=draft(proposal=PROPOSAL))]
    return fleet


def changed(fleet: FakeFleet, kind: type[object]) -> bool:
    """Whether such a request was made."""
    return any(isinstance(request, kind) for request in fleet.requests)


def test_who_watches_is_asked_and_the_answer_is_sent(person: Command, asking: FakeFleet) -> None:
    ran = person("draft", "watch", DRAFT_ID, stdin=b"y\n")
    assert ran.code == 0
    assert asking.last(draft_pb2.AnswerApprovalRequest) == draft_pb2.AnswerApprovalRequest(
        draft_id=DRAFT_ID, approval_id="a-7", allowed=True
    )


def test_who_leaves_a_question_is_told_that_the_exploration_goes_on(person: Command, asking: FakeFleet) -> None:
    ran = person("draft", "watch", DRAFT_ID, stdin=b"")
    assert f"The exploration goes on. Watch it: droidfleet draft watch {DRAFT_ID}" in ran.err
    assert not changed(asking, draft_pb2.AnswerApprovalRequest)


def test_programs_are_not_asked(person: Command, asking: FakeFleet) -> None:
    person("draft", "watch", DRAFT_ID, "-o", "json", stdin=b"y\n")
    assert not changed(asking, draft_pb2.AnswerApprovalRequest)


def test_accepting_shows_the_draft_and_asks(person: Command, ready: FakeFleet) -> None:
    ran = person("draft", "accept", DRAFT_ID, "--use", "schedule", stdin=b"y\n")
    assert ran.err.index("Orders green tea.") < ran.err.index("Accept it (schedule)?")
    assert (ran.code, changed(ready, draft_pb2.AcceptDraftRequest)) == (0, True)


def test_what_is_not_confirmed_is_not_accepted(person: Command, ready: FakeFleet) -> None:
    ran = person("draft", "accept", DRAFT_ID, stdin=b"n\n")
    assert (ran.code, changed(ready, draft_pb2.AcceptDraftRequest)) == (4, False)


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(program))


def test_what_an_editor_leaves_is_put_in_place(
    person: Command, ready: FakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, """sed -i.bak 's/"probability": 30/"probability": 100/' "$1" """)
    assert person("draft", "edit", DRAFT_ID).code == 0
    request = ready.last(draft_pb2.EditDraftRequest)
    assert isinstance(request, draft_pb2.EditDraftRequest)
    assert '"probability": 100' in request.draft_json


@pytest.mark.parametrize(("script", "code"), [("true", 0), ("exit 1", 2)])
def test_an_editor_that_changed_nothing_or_failed_changes_nothing(
    person: Command, ready: FakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, script: str, code: int
) -> None:
    editor(tmp_path, monkeypatch, script)
    assert person("draft", "edit", DRAFT_ID).code == code
    assert not changed(ready, draft_pb2.EditDraftRequest)
