"""From options to a rollout document: what goes where, what goes over what, and that every choice is a word of it."""

from __future__ import annotations

import json
from enum import StrEnum

import pytest

from droidfleet_controller.cli import rollout_flags, schedule_flags
from droidfleet_controller.cli.flags import with_flags
from droidfleet_controller.cli.rollout_flags import (
    MAX_SEED,
    OfflinePolicy,
    OnExceeded,
    Order,
    RolloutFlags,
    document_of,
)
from droidfleet_controller.cli.schedule_flags import Fold, Gap, Misfire, Overlap, ScheduleFlags, schedule_document_of
from droidfleet_controller.rollouts import spec as rollout_spec
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.schedules import spec as schedule_spec
from droidfleet_controller.schedules.spec import ScheduleSpec
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.pointers import Json

ALL = RolloutFlags(
    group="shelf-a",
    continuous=True,
    order=Order.LISTED,
    offline=OfflinePolicy.SUBSTITUTE,
    wave=["1", "10%", "rest"],
    min_success="95%",
    max_failures="5%",
    max_failures_of=["OUTCOME_UNKNOWN=0"],
    on_exceeded=OnExceeded.CANCEL,
    min_sample=3,
    soak="10m",
    approve_first=True,
    approve_each=True,
    dry_run_on="phone-99",
    max_concurrent=20,
    rate=60,
    retry=3,
    retry_delay="1m",
    start_within="2h",
    progress_within="30m",
    priority=7,
    seed=11,
    revision=4,
    name="spring",
)


def test_every_option_has_its_place() -> None:
    gate: Json = {
        "minSuccessPercent": "95%",
        "maxFailures": "5%",
        "onExceeded": "CANCEL",
        "minSample": 3,
        "soak": "10m",
        "approval": "MANUAL",
        "maxFailuresByCode": {"OUTCOME_UNKNOWN": 0},
    }
    assert document_of({"task": "shop-order"}, ALL) == {
        "task": "shop-order",
        "target": {"group": "shelf-a"},
        "name": "spring",
        "revision": 4,
        "membership": "CONTINUOUS",
        "order": "LISTED",
        "offline": "SUBSTITUTE",
        "approval": "MANUAL",
        "dryRun": {"device": "phone-99"},
        "maxConcurrent": 20,
        "ratePerMinute": 60,
        "priority": 7,
        "randomSeed": 11,
        "retry": {"maxAttempts": 3, "delay": "1m"},
        "deadlines": {"startWithin": "2h", "progress": "30m"},
        "waves": [{"size": 1, "gate": gate}, {"size": "10%", "gate": gate}, {"gate": gate}],
    }


def test_what_options_make_is_a_rollout() -> None:
    RolloutSpec.model_validate_json(json.dumps(document_of({"task": "shop-order"}, ALL)))


def test_no_options_leave_a_document_as_it_is() -> None:
    document: dict[str, Json] = {"task": "shop-order", "waves": [{"size": 3}, {}], "retry": {"maxAttempts": 2}}
    assert document_of(document, RolloutFlags()) == document


def test_options_go_over_parts_of_a_document_and_keep_the_others() -> None:
    document: dict[str, Json] = {
        "task": "shop-order",
        "waves": [{"size": 3, "gate": {"minSample": 2, "soak": "5m"}}, {}],
        "retry": {"maxAttempts": 2, "backoff": 3.0},
    }
    made = document_of(document, RolloutFlags(soak="1h", retry=4))
    assert made["waves"] == [{"size": 3, "gate": {"minSample": 2, "soak": "1h"}}, {"gate": {"soak": "1h"}}]
    assert made["retry"] == {"maxAttempts": 4, "backoff": 3.0}


@pytest.mark.parametrize("odd", ["all", {"size": 1}, [7, "x"]])
def test_what_is_no_list_of_waves_is_left_to_the_controller(odd: Json) -> None:
    assert document_of({"waves": odd}, RolloutFlags(soak="1h"))["waves"] == odd


