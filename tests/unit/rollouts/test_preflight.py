"""What is wrong with a rollout is said before it starts: all of it, with what to change, and nothing is left behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from droidfleet_controller.fleet import registry
from droidfleet_controller.fleet.labels import Changes
from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.rollouts.value_check import MAX_NAMED
from droidfleet_controller.rollouts.views import Preflight, StartRollout
from droidfleet_shared.errors import InvalidInputError
from support.controller import document
from unit.rollouts.rolling import Rolling, phones, rolling, spec

Found = dict[str, IssueCode]

INPUTS = {"item": {"type": "string"}, "count": {"type": "integer", "default": 1}, "pin": {"type": "secret"}}
WITH_INPUTS = document(inputs=INPUTS)


async def refused(fleet: Rolling, text: str) -> list[SpecIssue]:
    """The issues of a document that cannot be started; checks that plan and start say the same and nothing is left."""
    before = await fleet.count()
    planned = await fleet.rollouts.plan(text)
    with pytest.raises(InvalidInputError) as caught:
        await fleet.rollouts.start(StartRollout(spec_json=text))
    assert caught.value.code == "INVALID_ROLLOUT"
    assert caught.value.issues == planned.errors
    assert not planned.valid
    assert await fleet.count() == before
    return list(planned.errors)


def found(issues: list[SpecIssue]) -> Found:
    return {issue.path: issue.code for issue in issues}


@pytest.mark.parametrize(
    ("fields", "path", "code", "says"),
    [
        ({"target": {"query": "site=nowhere"}}, "/target/query", "NO_MATCH", "matches"),
        ({"target": {"query": "site=="}}, "/target/query", "BAD_QUERY", ""),
        ({"target": {"group": "empty"}}, "/target/group", "EMPTY_GROUP", "empty"),
        ({"target": {"group": "labb"}}, "/target/group", "GROUP_NOT_FOUND", "labb"),
        ({"target": {"devices": ["phone-01", "phone-09"]}}, "/target/devices/1", "DEVICE_NOT_FOUND", "phone-09"),
        ({"target": {"devices": ["phone-01", "phone-01"]}}, "/target/devices/1", "DUPLICATE_DEVICE", "twice"),
        ({"target": {}}, "/target", "MISSING_FIELD", "nobody"),
        ({"target": {"devices": ["phone-01"], "query": "x"}}, "/target/query", "CONFLICTING_FIELDS", "together"),
        ({"waves": [{"size": 5}, {}]}, "/waves/0/size", "WAVES_DO_NOT_FIT", "5"),
        ({"waves": [{}, {}]}, "/waves/0", "WAVES_DO_NOT_FIT", "size"),
        ({"waves": [{"size": 0}, {}]}, "/waves/0/size", "WAVES_DO_NOT_FIT", "0"),
        ({"waves": []}, "/waves", "OUT_OF_RANGE", "at least 1"),
        ({"task": "teaa"}, "/task", "TASK_NOT_FOUND", "teaa"),
        ({"revision": 7}, "/revision", "TASK_NOT_FOUND", "revision 7"),
        ({"window": {"start": "0 22 * *", "stop": "0 6 * * *"}}, "/window/start", "BAD_CRON", "4 fields"),
        ({"window": {"start": "0 22 31 2 *", "stop": "0 6 * * *"}}, "/window/start", "NEVER_FIRES", ""),
        ({"window": {"start": "0 6 * * *", "stop": "0 6 * * *"}}, "/window/stop", "BAD_WINDOW", "same times"),
        (
            {"window": {"start": "0 1 * * *", "stop": "0 2 * * *", "timeZone": "Europe/Berln"}},
            "/window/timeZone",
            "UNKNOWN_ZONE",
            "Berln",
        ),
        ({"dryRun": {"device": "phone-09"}}, "/dryRun/device", "DEVICE_NOT_FOUND", "phone-09"),
        ({"deviceInputs": {"phone-09": {}}}, "/deviceInputs/phone-09", "DEVICE_NOT_FOUND", "phone-09"),
        ({"ratePerMinute": {"base": 9, "limit": 3}}, "/ratePerMinute/base", "CONFLICTING_FIELDS", "9"),
        (
            {"waves": [{"gate": {"maxFailuresByCode": {"OUTCOME_UNKNWON": 0}}}]},
            "/waves/0/gate/maxFailuresByCode",
            "BAD_VALUE",
            "OUTCOME_UNKNWON",
        ),
        (
            {"waves": [{"gate": {"maxFailuresByCode": {"X" * 1_000_000: 0}}}]},
            "/waves/0/gate/maxFailuresByCode",
            "BAD_VALUE",
            "1 to 64 characters",
        ),
        ({"inputs": {"item": "tea"}}, "/inputs/item", "UNKNOWN_INPUT", "item"),
    ],
)
async def test_one_thing_is_wrong(tmp_path: Path, fields: dict[str, object], path: str, code: str, says: str) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        await fleet.groups.create("empty", actor="test")
        await fleet.groups.create("lab", devices=["phone-01"], actor="test")
        issues = await refused(fleet, spec(*phones(3), **fields))
        assert found(issues) == {path: code}
        assert says in issues[0].message
        assert issues[0].hint, "no word of what to change"


async def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_document(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3), task=WITH_INPUTS) as fleet:
        text = json.dumps(
            {
                "task": "tea",
                "target": {"devices": ["phone-01", "phone-02", "nobody"]},
                "waves": [{"gate": {"soak": "1m"}}, {}],
                "window": {"start": "x", "stop": "0 6 * * *", "timeZone": "Nowhere"},
                "dryRun": {"device": "no-phone"},
                "inputs": {"itemm": "tea"},
                "deviceInputs": {"phone-01": {"count": "many"}},
            }
        )
        issues = await refused(fleet, text)
        assert [(issue.path, issue.code.value) for issue in issues] == [
            ("/target/devices/2", "DEVICE_NOT_FOUND"),
            ("/waves/0", "WAVES_DO_NOT_FIT"),
            ("/window/start", "BAD_CRON"),
            ("/window/timeZone", "UNKNOWN_ZONE"),
            ("/dryRun/device", "DEVICE_NOT_FOUND"),
            ("/inputs/itemm", "UNKNOWN_INPUT"),
            ("/deviceInputs", "MISSING_INPUT"),
            ("/deviceInputs", "MISSING_INPUT"),
            ("/deviceInputs/phone-01/count", "WRONG_TYPE"),
        ]


async def test_what_was_meant_by_thousands_of_unknown_phones_is_not_searched_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    def nearest(name: str, _known: Sequence[str]) -> list[str]:
        searched.append(name)
        return []

    monkeypatch.setattr(registry, "_nearest", nearest)
    async with rolling(tmp_path, *phones(1)) as fleet:
        unknown = [f"tablet-{number}" for number in range(50)]
        issues = (await fleet.rollouts.plan(spec("phone-01", deviceInputs={each: {} for each in unknown}))).errors
        assert [issue.path for issue in issues] == [f"/deviceInputs/{each}" for each in unknown]
        assert len(searched) <= registry.MAX_SUGGESTED


async def test_all_phones_that_lack_a_value_are_named(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4), task=WITH_INPUTS) as fleet:
        own = {"phone-01": {"item": "tea"}, "phone-03": {"item": "coffee"}}
        issues = await refused(fleet, spec(*phones(4), inputs={"pin": "1234"}, deviceInputs=own))
        assert [issue.message for issue in issues] == [
            "2 phones lack a value for the input `item`: `phone-02`, `phone-04`"
        ]


async def test_of_many_that_lack_a_value_the_rest_is_counted(tmp_path: Path) -> None:
    names = phones(MAX_NAMED + 3)
    async with rolling(tmp_path, *names, task=WITH_INPUTS) as fleet:
        issues = await refused(fleet, spec(*names, inputs={"pin": "1234"}))
        assert issues[0].message.startswith(f"{len(names)} phones lack")
        assert issues[0].message.endswith("and 3 more")


async def test_no_issue_shows_a_value(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1), task=WITH_INPUTS) as fleet:
        secret = "correct-horse"
        text = spec(
            "phone-01", inputs={"pin": [secret], "nip": secret}, deviceInputs={"phone-01": {"pin": {"a": secret}}}
        )
        issues = await refused(fleet, text)
        assert len(issues) >= 3
        assert secret not in repr(issues)
        assert secret not in repr(await refused(fleet, spec("phone-01", inputs=secret)))


async def test_a_plan_shows_waves_gates_and_who_is_offline(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(5), offline=["phone-04"]) as fleet:
        waves = [{"size": "30%", "gate": {"maxFailures": 0, "minSuccessPercent": "50%"}}, {}]
        await fleet.dispatch.run("phone-01")
        preflight = await fleet.rollouts.plan(spec(*phones(5), waves=waves))
        plan = preflight.plan
        assert plan is not None
        assert [wave.devices for wave in plan.waves] == [("phone-01", "phone-02"), ("phone-03", "phone-04", "phone-05")]
        assert plan.waves[0].gate == "advances at 1 of 2; pauses at the 1st failure"
        assert (plan.members, plan.offline, plan.backlog) == (5, ("phone-04",), 1)
        assert (plan.task_id, plan.revision) == ("tea", 1)
        assert preflight.valid


async def warnings(preflight: Preflight) -> Found:
    assert preflight.valid, preflight.errors
    return found(list(preflight.warnings))


async def test_what_is_worth_a_look_stops_nothing(tmp_path: Path) -> None:
    sees = json.loads(document())
    sees["steps"][0] = {"id": "see", "action": "CLICK", "selector": {"ocrText": "Tea"}}
    async with rolling(tmp_path, *phones(3), task=json.dumps(sees), offline=["phone-02"]) as fleet:
        text = spec("phone-01", "phone-02", offline="SKIP", retry={"maxAttempts": 2}, deviceInputs={"phone-03": {}})
        preflight = await fleet.rollouts.plan(text)
        assert [(issue.path, issue.code.value) for issue in preflight.warnings] == [
            ("/target", "LACKS_CAPABILITY"),
            ("/target", "OFFLINE"),
            ("/retry/maxAttempts", "NOT_REPEATABLE"),
            ("/deviceInputs", "NO_MEMBER"),
        ]
        assert preflight.valid
        begun = await fleet.rollouts.start(StartRollout(spec_json=text))
        assert begun.warnings == preflight.warnings


async def test_a_query_and_a_group_name_their_phones(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4)) as fleet:
        await fleet.labels.change(["phone-02", "phone-03"], Changes(set={"site": "berlin"}), actor="test")
        await fleet.groups.create("berlin", query="site=berlin", actor="test")
        for target in ({"query": "site=berlin"}, {"group": "berlin"}):
            plan = (await fleet.rollouts.plan(spec(target=target))).plan
            assert plan is not None
            assert plan.waves[0].devices == ("phone-02", "phone-03")
