"""Drafts over the API: a real controller and broker, a model on a real socket, an agent with a memory phone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from pydantic import JsonValue

from droidfleet.v1 import (
    device_pb2,
    draft_pb2,
    draft_pb2_grpc,
    rollout_pb2,
    rollout_pb2_grpc,
    schedule_pb2,
    schedule_pb2_grpc,
    task_pb2,
)
from droidfleet_agent.driver.memory import MemoryPhone
from droidfleet_controller.drafts import accepting
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.schedules.service import Schedules
from droidfleet_controller.tasks.library import Library
from droidfleet_designer.conversation import Message
from support.assignments import AGENT
from support.controller import CALL_S, Api, running_controller
from support.memory_agent import memory_agent
from support.model_server import ModelServer, Reply, model_server, plays, spoken, streamed
from support.nats import NatsServer
from support.scripted_model import Part, call, does, in_turn, on, turns_of

pytestmark = pytest.mark.integration

END_S = 30.0
"""For an exploration of some turns, on a busy machine."""

KEY = "sk-of-this-test-alone"

TASK: JsonValue = {
    "steps": [
        {"id": "tea", "action": "CLICK", "selector": {"text": "Tea"}},
        {"id": "name", "action": "EXTRACT_TEXT", "selector": {"text": "Green tea"}, "outputField": "name"},
    ]
}
PROPOSAL: dict[str, JsonValue] = {"summary": "Opens the tea and reads its name.", "task": TASK}
EXPLORES = in_turn(does(call("screen")), on("Tea", "tap"), does(call("submit_task", **PROPOSAL)))
"""A model that opens the tea and proposes just that."""


@dataclass
class Bench:
    """A controller that drafts with a scripted model."""

    api: Api
    model: ModelServer

    def __post_init__(self) -> None:
        self.drafts: draft_pb2_grpc.DraftServiceAsyncStub = draft_pb2_grpc.DraftServiceStub(self.api.channel)
        self.rollouts: rollout_pb2_grpc.RolloutServiceAsyncStub = rollout_pb2_grpc.RolloutServiceStub(self.api.channel)
        self.schedules: schedule_pb2_grpc.ScheduleServiceAsyncStub = schedule_pb2_grpc.ScheduleServiceStub(
            self.api.channel
        )

    async def start(self, *, request_id: str = "", device: str = AGENT, **settings: JsonValue) -> draft_pb2.Draft:
        """Begins an exploration."""
        brief = {"description": "Open the tea and read its name.", "device": device, "settings": settings}
        request = draft_pb2.StartDraftRequest(brief_json=json.dumps(brief), request_id=request_id)
        return (await self.drafts.StartDraft(request, timeout=CALL_S)).draft

    async def draft(self, draft_id: str) -> draft_pb2.Draft:
        """A draft as it is."""
        return (await self.drafts.GetDraft(draft_pb2.GetDraftRequest(draft_id=draft_id), timeout=CALL_S)).draft

    async def entries(self, draft_id: str, *, after: int = 0) -> list[dict[str, JsonValue]]:
        """The log, once the exploration has ended."""
        request = draft_pb2.FollowDraftRequest(draft_id=draft_id, after_sequence=after)
        followed = [item async for item in self.drafts.FollowDraft(request, timeout=END_S)]
        return [json.loads(item.entry.entry_json) for item in followed if item.HasField("entry")]

    async def ready(self, **settings: JsonValue) -> draft_pb2.Draft:
        """A draft that waits for review."""
        begun = await self.start(request_id="", device=AGENT, **settings)
        await self.entries(begun.draft_id)
        return await self.draft(begun.draft_id)

    async def edit(self, item: draft_pb2.Draft, **changes: JsonValue) -> draft_pb2.Draft:
        """Puts a person's version in place."""
        text = json.dumps(json.loads(item.draft_json) | changes)
        request = draft_pb2.EditDraftRequest(draft_id=item.draft_id, version=item.version, draft_json=text)
        return (await self.drafts.EditDraft(request, timeout=CALL_S)).draft

    async def accept(
        self, item: draft_pb2.Draft, use: draft_pb2.DraftUse.ValueType, *, request_id: str = ""
    ) -> draft_pb2.Draft:
        """Accepts a draft."""
        request = draft_pb2.AcceptDraftRequest(
            draft_id=item.draft_id, version=item.version, use=use, request_id=request_id
        )
        return (await self.drafts.AcceptDraft(request, timeout=CALL_S)).draft

    async def made(self, task_id: str) -> tuple[int, int, int]:
        """How much came of it: revisions of the task, rollouts, schedules."""
        try:
            revision = (await self.api.tasks.GetTask(task_pb2.GetTaskRequest(task_id=task_id), timeout=CALL_S)).task
            revisions = revision.revision
        except grpc.aio.AioRpcError:
            revisions = 0
        rollouts = await self.rollouts.ListRollouts(rollout_pb2.ListRolloutsRequest(), timeout=CALL_S)
        schedules = await self.schedules.ListSchedules(schedule_pb2.ListSchedulesRequest(), timeout=CALL_S)
        return revisions, len(rollouts.rollouts), len(schedules.schedules)