@pytest.mark.parametrize(
    ("sizes", "waves"),
    [
        (["5"], [{"size": 5}, {}]),
        (["5", "rest"], [{"size": 5}, {}]),
        (["rest"], [{}]),
        (["2.5%"], [{"size": "2.5%"}, {}]),
    ],
)
def test_the_last_wave_takes_the_rest_whether_it_is_written_or_not(sizes: list[str], waves: Json) -> None:
    assert document_of({}, RolloutFlags(wave=sizes))["waves"] == waves


@pytest.mark.parametrize(
    "flags",
    [
        RolloutFlags(group="a", query="b=c"),
        RolloutFlags(device=["phone-01"], group="a"),
        RolloutFlags(wave=["rest", "5"]),
        RolloutFlags(max_failures_of=["OUTCOME_UNKNOWN"]),
        RolloutFlags(max_failures_of=["=3"]),
        RolloutFlags(max_failures_of=["X=-1"]),
    ],
)
def test_options_that_do_not_fit_each_other_are_refused(flags: RolloutFlags) -> None:
    with pytest.raises(InvalidInputError) as refused:
        document_of({}, flags)
    assert refused.value.code == "BAD_ARGUMENTS"


TIMES = ScheduleFlags(
    cron="30 2 * * *",
    time_zone="Europe/Berlin",
    gap=Gap.SKIP,
    fold=Fold.BOTH,
    misfire=Misfire.ALL,
    overlap=Overlap.CANCEL_RUNNING,
    jitter="5m",
    not_before="2027-01-01T00:00",
    not_after="2028-01-01T00:00",
)


def test_every_option_of_times_has_its_place() -> None:
    made = schedule_document_of({"name": "nightly", "rollout": document_of({"task": "t"}, ALL)}, TIMES)
    assert {name: made[name] for name in made.keys() - {"rollout", "name"}} == {
        "when": {"cron": "30 2 * * *"},
        "timeZone": "Europe/Berlin",
        "gap": "SKIP",
        "fold": "BOTH",
        "misfire": "ALL",
        "overlap": "CANCEL_RUNNING",
        "jitter": "5m",
        "from": "2027-01-01T00:00",
        "until": "2028-01-01T00:00",
    }
    ScheduleSpec.model_validate_json(json.dumps(made))


def test_times_replace_those_of_the_document() -> None:
    flags = ScheduleFlags(window_start="0 22 * * *", window_stop="0 6 * * *")
    made = schedule_document_of({"when": {"cron": "@daily"}}, flags)
    assert made == {"when": {"window": {"start": "0 22 * * *", "stop": "0 6 * * *"}}}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (rollout_flags.Order, rollout_spec.Order),
        (rollout_flags.OnExceeded, rollout_spec.OnExceeded),
        (rollout_flags.OfflinePolicy, rollout_spec.Offline),
        (schedule_flags.Gap, schedule_spec.Gap),
        (schedule_flags.Fold, schedule_spec.Fold),
        (schedule_flags.Misfire, schedule_spec.Misfire),
        (schedule_flags.Overlap, schedule_spec.Overlap),
    ],
)
def test_choices_are_the_words_of_documents(ours: type[StrEnum], theirs: type[StrEnum]) -> None:
    assert {each.name for each in ours} == {each.value for each in theirs}
    assert all(each.value == each.name.lower().replace("_", "-") for each in ours)


def test_seeds_go_as_far_as_those_of_documents() -> None:
    RolloutSpec.model_validate_json(json.dumps({"task": "t", "target": {"group": "g"}, "randomSeed": MAX_SEED}))
    with pytest.raises(ValueError):
        RolloutSpec.model_validate_json(json.dumps({"task": "t", "target": {"group": "g"}, "randomSeed": MAX_SEED + 1}))


def test_a_command_gets_its_sets_of_options_whole() -> None:
    seen: list[tuple[str, ScheduleFlags]] = []

    @with_flags(times=ScheduleFlags)
    def command(name: str, *, times: ScheduleFlags) -> None:
        seen.append((name, times))

    given = dict.fromkeys(ScheduleFlags.__dataclass_fields__)
    command(name="nightly", **(given | {"cron": "@daily"}))
    assert seen == [("nightly", ScheduleFlags(cron="@daily"))]
