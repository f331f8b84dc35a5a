"""What each command of `droidfleet draft` asks of the controller, what it writes, and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import grpc
import pytest
from pydantic import JsonValue

from droidfleet.v1 import draft_pb2, execution_pb2, task_pb2
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal
from support.fake_drafts import DRAFT_ID, PROPOSAL, delta, draft, entry

EXPLORING = draft_pb2.DRAFT_STATE_EXPLORING
FAILED = draft_pb2.DRAFT_STATE_FAILED

MODEL = draft_pb2.GetModelResponse(
    configured=True,
    model="some-model",
    base_url="https://models.example/v1",
    max_tokens=200_000,
    max_turns=60,
    max_money=1.5,
    currency="USD",
)
OK = execution_pb2.TaskResult(successful=True, code="OK")


@pytest.fixture
def explored(fleet: FakeFleet) -> FakeFleet:
    """A controller whose exploration `d-1` ends with a draft."""
    fleet.answers["GetModel"] = [MODEL]
    fleet.answers["StartDraft"] = [draft_pb2.StartDraftResponse(draft=draft(EXPLORING))]
    fleet.answers["FollowDraft"] = [delta("I look."), entry(1, "ended", ending="DRAFTED", spentTokens=12_345)]
    known(fleet, draft(proposal=PROPOSAL))
    return fleet


def known(fleet: FakeFleet, item: draft_pb2.Draft) -> None:
    fleet.answers["GetDraft"] = [draft_pb2.GetDraftResponse(draft=item)]


def brief(fleet: FakeFleet) -> JsonValue:
    """What was asked for."""
    request = fleet.last(draft_pb2.StartDraftRequest)
    assert isinstance(request, draft_pb2.StartDraftRequest)
    made: JsonValue = json.loads(request.brief_json)
    return made


def tried(fleet: FakeFleet, result: execution_pb2.TaskResult, *, withheld: tuple[str, ...] = ()) -> None:
    trial = draft_pb2.DraftTrial(version=3, result=result, withheld=withheld)
    fleet.answers["TryDraft"] = [draft_pb2.TryDraftResponse(trial=trial)]


def accepted(fleet: FakeFleet, **became: str) -> None:
    item = draft(draft_pb2.DRAFT_STATE_ACCEPTED, proposal=PROPOSAL)
    item.accepted.CopyFrom(draft_pb2.AcceptedDraft(task_id="tea", revision=1, **became))
    fleet.answers["AcceptDraft"] = [draft_pb2.AcceptDraftResponse(draft=item)]


# Start and watch.


def test_start_without_watching_prints_the_id_and_how_to_watch(droidfleet: Command, explored: FakeFleet) -> None:
    ran = droidfleet("draft", "start", "Order tea.", "--device", "phone-01")
    assert (ran.code, ran.out) == (0, f"{DRAFT_ID}\n")
    assert f"droidfleet draft watch {DRAFT_ID}" in ran.err


def test_a_sentence_alone_sets_nothing_but_the_language(droidfleet: Command, explored: FakeFleet) -> None:
    droidfleet("draft", "start", "Order tea.", "--device", "phone-01")
    assert brief(explored) == {"description": "Order tea.", "device": "phone-01", "settings": {"language": "en"}}


def test_options_become_settings(droidfleet: Command, explored: FakeFleet) -> None:
    options = "--name tea --group shelf-a --time-zone Europe/Berlin --retry 2 --max-duration 90 --language zh"
    droidfleet(
        *("draft", "start", "点茶", "-d", "phone-01", *options.split(), "--window", "0 22 * * *, 0 6 * * *"),
        *("--allow-points", "--max-tokens", "50000"),
    )
    assert brief(explored) == {
        "description": "点茶",
        "device": "phone-01",
        "settings": {
            "language": "zh",
            "name": "tea",
            "target": {"group": "shelf-a"},
            "schedule": {"window": {"start": "0 22 * * *", "stop": "0 6 * * *"}, "timeZone": "Europe/Berlin"},
            "retry": {"maxAttempts": 2},
            "maxDurationMs": 90_000,
            "allowPoints": True,
            "maxTokens": 50_000,
        },
    }


@pytest.mark.parametrize(
    "options",
    [["--group", "a", "--all"], ["--once", "2027-03-28T02:30", "--cron", "0 8 * * *"], ["--window", "0 22 * * *"]],
)
def test_options_that_exclude_each_other_start_nothing(
    droidfleet: Command, explored: FakeFleet, options: list[str]
) -> None:
    ran = droidfleet("draft", "start", "Order tea.", "--device", "phone-01", *options)
    assert (ran.code, explored.requests) == (2, [])
    assert "BAD_ARGUMENTS" in ran.err


def test_a_watched_start_shows_the_price_before_and_after(droidfleet: Command, explored: FakeFleet) -> None:
    ran = droidfleet("draft", "start", "Order tea.", "--device", "phone-01", "--watch")
    assert ran.code == 0
    assert re.search(r"200,000 tokens, 1.50 USD, 60 turns.*12,345 tokens spent", ran.err, re.DOTALL)
    assert "12,345 of 200,000 tokens, 0.03 USD" in ran.out


def test_a_watched_exploration_without_a_draft_exits_with_one_and_says_why(
    droidfleet: Command, explored: FakeFleet
) -> None:
    known(explored, draft(FAILED, code="BUDGET_SPENT"))
    ran = droidfleet("draft", "watch", DRAFT_ID)
    assert ran.code == 1
    assert "BUDGET_SPENT: why it ended" in ran.out


def test_watching_as_json_gives_an_entry_a_line(droidfleet: Command, explored: FakeFleet) -> None:
    ran = droidfleet("draft", "watch", DRAFT_ID, "-o", "json")
    assert ran.code == 0
    assert [json.loads(line)["kind"] for line in ran.out.splitlines()] == ["ended"]


def test_watching_survives_a_restart_of_the_controller(droidfleet: Command, explored: FakeFleet) -> None:
    ended = entry(2, "ended", ending="DRAFTED", spentTokens=1)
    explored.answers["FollowDraft"] = [entry(1, "resumed"), Refusal(grpc.StatusCode.UNAVAILABLE), ended]
    ran = droidfleet("draft", "watch", DRAFT_ID, "-o", "json")
    asked = explored.last(draft_pb2.FollowDraftRequest)
    assert isinstance(asked, draft_pb2.FollowDraftRequest)
    assert (ran.code, asked.after_sequence) == (0, 1)


def test_a_busy_phone_is_refused_with_who_has_it(droidfleet: Command, explored: FakeFleet) -> None:
    explored.refusals["StartDraft"] = Refusal(
        grpc.StatusCode.FAILED_PRECONDITION, "DEVICE_BUSY", "phone-01 is used by ann.", "Wait."
    )
    ran = droidfleet("draft", "start", "Order tea.", "--device", "phone-01")
    assert (ran.code, ran.out) == (4, "")
    assert "phone-01 is used by ann." in ran.err


def test_everything_wrong_with_a_brief_is_listed(droidfleet: Command, explored: FakeFleet) -> None:
    issues = [{"path": f"/settings/{name}", "code": "BAD", "message": "no.", "hint": ""} for name in ("name", "retry")]
    explored.refusals["StartDraft"] = Refusal(
        grpc.StatusCode.INVALID_ARGUMENT, "INVALID_BRIEF", "it cannot be.", issues=issues
    )
    ran = droidfleet("draft", "start", "Order tea.", "--device", "phone-01")
    assert ran.code == 2
    assert re.search(r"/settings/name BAD.*/settings/retry BAD", ran.err, re.DOTALL)


# Approvals.


@pytest.mark.parametrize(("word", "allowed"), [("allow", True), ("deny", False)])
def test_allow_and_deny_answer_what_is_waited_for(
    droidfleet: Command, fleet: FakeFleet, word: str, *, allowed: bool
) -> None:
    known(fleet, draft(EXPLORING, pending="a-7"))
    fleet.answers["AnswerApproval"] = [draft_pb2.AnswerApprovalResponse()]
    assert droidfleet("draft", word, DRAFT_ID).code == 0
    assert fleet.last(draft_pb2.AnswerApprovalRequest) == draft_pb2.AnswerApprovalRequest(
        draft_id=DRAFT_ID, approval_id="a-7", allowed=allowed
    )


def test_there_is_nothing_to_allow_when_nothing_is_withheld(droidfleet: Command, fleet: FakeFleet) -> None:
    known(fleet, draft(EXPLORING))
    ran = droidfleet("draft", "allow", DRAFT_ID)
    assert ran.code == 4
    assert "APPROVAL_OVER" in ran.err


def test_a_draft_that_waits_for_a_person_says_so_and_what_to_type(droidfleet: Command, fleet: FakeFleet) -> None:
    known(fleet, draft(EXPLORING, pending="a-7"))
    assert f"droidfleet draft allow {DRAFT_ID}" in droidfleet("draft", "show", DRAFT_ID).out


# Show and list.


def row(out: str, first: str) -> str:
    """The row of a step, and what stands below it in its own columns."""
    return re.split(r"\n(?=\S|$)|\n +(?=later-3)", out[out.index(first) :])[0]


@pytest.mark.parametrize(
    ("step", "beside"),
    [
        ("maybe-2", ['Button "Later" on s2']),
        ("later-3", ['Button "Later" on s2']),
        ("send-4", ["(30 %)", 'Button "Send" on s3', 'the word "Send" on it', 'TextView "Basket" on s4']),
    ],
)
def test_each_step_stands_beside_what_proves_it_and_what_to_review(
    droidfleet: Command, explored: FakeFleet, step: str, beside: list[str]
) -> None:
    shown = row(droidfleet("draft", "show", DRAFT_ID).out, step)
    assert [part for part in beside if part not in shown] == []


def test_a_container_is_not_credited_with_what_proves_the_steps_in_it(droidfleet: Command, explored: FakeFleet) -> None:
    assert row(droidfleet("draft", "show", DRAFT_ID).out, "maybe-2").count("on s2") == 1


def test_show_says_for_whom_when_and_what_the_notes_are(droidfleet: Command, explored: FakeFleet) -> None:
    out = droidfleet("draft", "show", DRAFT_ID).out
    for part in ("Orders green tea.", "group shelf-a", "0 8 * * * (Europe/Berlin)", "- Ask the owner first."):
        assert part in out


def test_what_a_model_wrote_cannot_act_on_a_terminal(droidfleet: Command, fleet: FakeFleet) -> None:
    known(fleet, draft(proposal={**PROPOSAL, "summary": "\x1b[2J[bold]", "notes": ["\u202ex"]}, description="\x07"))
    out = droidfleet("draft", "show", DRAFT_ID).out
    assert "\\e[2J[bold]" in out
    assert not set("\x1b\x07\u202e") & set(out)


@pytest.mark.parametrize(
    "proposal", [{"task": 1, "notes": {}, "evidence": 7}, {"task": {"steps": [None, {}, {"then": 0}]}}]
)
def test_a_persons_version_of_any_shape_can_be_shown(
    droidfleet: Command, fleet: FakeFleet, proposal: dict[str, JsonValue]
) -> None:
    known(fleet, draft(proposal=proposal))
    assert droidfleet("draft", "show", DRAFT_ID).code == 0


@pytest.mark.parametrize(
    ("item", "hint"),
    [
        (draft(EXPLORING), "droidfleet draft watch d-1"),
        (draft(proposal=PROPOSAL), "droidfleet draft try d-1"),
        (draft(FAILED, code="BUDGET_SPENT"), "See what it did: droidfleet draft watch d-1"),
    ],
)
def test_show_says_what_may_be_done_next(
    droidfleet: Command, fleet: FakeFleet, item: draft_pb2.Draft, hint: str
) -> None:
    known(fleet, item)
    assert hint in droidfleet("draft", "show", DRAFT_ID).err


def test_a_draft_with_errors_is_to_be_mended_before_it_is_tried(droidfleet: Command, fleet: FakeFleet) -> None:
    item = draft(proposal=PROPOSAL)
    item.issues.add(path="/task/steps/0/selector", code="NO_EVIDENCE", message="it was never seen.", hint="")
    known(fleet, item)
    ran = droidfleet("draft", "show", DRAFT_ID)
    assert "/task/steps/0/selector NO_EVIDENCE: it was never seen." in ran.out
    assert ran.err == f"Mend it: droidfleet draft edit {DRAFT_ID}\n"


def test_the_task_alone_is_what_other_commands_read(droidfleet: Command, explored: FakeFleet) -> None:
    assert json.loads(droidfleet("draft", "show", DRAFT_ID, "--task").out) == PROPOSAL["task"]


def test_there_is_no_document_before_there_is_a_draft(droidfleet: Command, fleet: FakeFleet) -> None:
    known(fleet, draft(EXPLORING))
    ran = droidfleet("draft", "show", DRAFT_ID, "--document")
    assert (ran.code, ran.out) == (4, "")


def test_list_asks_for_states_and_shows_what_each_is_for(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["ListDrafts"] = [draft_pb2.ListDraftsResponse(drafts=[draft()])]
    ran = droidfleet("draft", "list", "--state", "ready")
    request = fleet.last(draft_pb2.ListDraftsRequest)
    assert isinstance(request, draft_pb2.ListDraftsRequest)
    assert list(request.states) == [draft_pb2.DRAFT_STATE_READY]
    assert re.search(r"d-1 +READY +phone-01 +Order tea\.", ran.out)


def test_list_shows_which_draft_waits_for_a_person(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["ListDrafts"] = [draft_pb2.ListDraftsResponse(drafts=[draft(EXPLORING, pending="a-7")])]
    assert re.search(r"d-1 +EXPLORING, asks", droidfleet("draft", "list").out)


def test_list_refuses_a_state_that_does_not_exist_and_names_those_that_do(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    ran = droidfleet("draft", "list", "--state", "done")
    assert ran.code == 2
    assert "EXPLORING, READY" in ran.err


def test_an_unknown_draft_is_not_found(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["GetDraft"] = Refusal(grpc.StatusCode.NOT_FOUND, "DRAFT_NOT_FOUND", "there is none.")
    assert droidfleet("draft", "show", "d-9").code == 4


# Edit.


def test_edit_sends_the_file_for_the_version_that_was_read(
    droidfleet: Command, explored: FakeFleet, tmp_path: Path
) -> None:
    file = tmp_path / "draft.json"
    file.write_text('{"summary": "mine"}')
    explored.answers["EditDraft"] = [draft_pb2.EditDraftResponse(draft=draft(proposal=PROPOSAL))]
    ran = droidfleet("draft", "edit", DRAFT_ID, str(file))
    assert explored.last(draft_pb2.EditDraftRequest) == draft_pb2.EditDraftRequest(
        draft_id=DRAFT_ID, version=3, draft_json='{"summary": "mine"}'
    )
    assert (ran.code, f"droidfleet draft try {DRAFT_ID}" in ran.err) == (0, True)


def test_an_edit_with_errors_is_kept_lists_them_and_exits_with_two(droidfleet: Command, explored: FakeFleet) -> None:
    item = draft(proposal=PROPOSAL)
    for place in "01":
        item.issues.append(task_pb2.ValidationIssue(path=f"/task/steps/{place}", code="BAD", message="no."))
    explored.answers["EditDraft"] = [draft_pb2.EditDraftResponse(draft=item)]
    ran = droidfleet("draft", "edit", DRAFT_ID, "-", stdin=b"{}")
    assert (ran.code, ran.err) == (2, "version 3: 2 errors\n")
    assert ran.out == "/task/steps/0 BAD: no.\n/task/steps/1 BAD: no.\n"


def test_an_editor_needs_a_terminal(droidfleet: Command, explored: FakeFleet) -> None:
    ran = droidfleet("draft", "edit", DRAFT_ID)
    assert ran.code == 2
    assert "NO_EDITOR" in ran.err


# Try.


def test_try_leaves_to_the_controller_what_is_withheld_and_shows_it(droidfleet: Command, explored: FakeFleet) -> None:
    tried(explored, OK, withheld=("send-4",))
    ran = droidfleet("draft", "try", DRAFT_ID)
    request = explored.last(draft_pb2.TryDraftRequest)
    assert isinstance(request, draft_pb2.TryDraftRequest)
    assert (request.version, request.step_id, list(request.allow_steps)) == (3, "", [])
    assert re.search(r"Left out +send-4", ran.out)
    assert (ran.code, f"droidfleet draft accept {DRAFT_ID}" in ran.err) == (0, True)


def test_try_passes_on_what_is_allowed_and_types_its_values(
    droidfleet: Command, explored: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROIDFLEET_SECRET_PIN", "4711")
    tried(explored, OK)
    droidfleet(
        *("draft", "try", DRAFT_ID, "--step", "send-4", "--allow-step", "send-4", "--device", "phone-02"),
        *("--input", "count=2", "--secret", "pin", "--request-id", "once"),
    )
    assert explored.last(draft_pb2.TryDraftRequest) == draft_pb2.TryDraftRequest(
        draft_id=DRAFT_ID,
        version=3,
        step_id="send-4",
        allow_steps=["send-4"],
        device="phone-02",
        input_values_json='{"count": 2, "pin": "4711"}',
        request_id="once",
    )


def test_a_trial_that_failed_exits_with_one_and_does_not_propose_to_accept(
    droidfleet: Command, explored: FakeFleet
) -> None:
    tried(explored, execution_pb2.TaskResult(code="ELEMENT_NOT_FOUND", failed_step_id="send-4"))
    ran = droidfleet("draft", "try", DRAFT_ID)
    assert ran.code == 1
    assert re.search(r"Failed step +send-4", ran.out)
    assert "accept" not in ran.err


# Accept, discard, stop.


@pytest.mark.parametrize(
    ("use", "became", "hint"),
    [
        ("task", {}, "droidfleet task run tea"),
        ("rollout", {"rollout_id": "ro-1"}, "droidfleet rollout watch ro-1"),
        ("schedule", {"schedule": "tea"}, "droidfleet schedule show tea"),
    ],
)
def test_accept_says_what_it_is_for_and_what_comes_next(
    droidfleet: Command, explored: FakeFleet, use: str, became: dict[str, str], hint: str
) -> None:
    accepted(explored, **became)
    ran = droidfleet("draft", "accept", DRAFT_ID, "--use", use, "--yes")
    request = explored.last(draft_pb2.AcceptDraftRequest)
    assert isinstance(request, draft_pb2.AcceptDraftRequest)
    assert request.use == draft_pb2.DraftUse.Value(f"DRAFT_USE_{use.upper()}")
    assert (ran.code, ran.out, hint in ran.err) == (0, "tea revision 1\n", True)


def test_accept_names_the_version_that_was_reviewed(droidfleet: Command, explored: FakeFleet) -> None:
    explored.refusals["AcceptDraft"] = Refusal(grpc.StatusCode.ABORTED, "STALE_VERSION", "it changed.", "Look again.")
    ran = droidfleet("draft", "accept", DRAFT_ID, "--version", "2", "--yes")
    request = explored.last(draft_pb2.AcceptDraftRequest)
    assert isinstance(request, draft_pb2.AcceptDraftRequest)
    assert (request.version, ran.code) == (2, 4)


def test_discard_ends_it(droidfleet: Command, fleet: FakeFleet) -> None:
    item = draft(draft_pb2.DRAFT_STATE_DISCARDED)
    fleet.answers["DiscardDraft"] = [draft_pb2.DiscardDraftResponse(draft=item)]
    assert droidfleet("draft", "discard", DRAFT_ID).err == "draft d-1 is discarded.\n"


def test_stop_gives_the_draft_as_it_is_now(droidfleet: Command, fleet: FakeFleet) -> None:
    item = draft(draft_pb2.DRAFT_STATE_STOPPED)
    fleet.answers["StopDraft"] = [draft_pb2.StopDraftResponse(draft=item)]
    assert json.loads(droidfleet("draft", "stop", DRAFT_ID, "-o", "json").out)["state"] == "STOPPED"


# Pictures and the model.


def test_a_picture_is_saved_and_does_not_replace_a_file(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.answers["GetDraftPicture"] = [draft_pb2.GetDraftPictureResponse(media_type="image/png", data=b"picture")]
    file = tmp_path / "screen.png"
    assert droidfleet("draft", "picture", DRAFT_ID, "9f86d0", str(file)).code == 0
    assert file.read_bytes() == b"picture"
    assert droidfleet("draft", "picture", DRAFT_ID, "9f86d0", str(file)).code == 4


def test_model_says_what_a_draft_may_cost(droidfleet: Command, explored: FakeFleet) -> None:
    out = droidfleet("draft", "model").out
    assert re.search(r"A draft may use +200,000 tokens, 1.50 USD, 60 turns", out)


def test_model_says_plainly_that_rules_are_no_language_model(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetModel"] = [draft_pb2.GetModelResponse(configured=True, model="practice", practice=True)]
    assert "rules, no language model" in droidfleet("draft", "model").out


def test_without_a_model_it_says_how_to_have_one(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetModel"] = [draft_pb2.GetModelResponse()]
    assert "--model-url" in droidfleet("draft", "model").out
