"""RolloutService and ScheduleService through the API of a real controller: pages, filters, watches, refusals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import grpc
import pytest

from droidfleet.v1 import rollout_pb2, rollout_pb2_grpc, schedule_pb2, schedule_pb2_grpc, task_pb2
from support.controller import CALL_S, Api, document, running_controller, scripted_agent

pytestmark = pytest.mark.integration

PHONES = ("phone-01", "phone-02", "phone-03")
T = TypeVar("T")


class Doors:
    """The two services of a controller that knows three phones, which are away, and the task `tea`."""

    def __init__(self, api: Api) -> None:
        self.rollouts: rollout_pb2_grpc.RolloutServiceAsyncStub = rollout_pb2_grpc.RolloutServiceStub(api.channel)
        self.schedules: schedule_pb2_grpc.ScheduleServiceAsyncStub = schedule_pb2_grpc.ScheduleServiceStub(api.channel)

    async def start(self, *, request_id: str = "", **fields: object) -> rollout_pb2.Rollout:
        """Starts `tea` on all phones, and returns it as it waits for a person."""
        spec = {"task": "tea", "target": {"devices": list(PHONES)}, "approval": "MANUAL", "order": "LISTED"} | fields
        request = rollout_pb2.StartRolloutRequest(spec_json=json.dumps(spec), request_id=request_id)
        started = (await self.rollouts.StartRollout(request, timeout=CALL_S)).rollout
        watch = rollout_pb2.WatchRolloutRequest(rollout_id=started.rollout_id)
        async for item in self.rollouts.WatchRollout(watch, timeout=CALL_S):
            if item.rollout.state == rollout_pb2.ROLLOUT_STATE_AWAITING_APPROVAL:
                return item.rollout
        raise AssertionError("it did not wait for a person")

    async def control(self, rollout: rollout_pb2.Rollout, word: str, *, version: int = 0) -> rollout_pb2.Rollout:
        request = rollout_pb2.ControlRolloutRequest(
            rollout_id=rollout.rollout_id,
            control=rollout_pb2.RolloutControl.Value(f"ROLLOUT_CONTROL_{word}"),
            version=version or rollout.version,
        )
        return (await self.rollouts.ControlRollout(request, timeout=CALL_S)).rollout

    async def schedule(self, name: str = "nightly") -> schedule_pb2.Schedule:
        request = schedule_pb2.CreateScheduleRequest(spec_json=schedule_json(name))
        return (await self.schedules.CreateSchedule(request, timeout=CALL_S)).schedule


def schedule_json(name: str = "nightly", **fields: object) -> str:
    rollout = {"task": "tea", "target": {"devices": list(PHONES)}}
    return json.dumps({"name": name, "rollout": rollout, "when": {"cron": "30 2 * * *"}} | fields)


@asynccontextmanager
async def doors(data: Path) -> AsyncIterator[Doors]:
    async with running_controller(data) as api:
        for name in PHONES:
            async with scripted_agent(api.nats, name) as agent:
                await agent.beat()
        await api.tasks.SaveTask(task_pb2.SaveTaskRequest(document_json=document("tea")), timeout=CALL_S)
        yield Doors(api)


async def refused(call: Awaitable[T]) -> tuple[grpc.StatusCode, str]:
    """Status and code of a call that is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), str(dict(caught.value.trailing_metadata() or ())["droidfleet-code"])


async def first(stream: AsyncIterable[T]) -> T:
    return await anext(aiter(stream))


