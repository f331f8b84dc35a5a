"""The use cases around schedules: nothing is half-created, nothing changed unseen, no secret shown."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.schedules.service import Schedules
from droidfleet_controller.store.schema import audit, run_values
from droidfleet_shared.errors import ConflictError, DroidfleetError, InvalidInputError, NotFoundError
from unit.schedules.documents import NOW, document, utc
from unit.schedules.scheduling import Scheduling, scheduling

HOURLY = {"when": {"cron": "0 * * * *"}, "timeZone": "UTC"}
PIN = "4711"
WITH_SECRETS = {
    "task": "tea",
    "target": {"devices": ["phone-01", "phone-02"]},
    "inputs": {"item": "green", "pin": PIN},
    "deviceInputs": {"phone-02": {"pin": "0815"}},
}


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(tmp_path / "fleet.db") as made:
        yield made


async def kept(parts: Scheduling) -> str:
    """All secrets that are in the database."""
    rows = await parts.database.run(lambda connection: connection.execute(select(run_values)).all())
    return " ".join(row.secrets for row in rows)


async def test_a_schedule_is_read_as_it_was_created(parts: Scheduling) -> None:
    created = await parts.create(**HOURLY)
    found = await parts.schedules.get("nightly")
    assert found == created == await parts.schedules.get(created.schedule.schedule_id)
    assert (found.when, found.schedule.version, found.schedule.enabled) == ("0 * * * * in UTC", 1, True)
    assert found.next is not None
    assert found.next.at == NOW + timedelta(hours=1)


async def test_a_bad_document_is_refused_with_all_that_is_wrong_and_leaves_nothing(parts: Scheduling) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await parts.create(when={"cron": "x"}, timeZone="Mars")
    assert caught.value.code == "INVALID_SCHEDULE"
    assert [each.path for each in caught.value.issues if isinstance(each, SpecIssue)] == ["/when/cron", "/timeZone"]
    assert await parts.schedules.page(after="", limit=10) == []


async def test_a_rollout_that_cannot_be_is_refused_in_its_place(parts: Scheduling) -> None:
    issue = SpecIssue("/target/devices/0", IssueCode.DEVICE_NOT_FOUND, "unknown device")
    parts.rollouts.refuse["tea"] = InvalidInputError("INVALID_ROLLOUT", "no", issues=[issue])
    with pytest.raises(InvalidInputError) as caught:
        await parts.create()
    assert (caught.value.code, caught.value.issues) == ("INVALID_SCHEDULE", (issue.under("/rollout"),))
    assert await parts.schedules.page(after="", limit=10) == []


async def test_a_name_is_taken_once(parts: Scheduling) -> None:
    await parts.create()
    with pytest.raises(ConflictError) as caught:
        await parts.create()
    assert caught.value.code == "SCHEDULE_EXISTS"


async def test_an_unknown_schedule_gets_the_nearest_name(parts: Scheduling) -> None:
    await parts.create()
    with pytest.raises(NotFoundError) as caught:
        await parts.schedules.get("nightli")
    assert (caught.value.code, caught.value.hint) == ("SCHEDULE_NOT_FOUND", "Did you mean 'nightly'?")


async def test_schedules_come_by_name_page_by_page(parts: Scheduling) -> None:
    for name in ("c", "a", "b"):
        await parts.create(name=name)
    first = await parts.schedules.page(after="", limit=2)
    rest = await parts.schedules.page(after=first[-1].schedule.spec.name, limit=2)
    assert [each.schedule.spec.name for each in (*first, *rest)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "change",
    [
        lambda schedules: schedules.update("nightly", version=1, spec_json=document(), actor="test"),
        lambda schedules: schedules.set_enabled("nightly", version=1, enabled=True, actor="test"),
        lambda schedules: schedules.delete("nightly", version=1, actor="test"),
    ],
    ids=["update", "switch", "delete"],
)
async def test_a_stale_version_is_refused(change: Callable[[Schedules], Awaitable[object]], parts: Scheduling) -> None:
    await parts.create()
    await parts.schedules.set_enabled("nightly", version=1, enabled=False, actor="test")
    with pytest.raises(ConflictError) as caught:
        await change(parts.schedules)
    assert caught.value.code == "STALE_VERSION"
    assert (await parts.schedules.get("nightly")).schedule.version == 2


async def test_an_update_replaces_the_document(parts: Scheduling) -> None:
    await parts.create()
    saved = await parts.schedules.update("nightly", version=1, spec_json=document(name="daily", **HOURLY), actor="t")
    assert (saved.view.schedule.version, saved.view.when) == (2, "0 * * * * in UTC")
    assert (await parts.schedules.get("daily")).schedule.schedule_id == saved.view.schedule.schedule_id


async def test_an_update_that_is_wrong_changes_nothing(parts: Scheduling) -> None:
    before = await parts.create()
    with pytest.raises(InvalidInputError):
        await parts.schedules.update("nightly", version=1, spec_json=document(timeZone="Mars"), actor="test")
    assert await parts.schedules.get("nightly") == before


async def test_a_secret_is_kept_beside_the_schedule_and_copied_to_its_rollouts(parts: Scheduling) -> None:
    created = await parts.create(**HOURLY, rollout=WITH_SECRETS)
    shown = created.schedule.spec.rollout
    assert (shown.inputs, shown.device_inputs) == (
        {"item": "green", "pin": "[secret]"},
        {"phone-02": {"pin": "[secret]"}},
    )
    parts.clock.move(hours=1)
    await parts.look()
    begun = parts.rollouts.prepared[-1]
    assert (begun.inputs["pin"], begun.device_inputs["phone-02"]["pin"]) == (PIN, "0815")


async def test_a_document_that_was_read_keeps_its_secrets_when_it_is_written_back(parts: Scheduling) -> None:
    await parts.create(rollout=WITH_SECRETS)
    read = json.loads(document(rollout=WITH_SECRETS))
    read["rollout"]["inputs"] = {"item": "black", "pin": "[secret]"}
    read["rollout"]["deviceInputs"]["phone-02"]["pin"] = "new"
    await parts.schedules.update("nightly", version=1, spec_json=json.dumps(read), actor="test")
    await parts.schedules.run_now("nightly", request_id="", actor="test")
    begun = parts.rollouts.prepared[-1]
    assert (begun.inputs, begun.device_inputs["phone-02"]["pin"]) == ({"item": "black", "pin": PIN}, "new")
    assert "0815" not in await kept(parts)


async def test_a_hidden_secret_that_is_not_known_is_asked_for(parts: Scheduling) -> None:
    rollout = {**WITH_SECRETS, "inputs": {"pin": "[secret]"}}
    with pytest.raises(InvalidInputError) as caught:
        await parts.create(rollout=rollout)
    issue = caught.value.issues[0]
    assert isinstance(issue, SpecIssue)
    assert (issue.path, issue.hint) == ("/rollout/inputs/pin", "Write the secret itself.")


async def test_a_deleted_schedule_forgets_its_secrets_and_keeps_its_history(parts: Scheduling) -> None:
    created = await parts.create(**HOURLY, rollout=WITH_SECRETS)
    parts.clock.move(hours=1)
    await parts.look()
    await parts.rollouts.forget_values()
    assert PIN in await kept(parts)
    await parts.schedules.delete("nightly", version=1, actor="test")
    assert PIN not in await kept(parts)
    assert len(await parts.history(created.schedule.schedule_id)) == 1
    with pytest.raises(NotFoundError):
        await parts.schedules.get("nightly")


async def test_it_can_be_run_now_beside_its_occurrences(parts: Scheduling) -> None:
    created = await parts.create(**HOURLY)
    rollout_id = await parts.schedules.run_now("nightly", request_id="q-1", actor="test")
    assert parts.rollouts.adopted == [rollout_id]
    assert await parts.stored_rollouts() == [(created.schedule.schedule_id, None)]
    parts.clock.move(hours=1)
    await parts.look()
    # It is no occurrence, so nothing overlaps with it.
    assert await parts.became() == {"01 13:00": "STARTED"}


async def test_the_same_request_runs_it_once(parts: Scheduling) -> None:
    await parts.create()
    first = await parts.schedules.run_now("nightly", request_id="q-1", actor="test")
    assert await parts.schedules.run_now("nightly", request_id="q-1", actor="test") == first
    assert await parts.schedules.run_now("nightly", request_id="q-2", actor="test") != first
    assert len(parts.rollouts.adopted) == 2


async def test_the_same_request_gets_the_same_rollout_where_none_could_begin_any_more(parts: Scheduling) -> None:
    await parts.create()
    first = await parts.schedules.run_now("nightly", request_id="q-1", actor="test")
    parts.rollouts.refuse["tea"] = InvalidInputError("INVALID_ROLLOUT", "group `berlin` is empty")
    assert await parts.schedules.run_now("nightly", request_id="q-1", actor="test") == first


async def test_a_rollout_that_cannot_begin_now_is_said(parts: Scheduling) -> None:
    await parts.create()
    parts.rollouts.refuse["tea"] = InvalidInputError("INVALID_ROLLOUT", "group `berlin` is empty")
    with pytest.raises(DroidfleetError, match="INVALID_ROLLOUT"):
        await parts.schedules.run_now("nightly", request_id="", actor="test")
    assert await parts.stored_rollouts() == []


async def test_a_preview_lists_the_next_ten_and_stores_nothing(parts: Scheduling) -> None:
    preview = await parts.schedules.preview(spec_json=document(), after=utc("2027-03-27 00:00"))
    assert (preview.valid, len(preview.occurrences), preview.time_zone) == (True, 10, "Europe/Berlin")
    assert "does not exist" in preview.occurrences[1].note
    assert await parts.schedules.page(after="", limit=10) == []


async def test_a_preview_of_a_bad_document_says_what_is_wrong(parts: Scheduling) -> None:
    preview = await parts.schedules.preview(spec_json=document(when={"cron": "0 25 * * *"}))
    assert (preview.valid, [each.path for each in preview.errors]) == (False, ["/when/cron"])


async def test_a_preview_shows_times_also_while_the_rollout_is_wrong(parts: Scheduling) -> None:
    issue = SpecIssue("/target/group", IssueCode.EMPTY_GROUP, "it is empty")
    parts.rollouts.refuse["tea"] = InvalidInputError("INVALID_ROLLOUT", "no", issues=[issue])
    preview = await parts.schedules.preview(spec_json=document(), count=3)
    assert ([each.path for each in preview.errors], len(preview.occurrences)) == (["/rollout/target/group"], 3)


async def test_a_stored_schedule_is_previewed_with_its_jitter(parts: Scheduling) -> None:
    await parts.create(**HOURLY, jitter="30m")
    preview = await parts.schedules.preview(schedule="nightly", count=5)
    assert all(each.at <= each.begin_at < each.at + timedelta(minutes=30) for each in preview.occurrences)
    assert any(each.at < each.begin_at for each in preview.occurrences)


@pytest.mark.parametrize(
    "asked", [{}, {"spec_json": "{}", "schedule": "nightly"}, {"schedule": "nightly", "count": 1_001}]
)
async def test_a_preview_of_nothing_or_of_too_much_is_refused(asked: dict[str, str], parts: Scheduling) -> None:
    with pytest.raises(InvalidInputError):
        await parts.schedules.preview(**asked)  # type: ignore[arg-type]  # as they come


@pytest.mark.parametrize("year", [1, 9999])
async def test_a_preview_from_the_end_of_the_calendar_is_none_or_some(year: int, parts: Scheduling) -> None:
    preview = await parts.schedules.preview(spec_json=document(), after=NOW.replace(year=year))
    assert len(preview.occurrences) == 10


async def test_who_changed_what_is_on_record(parts: Scheduling) -> None:
    await parts.create()
    await parts.schedules.set_enabled("nightly", version=1, enabled=False, actor="ada")
    await parts.schedules.delete("nightly", version=2, actor="bob")
    rows = await parts.database.run(lambda connection: connection.execute(select(audit)).all())
    assert [(row.actor, row.command) for row in rows] == [
        ("test", "CreateSchedule"),
        ("ada", "SetScheduleEnabled"),
        ("bob", "DeleteSchedule"),
    ]
