"""The door between records of rollouts and schedules and protobuf: every field arrives, every word has its value."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum

import pytest
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from droidfleet.v1 import rollout_pb2, schedule_pb2
from droidfleet_controller.api import convert_rollout as convert
from droidfleet_controller.api import convert_schedule
from droidfleet_controller.api.convert import instant
from droidfleet_controller.dispatch.execution import TaskText
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.rollouts.report.service import ReportForm
from droidfleet_controller.rollouts.rollout import (
    Decision,
    Member,
    MembershipChange,
    Movement,
    Rollout,
    Rule,
    Signature,
    Subject,
    Wait,
    Waiting,
)
from droidfleet_controller.rollouts.spec import RolloutSpec, SpecModel
from droidfleet_controller.rollouts.states import (
    Control,
    MemberState,
    Outcome,
    ReasonCode,
    RolloutState,
    WaveState,
)
from droidfleet_controller.rollouts.views import (
    Confirmation,
    Failure,
    LiveCounts,
    MemberView,
    PlannedRollout,
    PlannedWave,
    Preflight,
    RolloutView,
    StartedRollout,
    WaveView,
)
from droidfleet_controller.schedules.schedule import Occurrence, OccurrenceState, Planned, Schedule
from droidfleet_controller.schedules.spec import ScheduleSpec
from droidfleet_controller.schedules.views import SavedSchedule, SchedulePreview, ScheduleView
from unit.controller.builders import NOW
from unit.controller.test_convert import unset

LATER = NOW + timedelta(minutes=5)

SPEC: dict[str, object] = {
    "name": "spring",
    "task": "shop-order",
    "target": {"query": "site=berlin"},
    "waves": [{"size": 1}, {"size": "12.5%", "gate": {"maxFailures": "5%", "soak": "1h30m"}}, {}],
    "ratePerMinute": {"base": 10, "factor": 2.0, "raiseAfter": 5, "limit": 100},
    "window": {"start": "0 22 * * *", "stop": "0 6 * * *", "timeZone": "Europe/Berlin"},
    "inputs": {"item": "tea", "pin": "[secret]"},
    "deviceInputs": {"phone-01": {"item": "tent"}},
}

ISSUE = SpecIssue("/waves", IssueCode.WAVES_DO_NOT_FIT, "they do not fit.", "Fewer.")


def parsed(model: type[SpecModel], document: object) -> SpecModel:
    return model.model_validate_json(json.dumps(document))


def view() -> RolloutView:
    """A rollout with something everywhere."""
    spec = parsed(RolloutSpec, SPEC)
    assert isinstance(spec, RolloutSpec)
    rollout = Rollout(
        rollout_id="ro-1",
        spec=spec,
        subject=Subject(
            task_id="shop-order",
            revision=2,
            text=TaskText(sha256="a" * 64, add_name=True, add_revision=True),
            step_count=4,
            bound_s=60.0,
            repeatable=False,
        ),
        state=RolloutState.PAUSED,
        reason_code=ReasonCode.BELOW_THRESHOLD,
        reason="3 of 4",
        wave=2,
        version=7,
        created_at=NOW,
        updated_at=LATER,
        moved_at=LATER,
        ended_at=LATER,
        schedule_id="s-1",
    )
    wave = WaveView(
        number=2,
        state=WaveState.SOAKING,
        members=20,
        waiting=1,
        retrying=2,
        live=LiveCounts(queued=1, assigned=2, accepted=3, running=4),
        outcomes={Outcome.SUCCEEDED: 6, Outcome.TIMED_OUT: 1, Outcome.FAILED: 0},
        gate="advances at 18 of 20; pauses at the 3rd failure",
        successes_needed=18,
        stops_at_failure=3,
    )
    failure = Failure(
        signature=Signature("TARGET_AMBIGUOUS", "add", "com.example/.Main"),
        phones=3,
        breaker_open=True,
        execution_id="x-1",
        picture_sha256="b" * 64,
    )
    return RolloutView(
        rollout=rollout,
        waves=(wave,),
        waits=(Waiting(why=Wait.SOAK, sentence="it soaks", until=LATER),),
        confirmation=Confirmation(asked=40, confirmed=37, offline=3),
        failures=(failure,),
        started_last_minute=5,
        ended_last_minute=4,
    )


def test_every_field_of_a_rollout_arrives() -> None:
    message = convert.rollout_to_pb(view())
    assert unset(message) == []
    assert {rollout_pb2.MemberOutcome.Name(each.outcome): each.count for each in message.waves[0].outcomes} == {
        "MEMBER_OUTCOME_SUCCEEDED": 6,
        "MEMBER_OUTCOME_TIMED_OUT": 1,
    }
    assert (message.name, message.task_id, message.revision, message.version) == ("spring", "shop-order", 2, 7)
    assert (instant(message.created_at), instant(message.ended_at)) == (NOW, LATER)


def test_a_list_has_the_rollout_without_what_is_counted_and_without_its_document() -> None:
    assert unset(convert.listed_to_pb(view())) == ["spec_json", "waves", "waits", "confirmation", "failures"]


def test_what_a_rollout_lacks_stays_unset() -> None:
    bare = replace(view(), confirmation=None, rollout=replace(view().rollout, ended_at=None))
    message = convert.rollout_to_pb(bare)
    assert not message.HasField("confirmation")
    assert not message.HasField("ended_at")


@pytest.mark.parametrize(
    ("model", "document"),
    [
        (RolloutSpec, SPEC),
        (RolloutSpec, {"task": "t", "target": {"devices": ["b", "a"]}, "ratePerMinute": 5, "maxConcurrent": 2}),
        (
            ScheduleSpec,
            {
                "name": "nightly",
                "rollout": SPEC,
                "when": {"window": {"start": "0 22 * * *", "stop": "0 6 * * *"}},
                "from": "2027-01-01T00:00",
                "jitter": "5m",
            },
        ),
    ],
)
def test_a_document_comes_back_as_it_was(model: type[SpecModel], document: object) -> None:
    spec = parsed(model, document)
    assert model.model_validate_json(convert.spec_json(spec)) == spec


def test_every_field_of_a_plan_arrives() -> None:
    wave = PlannedWave(
        number=1, devices=("phone-01",), gate="advances at 1 of 1", successes_needed=1, stops_at_failure=2
    )
    plan = PlannedRollout(
        task_id="shop-order",
        revision=2,
        waves=(wave,),
        members=1,
        offline=("phone-01",),
        busy=1,
        backlog=2,
        bound_s=60.0,
    )
    refused = convert.preflight_to_pb(Preflight(errors=(ISSUE,), warnings=(ISSUE,), plan=plan))
    assert unset(refused) == ["valid"]
    assert convert.preflight_to_pb(Preflight(plan=plan)).valid
    assert not convert.preflight_to_pb(Preflight(errors=(ISSUE,))).HasField("plan")


def test_every_field_of_a_start_arrives() -> None:
    assert unset(convert.started_to_pb(StartedRollout(view=view(), warnings=(ISSUE,)))) == []


def test_every_field_of_a_member_arrives() -> None:
    member = Member(
        device="phone-01",
        place=3,
        wave=2,
        state=MemberState.RETRYING,
        outcome=Outcome.UNKNOWN,
        tries=2,
        execution_id="x-1",
        started_at=NOW,
        ended_at=LATER,
        retry_at=LATER,
        reason="OUTCOME_UNKNOWN: nobody knows",
    )
    assert unset(convert.member_to_pb(MemberView(member=member, execution_state=ExecutionState.LOST))) == []


def test_a_member_that_was_not_started_has_no_execution_and_no_times() -> None:
    member = Member(device="phone-01", place=1, wave=1)
    message = convert.member_to_pb(MemberView(member=member, execution_state=None))
    assert unset(message) == ["outcome", "tries", "execution_id", "reason", "execution_state"]
    assert not any(message.HasField(name) for name in ("started_at", "ended_at", "retry_at"))


def test_every_field_of_a_decision_arrives() -> None:
    decision = Decision(at=NOW, rule=Rule.GATE_PASSED, wave=1, numbers={"succeeded": 9, "code": "OK"}, sentence="so")
    message = convert.decision_to_pb(decision)
    assert unset(message) == []
    assert json.loads(message.numbers_json) == {"succeeded": 9, "code": "OK"}


def test_every_field_of_a_membership_change_arrives() -> None:
    change = MembershipChange(at=NOW, device="phone-01", movement=Movement.JOINED, wave=2, reason="it matches")
    assert unset(convert.membership_to_pb(change)) == []


# Schedules.


OCCURRENCE = Occurrence(
    schedule_id="s-1",
    intended_at=NOW,
    state=OccurrenceState.STARTED,
    reason="RUN: so",
    rollout_id="ro-1",
    stop_at=LATER,
    decided_at=NOW,
)
PLANNED = Planned(at=NOW, begin_at=NOW, stop_at=LATER, note="clocks go forward")


def schedule_view(time_zone: str = "Europe/Berlin") -> ScheduleView:
    spec = parsed(
        ScheduleSpec, {"name": "nightly", "rollout": SPEC, "when": {"cron": "30 2 * * *"}, "timeZone": time_zone}
    )
    assert isinstance(spec, ScheduleSpec)
    schedule = Schedule(
        schedule_id="s-1",
        spec=spec,
        enabled=True,
        version=3,
        decided_until=NOW,
        created_at=NOW,
        updated_at=LATER,
    )
    return ScheduleView(schedule=schedule, when="30 2 * * * in Europe/Berlin", next=PLANNED, last=OCCURRENCE)


def test_every_field_of_a_schedule_arrives() -> None:
    message = convert_schedule.schedule_to_pb(schedule_view())
    assert unset(message) == []
    assert instant(message.updated_at) == LATER


def test_a_schedule_without_occurrences_has_none() -> None:
    message = convert_schedule.schedule_to_pb(replace(schedule_view(), next=None, last=None))
    assert not message.HasField("next")
    assert not message.HasField("last")


def test_every_field_of_a_saved_schedule_and_of_a_preview_arrives() -> None:
    assert unset(convert_schedule.saved_to_pb(SavedSchedule(view=schedule_view(), warnings=(ISSUE,)))) == []
    preview = SchedulePreview(warnings=(ISSUE,), occurrences=(PLANNED,), time_zone="Asia/Tokyo")
    message = convert_schedule.preview_to_pb(preview)
    assert unset(message) == ["errors"]
    assert message.occurrences[0].local.endswith("+09:00 JST")


def test_a_zone_that_is_not_known_any_more_is_shown_as_utc() -> None:
    assert convert_schedule.planned_to_pb(PLANNED, "Mars/Olympus").local.endswith("+00:00 UTC")


# Enums.


def of(enum: type[StrEnum], but: StrEnum | None = None) -> set[str]:
    return {each.value for each in enum} - {but.value if but is not None else ""}


@pytest.mark.parametrize(
    ("theirs", "prefix", "ours"),
    [
        (rollout_pb2.RolloutState, "ROLLOUT_STATE_", of(RolloutState)),
        (rollout_pb2.WaveState, "WAVE_STATE_", of(WaveState)),
        (rollout_pb2.MemberState, "MEMBER_STATE_", of(MemberState)),
        (rollout_pb2.MemberOutcome, "MEMBER_OUTCOME_", of(Outcome, Outcome.NONE)),
        (rollout_pb2.RolloutControl, "ROLLOUT_CONTROL_", of(Control)),
        (rollout_pb2.ReportFormat, "REPORT_FORMAT_", of(ReportForm)),
        (schedule_pb2.OccurrenceState, "OCCURRENCE_STATE_", of(OccurrenceState)),
    ],
)
def test_the_api_has_the_words_that_we_have(theirs: EnumTypeWrapper, prefix: str, ours: set[str]) -> None:
    assert {name for name, number in theirs.items() if number} == {f"{prefix}{word}" for word in ours}


@pytest.mark.parametrize("state", RolloutState)
def test_every_state_of_a_rollout_comes_back(state: RolloutState) -> None:
    assert convert.rollout_state_from(convert.rollout_state(state)) is state


@pytest.mark.parametrize("state", MemberState)
def test_every_state_of_a_member_comes_back(state: MemberState) -> None:
    assert convert.member_state_from(convert.member_state(state)) is state


@pytest.mark.parametrize("found", [each for each in Outcome if each is not Outcome.NONE])
def test_every_outcome_comes_back(found: Outcome) -> None:
    assert convert.outcome_from(convert.outcome(found)) is found


def test_no_outcome_is_unspecified() -> None:
    assert convert.outcome(Outcome.NONE) == rollout_pb2.MEMBER_OUTCOME_UNSPECIFIED


@pytest.mark.parametrize("control", Control)
def test_every_control_arrives(control: Control) -> None:
    assert convert.control_from(rollout_pb2.RolloutControl.Value(f"ROLLOUT_CONTROL_{control}")) is control


@pytest.mark.parametrize("form", ReportForm)
def test_every_form_of_a_report_arrives(form: ReportForm) -> None:
    assert convert.report_form_from(rollout_pb2.ReportFormat.Value(f"REPORT_FORMAT_{form}")) is form


@pytest.mark.parametrize("state", WaveState)
def test_every_state_of_a_wave_has_its_word(state: WaveState) -> None:
    assert rollout_pb2.WaveState.Name(convert.wave_state(state)) == f"WAVE_STATE_{state}"


@pytest.mark.parametrize("state", OccurrenceState)
def test_every_state_of_an_occurrence_has_its_word(state: OccurrenceState) -> None:
    found = convert_schedule.occurrence_state(state)
    assert schedule_pb2.OccurrenceState.Name(found) == f"OCCURRENCE_STATE_{state}"


@pytest.mark.parametrize(
    "read",
    [
        convert.rollout_state_from,
        convert.member_state_from,
        convert.outcome_from,
        convert.control_from,
        convert.report_form_from,
    ],
)
@pytest.mark.parametrize("value", [0, 99])
def test_what_is_unspecified_or_of_a_newer_api_is_refused(read: Callable[[int], object], value: int) -> None:
    with pytest.raises(ValueError):
        read(value)