@asynccontextmanager
async def bench(data: Path, part: Part, **settings: object) -> AsyncIterator[tuple[Bench, MemoryPhone]]:
    """A controller with a scripted model, and a phone with a shop."""
    async with (
        model_server(plays(part)) as model,
        running_controller(data, model_url=model.url, model="scripted", model_key=KEY, **settings) as api,
        memory_agent(api.nats, AGENT) as phone,
    ):
        yield Bench(api, model), phone


async def refused(made: object) -> str:
    """The code with which a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await made  # type: ignore[misc]  # a call
    return str(dict(caught.value.trailing_metadata() or ())["droidfleet-code"])


async def test_an_exploration_becomes_a_draft_whose_selectors_were_seen(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, phone):
        item = await fleet.ready(name="read-tea", language="en")
        assert item.state == draft_pb2.DRAFT_STATE_READY, item
        document = json.loads(item.draft_json)
        assert document["task"]["taskId"] == "read-tea"
        assert [each["path"] for each in document["evidence"]] == ["/steps/0/selector", "/steps/1/selector"]
        snapshot = document["evidence"][1]["snapshot"]
        request = draft_pb2.GetDraftSnapshotRequest(draft_id=item.draft_id, snapshot_id=snapshot)
        seen = await fleet.drafts.GetDraftSnapshot(request, timeout=CALL_S)
        assert "Green tea" in json.loads(seen.snapshot_json)["window"]
        assert [each.call for each in phone.done] == ["tap"]
        assert fleet.model.asked[0].headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in item.SerializeToString().decode(errors="replace")


async def test_two_who_follow_one_draft_see_everything_whenever_they_come(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        begun = await fleet.start()
        first, second = await asyncio.gather(fleet.entries(begun.draft_id), fleet.entries(begun.draft_id))
        later = await fleet.entries(begun.draft_id)
        assert first == second == later
        assert [each["kind"] for each in first][0 :: len(first) - 1] == ["began", "ended"]
        assert await fleet.entries(begun.draft_id, after=3) == first[3:]


async def test_the_same_request_begins_one_draft_and_another_sentence_is_refused(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        first, again = await asyncio.gather(fleet.start(request_id="one"), fleet.start(request_id="one"))
        assert first.draft_id == again.draft_id
        assert await refused(fleet.start(request_id="one", name="other")) == "REQUEST_ID_REUSED"


async def test_a_phone_that_cannot_be_had_is_refused_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        held = device_pb2.OpenSessionRequest(device=AGENT, holder="anna")
        session = await fleet.api.devices.OpenSession(held, timeout=CALL_S)
        assert await refused(fleet.start()) == "DEVICE_BUSY"
        assert await refused(fleet.start(device="phone-9")) == "DEVICE_NOT_FOUND"
        close = device_pb2.CloseSessionRequest(device=AGENT, session_id=session.session_id)
        await fleet.api.devices.CloseSession(close, timeout=CALL_S)
        assert (await fleet.ready()).state == draft_pb2.DRAFT_STATE_READY


async def test_what_is_asked_for_is_checked_whole(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        for brief in ("", "{", "[]", '{"device": "a"}', '{"description": "x", "device": "a", "settings": {"no": 1}}'):
            request = draft_pb2.StartDraftRequest(brief_json=brief)
            assert await refused(fleet.drafts.StartDraft(request, timeout=CALL_S)) == "INVALID_BRIEF"
        assert not fleet.model.asked


def stalling(after: int) -> Part:
    """A model that looks some times; then its next answer waits for ever: its server stalls it."""
    return in_turn(*[does(call("screen"))] * after)


@asynccontextmanager
async def thoughtful(data: Path, first: Part, turns: int) -> AsyncIterator[Bench]:
    """A model that plays a part for some turns, and then never answers."""

    def script(messages: Sequence[Message]) -> Reply:
        said = first(messages)
        assert not isinstance(said, Exception)
        return spoken(said) if turns_of(messages) < turns else streamed("stall")

    async with (
        model_server(script) as model,
        running_controller(data, model_url=model.url, model="scripted") as api,
        memory_agent(api.nats, AGENT),
    ):
        yield Bench(api, model)


async def test_an_exploration_that_is_stopped_gives_the_phone_back_and_says_so(tmp_path: Path) -> None:
    async with thoughtful(tmp_path, stalling(1), 1) as fleet:
        begun = await fleet.start()
        await fleet.model.stalled.wait()
        request = draft_pb2.StopDraftRequest(draft_id=begun.draft_id)
        for _ in range(2):
            stopped = (await fleet.drafts.StopDraft(request, timeout=CALL_S)).draft
            assert stopped.state == draft_pb2.DRAFT_STATE_STOPPED
        held = device_pb2.OpenSessionRequest(device=AGENT, holder="anna")
        assert (await fleet.api.devices.OpenSession(held, timeout=CALL_S)).session_id
        assert await refused(fleet.edit(draft_pb2.Draft(draft_id=begun.draft_id, version=9, draft_json="{}"))) == (
            "DRAFT_EMPTY"
        )


async def test_only_so_many_are_explored_at_a_time(tmp_path: Path) -> None:
    async with thoughtful(tmp_path, stalling(1), 1) as fleet:
        await fleet.start()
        assert await refused(fleet.start()) == "DEVICE_BUSY"
    async with (
        model_server(lambda _: streamed("stall")) as model,
        running_controller(tmp_path / "few", model_url=model.url, model="m", drafts=1) as api,
        memory_agent(api.nats, AGENT),
    ):
        fleet = Bench(api, model)
        await fleet.start()
        assert await refused(fleet.start()) == "TOO_MANY_DRAFTS"


async def test_an_exploration_goes_on_after_its_controller_was_started_again(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    data = tmp_path / "data"
    go_on = asyncio.Event()
    looks = does(call("screen"))
    explores = in_turn(looks, looks, on("Tea", "tap"), does(call("submit_task", **PROPOSAL)))

    def script(messages: Sequence[Message]) -> Reply:
        said = explores(messages)
        assert not isinstance(said, Exception)
        return spoken(said) if go_on.is_set() or turns_of(messages) < 1 else streamed("stall")

    async with model_server(script) as model, AsyncExitStack() as lasting:
        settings = {"model_url": model.url, "model": "scripted", "nats": nats_server.url}
        async with running_controller(data, **settings) as api:
            await lasting.enter_async_context(memory_agent(nats_server.url, AGENT))
            begun = await Bench(api, model).start()
            await model.stalled.wait()
        go_on.set()
        async with running_controller(data, **settings) as api:
            fleet = Bench(api, model)
            entries = await fleet.entries(begun.draft_id)
            assert (await fleet.draft(begun.draft_id)).state == draft_pb2.DRAFT_STATE_READY
            assert [each["kind"] for each in entries].count("resumed") == 1


ASKS = in_turn(
    does(call("screen")),
    on("Delete", "tap"),
    does(call("screen")),
    on("Tea", "tap"),
    does(call("submit_task", **PROPOSAL)),
)
"""A model that wants to delete something on its way."""


@pytest.mark.parametrize("allowed", [True, False])
async def test_what_cannot_be_undone_waits_for_a_person(tmp_path: Path, *, allowed: bool) -> None:
    async with bench(tmp_path, ASKS) as (fleet, phone):
        begun = await fleet.start()
        request = draft_pb2.FollowDraftRequest(draft_id=begun.draft_id)
        async for item in fleet.drafts.FollowDraft(request, timeout=END_S):
            if item.entry.kind == "approval_asked":
                asked = json.loads(item.entry.entry_json)
                assert (await fleet.draft(begun.draft_id)).pending_approval_id == asked["approvalId"]
                assert not phone.done
                answer = draft_pb2.AnswerApprovalRequest(
                    draft_id=begun.draft_id, approval_id=asked["approvalId"], allowed=allowed
                )
                await fleet.drafts.AnswerApproval(answer, timeout=CALL_S)
                assert await refused(fleet.drafts.AnswerApproval(answer, timeout=CALL_S)) == "APPROVAL_OVER"
        taps = [each for each in phone.done if each.call == "tap"]
        assert len(taps) == (2 if allowed else 1)
        assert (await fleet.draft(begun.draft_id)).state == draft_pb2.DRAFT_STATE_READY
        [answered] = [each for each in await fleet.entries(begun.draft_id) if each["kind"] == "approval_answered"]
        assert (answered["allowed"], str(answered["by"]).partition(":")[0]) == (allowed, "ipv4")


async def test_an_edit_is_checked_as_the_proposal_was_and_kept_with_what_is_wrong(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        item = await fleet.ready()
        wrong = {"steps": [{"id": "tea", "action": "CLICK", "selector": {"text": "Coffee"}}]}
        edited = await fleet.edit(item, task=json.loads(item.draft_json)["task"] | wrong)
        assert [(each.path, each.code) for each in edited.issues] == [("/task/steps/0/selector", "NO_EVIDENCE")]
        assert "Coffee" in edited.draft_json
        assert await refused(fleet.edit(item)) == "STALE_VERSION"
        assert await refused(fleet.accept(edited, draft_pb2.DRAFT_USE_TASK)) == "DRAFT_INVALID"
        request = draft_pb2.TryDraftRequest(draft_id=item.draft_id, version=edited.version)
        assert await refused(fleet.drafts.TryDraft(request, timeout=CALL_S)) == "DRAFT_INVALID"
        elsewhere = await fleet.edit(edited, task=json.loads(item.draft_json)["task"], target={"group": "nobody"})
        assert [(each.path, each.code) for each in elsewhere.issues] == [("/target/group", "GROUP_NOT_FOUND")]
        mended = await fleet.edit(elsewhere, target={"all": True})
        assert not mended.issues
        nothing = draft_pb2.EditDraftRequest(draft_id=item.draft_id, version=mended.version, draft_json="[]")
        assert await refused(fleet.drafts.EditDraft(nothing, timeout=CALL_S)) == "INVALID_DRAFT"


BUYS: dict[str, JsonValue] = {
    "summary": "Deletes one of two.",
    "task": {
        "steps": [
            {"id": "look", "action": "ASSERT", "condition": {"visible": {"text": "Shop"}}},
            {"id": "away", "action": "CLICK", "selector": {"text": "Delete", "index": 0}},
        ]
    },
}


async def test_a_trial_leaves_out_what_cannot_be_undone_unless_it_is_named(tmp_path: Path) -> None:
    part = in_turn(does(call("screen")), does(call("submit_task", **BUYS)))
    async with bench(tmp_path, part) as (fleet, phone):
        item = await fleet.ready()
        document = json.loads(item.draft_json)
        assert [(each["stepId"], each["lowered"]) for each in document["marks"]] == [("away", True)]
        assert document["task"]["steps"][1]["probability"] == 30
        before = len(phone.done)
        request = draft_pb2.TryDraftRequest(draft_id=item.draft_id, version=item.version, request_id="t")
        for _ in range(2):
            trial = (await fleet.drafts.TryDraft(request, timeout=END_S)).trial
            assert (trial.result.successful, list(trial.withheld)) == (True, ["away"])
        assert len(phone.done) == before
        request = draft_pb2.TryDraftRequest(draft_id=item.draft_id, version=item.version, step_id="away")
        assert await refused(fleet.drafts.TryDraft(request, timeout=END_S)) == "STEP_WITHHELD"
        request.allow_steps.append("away")
        trial = (await fleet.drafts.TryDraft(request, timeout=END_S)).trial
        assert trial.result.successful, trial
        assert [each.call for each in phone.done[before:]] == ["tap"]
        assert [each.step_id for each in (await fleet.draft(item.draft_id)).trials] == ["", "away"]


@pytest.mark.parametrize(
    ("use", "made"),
    [
        (draft_pb2.DRAFT_USE_TASK, (1, 0, 0)),
        (draft_pb2.DRAFT_USE_ROLLOUT, (1, 1, 0)),
        (draft_pb2.DRAFT_USE_SCHEDULE, (1, 0, 1)),
    ],
)
async def test_an_accepted_draft_becomes_what_was_asked_for_once(
    tmp_path: Path, use: draft_pb2.DraftUse.ValueType, made: tuple[int, int, int]
) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        item = await fleet.ready(name="read-tea", schedule={"cron": "0 8 * * *"})
        for _ in range(2):
            accepted = await fleet.accept(item, use, request_id="a")
            assert accepted.state == draft_pb2.DRAFT_STATE_ACCEPTED
        assert await refused(fleet.accept(item, use, request_id="b")) == "DRAFT_OVER"
        assert await fleet.made("read-tea") == made
        discard = draft_pb2.DiscardDraftRequest(draft_id=item.draft_id)
        assert await refused(fleet.drafts.DiscardDraft(discard, timeout=CALL_S)) == "DRAFT_OVER"


async def test_two_who_accept_at_once_get_one_thing(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        item = await fleet.ready(name="read-tea")
        uses = (draft_pb2.DRAFT_USE_TASK, draft_pb2.DRAFT_USE_ROLLOUT)
        both = [fleet.accept(item, use, request_id=str(use)) for use in uses]
        answers = await asyncio.gather(*both, return_exceptions=True)
        [accepted] = [each for each in answers if isinstance(each, draft_pb2.Draft)]
        assert (await fleet.made("read-tea"))[1] == bool(accepted.accepted.rollout_id)


async def test_another_use_than_the_one_that_was_cut_off_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut_off(*_: object, **__: object) -> object:
        monkeypatch.undo()
        raise ConnectionAbortedError("the process ended")

    async with bench(tmp_path, EXPLORES) as (fleet, _):
        item = await fleet.ready(name="read-tea")
        monkeypatch.setattr(accepting.Acceptance, "_end", cut_off)
        with pytest.raises(grpc.aio.AioRpcError):
            await fleet.accept(item, draft_pb2.DRAFT_USE_ROLLOUT)
        assert await refused(fleet.accept(item, draft_pb2.DRAFT_USE_TASK)) == "DRAFT_HALF_ACCEPTED"
        assert (await fleet.accept(item, draft_pb2.DRAFT_USE_ROLLOUT)).accepted.rollout_id


LINES = [
    (Library, "save", "before"),
    (Library, "save", "after"),
    (Rollouts, "start", "before"),
    (Rollouts, "start", "after"),
    (Schedules, "create", "before"),
    (Schedules, "create", "after"),
    (accepting.Acceptance, "_end", "before"),
]
"""Where the process may end while a draft is accepted."""


@pytest.mark.parametrize(("owner", "name", "when"), LINES, ids=lambda value: getattr(value, "__name__", value))
async def test_an_acceptance_that_was_cut_off_anywhere_creates_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, when: str
) -> None:
    whole = getattr(owner, name)

    async def cut_off(*args: object, **options: object) -> object:
        monkeypatch.undo()
        if when == "after":
            await whole(*args, **options)
        raise ConnectionAbortedError("the process ended")

    uses = [draft_pb2.DRAFT_USE_SCHEDULE if owner is Schedules else draft_pb2.DRAFT_USE_ROLLOUT]
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        item = await fleet.ready(name="read-tea", schedule={"cron": "0 8 * * *"})
        monkeypatch.setattr(owner, name, cut_off)
        with pytest.raises(grpc.aio.AioRpcError):
            await fleet.accept(item, uses[0], request_id="a")
        assert await refused(fleet.edit(item)) == "DRAFT_HALF_ACCEPTED"
        accepted = await fleet.accept(item, uses[0], request_id="a")
        assert accepted.state == draft_pb2.DRAFT_STATE_ACCEPTED
        assert await fleet.made("read-tea") == (1, int(owner is not Schedules), int(owner is Schedules))


async def test_an_acceptance_that_is_refused_leaves_the_draft_as_it_was(tmp_path: Path) -> None:
    async with bench(tmp_path, EXPLORES) as (fleet, _):
        item = await fleet.ready(name="read-tea")
        assert await refused(fleet.accept(item, draft_pb2.DRAFT_USE_SCHEDULE)) == "NO_TIMES"
        edited = await fleet.edit(item, summary="Reads the name of the tea.")
        assert not edited.issues
        discard = draft_pb2.DiscardDraftRequest(draft_id=item.draft_id)
        for _ in range(2):
            gone = (await fleet.drafts.DiscardDraft(discard, timeout=CALL_S)).draft
            assert gone.state == draft_pb2.DRAFT_STATE_DISCARDED
        listed = await fleet.drafts.ListDrafts(draft_pb2.ListDraftsRequest(), timeout=CALL_S)
        assert [each.state for each in listed.drafts] == [draft_pb2.DRAFT_STATE_DISCARDED]


async def test_a_controller_without_a_model_says_so(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path) as api,
        memory_agent(api.nats, AGENT),
        model_server(plays(EXPLORES)) as none,
    ):
        fleet = Bench(api, none)
        assert not (await fleet.drafts.GetModel(draft_pb2.GetModelRequest(), timeout=CALL_S)).configured
        assert await refused(fleet.start()) == "MODEL_NOT_CONFIGURED"
