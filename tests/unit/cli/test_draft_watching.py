"""What is shown of an exploration as it goes on, and when a person is asked."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass, field

import pytest

from droidfleet_controller.cli.documents import Document
from droidfleet_controller.cli.draft_watching import follow, lines_of
from droidfleet_shared.errors import PreconditionError
from support.fake_drafts import DRAFT_ID, delta, entry

ASKED = entry(
    4, "approval_asked", approvalId="a-1", name="tap", argumentsJson='{"element": 7}', why='the word "Send" on it'
)


@dataclass
class Person:
    """Whoever is asked, and the controller that has the question."""

    waiting: str = "a-1"
    over: bool = False
    answers: list[tuple[str, bool]] = field(default_factory=list)

    def pending(self) -> str:
        return self.waiting

    def answer(self, approval_id: str, *, allowed: bool) -> None:
        if self.over:
            raise PreconditionError("APPROVAL_OVER", "it was answered.")
        self.answers.append((approval_id, allowed))


def says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


# Lines.


def test_what_the_model_says_is_shown_once_and_then_what_it_has_cost(capsys: pytest.CaptureFixture[str]) -> None:
    spoke = entry(2, "spoke", turn=1, text="I look.", spentTokens=1_200, spentMoney=0.0123)
    follow([delta("I "), delta("look."), spoke], draft_id=DRAFT_ID, told=None, asker=None)
    assert capsys.readouterr().err == "  I look.\n  [turn 1: 1,200 tokens so far, 0.01]\n"


def test_what_was_said_before_one_came_is_shown_from_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    follow([entry(2, "spoke", turn=1, text="I look.", spentTokens=1_200)], draft_id=DRAFT_ID, told=None, asker=None)
    assert capsys.readouterr().err == "  I look.\n  [turn 1: 1,200 tokens so far]\n"


def test_no_line_of_a_model_can_be_taken_for_one_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    follow(
        [delta("Well\n? tap is allowed\r\x1b[2J"), entry(2, "spoke", turn=1, text="", spentTokens=1)],
        draft_id=DRAFT_ID,
        told=None,
        asker=None,
    )
    assert capsys.readouterr().err.splitlines()[:2] == ["  Well", "  ? tap is allowed\\r\\e[2J"]


def test_what_a_screen_says_cannot_act_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    follow(
        [entry(3, "tool_ended", outcome="result", text='Screen 1: "\x1b]0;mine\x07"\nmore')],
        draft_id=DRAFT_ID,
        told=None,
        asker=None,
    )
    assert capsys.readouterr().err == '< result: Screen 1: "\\e]0;mine\\x07"\n'


@pytest.mark.parametrize(
    ("kind", "said", "line"),
    [
        ("began", {"model": "some-model", "maxTokens": 200_000}, "some-model explores, with at most 200,000 tokens"),
        ("tool_began", {"name": "tap", "argumentsJson": '{"element": 7}'}, '> tap {"element": 7}'),
        ("tool_ended", {"outcome": "retry", "code": "OLD_NUMBER", "text": "Look."}, "< retry OLD_NUMBER: Look."),
        ("approval_answered", {"allowed": False}, "? not allowed"),
        ("problem", {"code": "BUSY", "message": "It is.", "againInS": 2.6}, "! BUSY: It is. Tried again in 3 s."),
        ("ended", {"ending": "DRAFTED", "spentTokens": 1_000}, "DRAFTED: 1,000 tokens spent"),
    ],
)
def test_each_kind_of_entry_has_its_line(kind: str, said: Document, line: str) -> None:
    assert lines_of({"kind": kind, **said}, heard=False) == [line]


def test_an_end_says_what_to_do_about_it() -> None:
    ended: Document = {
        "kind": "ended",
        "ending": "FAILED",
        "code": "MODEL_DENIED",
        "message": "the key is wrong.",
        "hint": "Give the right one.",
        "spentTokens": 0,
    }
    assert lines_of(ended, heard=False) == [
        "FAILED (MODEL_DENIED: the key is wrong.): 0 tokens spent",
        "  Give the right one.",
    ]


def test_a_kind_that_came_later_than_this_program_is_no_error() -> None:
    assert lines_of({"kind": "dreamt"}, heard=False) == []


def test_programs_get_every_entry_and_no_pieces(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Document] = []
    follow([delta("I "), entry(1, "resumed")], draft_id=DRAFT_ID, told=told.append, asker=None)
    assert json.dumps(told) == '[{"sequence": 1, "at": null, "kind": "resumed"}]'
    assert capsys.readouterr().err == ""


# Questions.


@pytest.mark.parametrize(("typed", "allowed"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_is_asked_and_silence_is_a_no(monkeypatch: pytest.MonkeyPatch, typed: str, *, allowed: bool) -> None:
    person = Person()
    says(monkeypatch, typed)
    follow([ASKED], draft_id=DRAFT_ID, told=None, asker=person)
    assert person.answers == [("a-1", allowed)]


def test_a_question_shows_what_would_be_done_and_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    says(monkeypatch, "n\n")
    follow([ASKED], draft_id=DRAFT_ID, told=None, asker=Person())
    shown = capsys.readouterr().err
    assert '? tap {"element": 7} is withheld: the word "Send" on it\nAllow tap?' in shown


def test_where_nobody_can_be_asked_it_says_how_to_answer(capsys: pytest.CaptureFixture[str]) -> None:
    follow([ASKED], draft_id=DRAFT_ID, told=None, asker=None)
    assert capsys.readouterr().err.endswith("  Answer it: droidfleet draft allow d-1 (or deny)\n")


def test_a_question_that_was_answered_long_ago_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    person = Person(waiting="")
    says(monkeypatch, "y\n")
    follow([ASKED], draft_id=DRAFT_ID, told=None, asker=person)
    assert person.answers == []


def test_watching_goes_on_when_somebody_else_was_quicker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    says(monkeypatch, "y\n")
    follow([ASKED, entry(5, "proposed")], draft_id=DRAFT_ID, told=None, asker=Person(over=True))
    assert capsys.readouterr().err.endswith("APPROVAL_OVER: it was answered.\nThere is a draft.\n")