async def test_rollouts_are_listed_page_by_page_newest_first(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        made = [(await there.start()).rollout_id for _ in range(3)]
        seen, token = [], ""
        while True:
            request = rollout_pb2.ListRolloutsRequest(page_size=1, page_token=token)
            page = await there.rollouts.ListRollouts(request, timeout=CALL_S)
            seen += [item.rollout_id for item in page.rollouts]
            token = page.next_page_token
            if not token:
                break
        assert seen == made[::-1]
        running = rollout_pb2.ListRolloutsRequest(states=[rollout_pb2.ROLLOUT_STATE_RUNNING])
        assert not (await there.rollouts.ListRollouts(running, timeout=CALL_S)).rollouts


async def test_a_token_is_bound_to_its_list(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        rollout = await there.start()
        members = rollout_pb2.ListRolloutMembersRequest(rollout_id=rollout.rollout_id, page_size=1)
        token = (await there.rollouts.ListRolloutMembers(members, timeout=CALL_S)).next_page_token
        assert token
        other = rollout_pb2.ListRolloutMembersRequest(rollout_id=rollout.rollout_id, wave=1, page_token=token)
        assert await refused(there.rollouts.ListRolloutMembers(other, timeout=CALL_S)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_PAGE_TOKEN",
        )


async def test_members_come_in_order_and_by_wave(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        rollout = await there.start(waves=[{"size": 1}, {}])
        seen, token = [], ""
        while True:
            request = rollout_pb2.ListRolloutMembersRequest(
                rollout_id=rollout.rollout_id, page_size=1, page_token=token
            )
            page = await there.rollouts.ListRolloutMembers(request, timeout=CALL_S)
            seen += [(item.device, item.wave) for item in page.members]
            token = page.next_page_token
            if not token:
                break
        assert seen == [("phone-01", 1), ("phone-02", 2), ("phone-03", 2)]
        second = rollout_pb2.ListRolloutMembersRequest(rollout_id=rollout.rollout_id, wave=2)
        assert len((await there.rollouts.ListRolloutMembers(second, timeout=CALL_S)).members) == 2


async def test_decisions_come_page_by_page_oldest_first(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        rollout = await there.start()
        rollout = await there.control(rollout, "PROMOTE")
        await there.control(rollout, "CANCEL")
        whole = rollout_pb2.ListRolloutDecisionsRequest(rollout_id=rollout.rollout_id)
        rules = [item.rule for item in (await there.rollouts.ListRolloutDecisions(whole, timeout=CALL_S)).decisions]
        assert rules[0] == "CREATED"
        seen, token = [], ""
        while True:
            part = rollout_pb2.ListRolloutDecisionsRequest(rollout_id=rollout.rollout_id, page_size=1, page_token=token)
            page = await there.rollouts.ListRolloutDecisions(part, timeout=CALL_S)
            seen += [item.rule for item in page.decisions]
            token = page.next_page_token
            if not token:
                break
        assert seen == rules


async def test_a_watch_shows_what_changes_and_ends_with_the_rollout(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        rollout = await there.start()
        request = rollout_pb2.WatchRolloutRequest(rollout_id=rollout.rollout_id)
        stream = aiter(there.rollouts.WatchRollout(request, timeout=CALL_S))
        assert (await anext(stream)).rollout.state == rollout_pb2.ROLLOUT_STATE_AWAITING_APPROVAL
        await there.control(rollout, "CANCEL")
        states = [item.rollout.state async for item in stream]
        assert states[-1] == rollout_pb2.ROLLOUT_STATE_CANCELLED


async def test_a_stale_version_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        rollout = await there.start()
        assert await refused(there.control(rollout, "CANCEL", version=rollout.version + 1)) == (
            grpc.StatusCode.ABORTED,
            "STALE_VERSION",
        )
        after = await there.rollouts.GetRollout(
            rollout_pb2.GetRolloutRequest(rollout_id=rollout.rollout_id), timeout=CALL_S
        )
        assert after.rollout.state == rollout_pb2.ROLLOUT_STATE_AWAITING_APPROVAL


async def test_a_start_that_is_repeated_is_one_start(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        assert (await there.start(request_id="r-1")).rollout_id == (await there.start(request_id="r-1")).rollout_id


async def test_a_rollout_that_cannot_be_carried_out_is_refused_with_every_issue(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        spec = {"task": "tee", "target": {"devices": ["phone-09"]}, "priority": 99}
        answer = await there.rollouts.PlanRollout(
            rollout_pb2.PlanRolloutRequest(spec_json=json.dumps(spec)), timeout=CALL_S
        )
        assert not answer.valid
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await there.rollouts.StartRollout(
                rollout_pb2.StartRolloutRequest(spec_json=json.dumps(spec)), timeout=CALL_S
            )
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        metadata = dict(caught.value.trailing_metadata() or ())
        assert metadata["droidfleet-code"] == "INVALID_ROLLOUT"
        assert [issue["path"] for issue in json.loads(metadata["droidfleet-issues-bin"])] == ["/priority"]
        listed = await there.rollouts.ListRollouts(rollout_pb2.ListRolloutsRequest(), timeout=CALL_S)
        assert not listed.rollouts


async def test_a_report_comes_in_every_form(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        rollout = await there.start()

        async def report(form: rollout_pb2.ReportFormat.ValueType) -> str:
            request = rollout_pb2.GetRolloutReportRequest(rollout_id=rollout.rollout_id, format=form)
            return b"".join(
                [piece.data async for piece in there.rollouts.GetRolloutReport(request, timeout=CALL_S)]
            ).decode()

        assert rollout.rollout_id in json.dumps(json.loads(await report(rollout_pb2.REPORT_FORMAT_JSON)))
        assert "phone-03" in await report(rollout_pb2.REPORT_FORMAT_CSV)
        assert "</html>" in await report(rollout_pb2.REPORT_FORMAT_HTML)


async def test_every_call_about_a_rollout_that_there_is_not_says_so(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        calls = there.rollouts
        missing = "ro-none"
        unary: list[Awaitable[object]] = [
            calls.GetRollout(rollout_pb2.GetRolloutRequest(rollout_id=missing), timeout=CALL_S),
            calls.ListRolloutMembers(rollout_pb2.ListRolloutMembersRequest(rollout_id=missing), timeout=CALL_S),
            calls.ListRolloutDecisions(rollout_pb2.ListRolloutDecisionsRequest(rollout_id=missing), timeout=CALL_S),
            calls.ListRolloutMembership(rollout_pb2.ListRolloutMembershipRequest(rollout_id=missing), timeout=CALL_S),
            there.control(rollout_pb2.Rollout(rollout_id=missing, version=1), "PAUSE"),
            first(calls.WatchRollout(rollout_pb2.WatchRolloutRequest(rollout_id=missing), timeout=CALL_S)),
            first(
                calls.GetRolloutReport(
                    rollout_pb2.GetRolloutReportRequest(rollout_id=missing, format=rollout_pb2.REPORT_FORMAT_CSV),
                    timeout=CALL_S,
                )
            ),
        ]
        for call in unary:
            assert await refused(call) == (grpc.StatusCode.NOT_FOUND, "ROLLOUT_NOT_FOUND")


async def test_words_that_there_are_not_are_refused(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        calls = there.rollouts
        rollout = await there.start()
        key = rollout.rollout_id
        for call, code in (
            (calls.ListRollouts(rollout_pb2.ListRolloutsRequest(states=[0]), timeout=CALL_S), "BAD_STATE"),  # type: ignore[list-item]  # what a client may send
            (
                calls.ListRolloutMembers(
                    rollout_pb2.ListRolloutMembersRequest(rollout_id=key, states=[0]),  # type: ignore[list-item]  # as above
                    timeout=CALL_S,
                ),
                "BAD_STATE",
            ),
            (
                calls.ListRolloutMembers(
                    rollout_pb2.ListRolloutMembersRequest(rollout_id=key, outcomes=[0]),  # type: ignore[list-item]  # as above
                    timeout=CALL_S,
                ),
                "BAD_OUTCOME",
            ),
            (there.control(rollout, "UNSPECIFIED"), "BAD_CONTROL"),
            (there.control(rollout, "PAUSE", version=-1), "BAD_VERSION"),
            (
                first(
                    calls.GetRolloutReport(rollout_pb2.GetRolloutReportRequest(rollout_id=key), timeout=CALL_S),
                ),
                "BAD_FORMAT",
            ),
            (
                first(
                    calls.GetRolloutReport(
                        rollout_pb2.GetRolloutReportRequest(
                            rollout_id=key, format=rollout_pb2.REPORT_FORMAT_HTML, language="xx"
                        ),
                        timeout=CALL_S,
                    ),
                ),
                "BAD_LANGUAGE",
            ),
        ):
            assert await refused(call) == (grpc.StatusCode.INVALID_ARGUMENT, code)


# Schedules.


async def test_a_schedule_is_kept_changed_switched_run_and_removed(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        calls = there.schedules
        made = await there.schedule()
        assert made.when.startswith("30 2 * * *")
        changed = await calls.UpdateSchedule(
            schedule_pb2.UpdateScheduleRequest(
                schedule="nightly", version=made.version, spec_json=schedule_json(when={"cron": "0 3 * * *"})
            ),
            timeout=CALL_S,
        )
        off = await calls.SetScheduleEnabled(
            schedule_pb2.SetScheduleEnabledRequest(schedule="nightly", version=changed.schedule.version, enabled=False),
            timeout=CALL_S,
        )
        assert (off.schedule.enabled, off.schedule.HasField("next")) == (False, False)
        run = schedule_pb2.RunScheduleRequest(schedule="nightly", request_id="r-1")
        begun = (await calls.RunSchedule(run, timeout=CALL_S)).rollout_id
        assert (await calls.RunSchedule(run, timeout=CALL_S)).rollout_id == begun
        mine = rollout_pb2.ListRolloutsRequest(schedule_id=made.schedule_id)
        assert [item.rollout_id for item in (await there.rollouts.ListRollouts(mine, timeout=CALL_S)).rollouts] == [
            begun
        ]
        stale = schedule_pb2.DeleteScheduleRequest(schedule="nightly", version=made.version)
        assert await refused(calls.DeleteSchedule(stale, timeout=CALL_S)) == (
            grpc.StatusCode.ABORTED,
            "STALE_VERSION",
        )
        right = schedule_pb2.DeleteScheduleRequest(schedule="nightly", version=off.schedule.version)
        await calls.DeleteSchedule(right, timeout=CALL_S)
        gone = schedule_pb2.GetScheduleRequest(schedule="nightly")
        assert await refused(calls.GetSchedule(gone, timeout=CALL_S)) == (
            grpc.StatusCode.NOT_FOUND,
            "SCHEDULE_NOT_FOUND",
        )


async def test_schedules_are_listed_page_by_page_by_name(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        for name in ("b", "c", "a"):
            await there.schedule(name)
        seen, token = [], ""
        while True:
            request = schedule_pb2.ListSchedulesRequest(page_size=2, page_token=token)
            page = await there.schedules.ListSchedules(request, timeout=CALL_S)
            seen += [item.name for item in page.schedules]
            token = page.next_page_token
            if not token:
                break
        assert seen == ["a", "b", "c"]


async def test_a_preview_says_what_comes_and_everything_that_is_wrong(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        await there.schedule()
        request = schedule_pb2.PreviewScheduleRequest(schedule="nightly", count=3)
        coming = await there.schedules.PreviewSchedule(request, timeout=CALL_S)
        assert (coming.valid, len(coming.occurrences)) == (True, 3)
        wrong = schedule_json(when={"cron": "0 0 31 2 *"}, timeZone="Europe/Berlim")
        answer = await there.schedules.PreviewSchedule(
            schedule_pb2.PreviewScheduleRequest(spec_json=wrong), timeout=CALL_S
        )
        assert [issue.path for issue in answer.errors] == ["/when/cron", "/timeZone"]
        create = schedule_pb2.CreateScheduleRequest(spec_json=wrong)
        assert await refused(there.schedules.CreateSchedule(create, timeout=CALL_S)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_SCHEDULE",
        )


async def test_a_version_of_a_schedule_that_nobody_can_have_seen_is_refused(tmp_path: Path) -> None:
    async with doors(tmp_path / "data") as there:
        await there.schedule()
        request = schedule_pb2.SetScheduleEnabledRequest(schedule="nightly", enabled=False)
        assert await refused(there.schedules.SetScheduleEnabled(request, timeout=CALL_S)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_VERSION",
        )


@pytest.mark.parametrize("token", ["x", "WyIwIiwgMV0", "W10"])
async def test_a_page_of_occurrences_that_there_is_not_is_refused(tmp_path: Path, token: str) -> None:
    async with doors(tmp_path / "data") as there:
        await there.schedule()
        request = schedule_pb2.ListOccurrencesRequest(schedule="nightly", page_token=token)
        assert await refused(there.schedules.ListOccurrences(request, timeout=CALL_S)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_PAGE_TOKEN",
        )
