"""The live session of one agent, with a memory phone and a clock that the test moves."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from PIL import Image

from benchmarks.matching import _list
from droidfleet_agent.driver.memory import Call, Fault, Page
from droidfleet_agent.engine.picture import fitting
from droidfleet_agent.session.seen import seen_tree
from droidfleet_agent.session.session import MAX_PICTURE_BYTES, TICK_S, Session
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import MAX_MESSAGE_BYTES, ExecutionRef, Message
from droidfleet_shared.bus.session import (
    CloseSession,
    Leased,
    Looked,
    Method,
    OpenSession,
    ReadScreenshot,
    ReadTree,
    RenewSession,
    Reply,
    RunStep,
    SeenPicture,
    SeenTree,
    StepRan,
    TakeLook,
)
from droidfleet_shared.clock import Deadline
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Matched, Matcher
from support.assignments import AGENT, TAP_TEA, WAIT_FOR_NOTHING, ref
from support.clock import HandClock, settle
from support.memory_bus import MemoryBus
from support.screens import dump, node, screen_of, window
from support.shop import shop

ReplyT = TypeVar("ReplyT", bound=Reply)

TTL_S = 30.0


class Bench:
    """A session, and what is around it."""

    def __init__(self, *, latency: dict[Call, float] | None = None, more: dict[str, Page] | None = None) -> None:
        self.clock = HandClock()
        self.bus = MemoryBus()
        self.phone = shop(self.clock, latency=latency, more=more)
        self.granted = True
        self.running: ExecutionRef | None = None
        self.changes = 0
        self._ids = iter(f"lease-{number}" for number in range(1, 100))
        self.session = Session(
            AGENT,
            bus=self.bus,
            phone=self.phone,
            clock=self.clock,
            ready=lambda: self.granted,
            running=lambda: self.running,
            changed=self._changed,
            new_id=lambda: next(self._ids),
        )

    def _changed(self) -> None:
        self.changes += 1

    async def ask(self, method: Method, request: Message, answer: type[ReplyT]) -> ReplyT:
        return answer.decode(await self.session.answer(method, request.encode()))

    async def open(self, holder: str = "anna", ttl_s: float = TTL_S) -> Leased:
        return await self.ask(Method.OPEN, OpenSession(holder=holder, ttl_s=ttl_s), Leased)

    async def step(self, lease: Leased, step: dict[str, object], *, request_id: str = "r1") -> StepRan:
        request = RunStep(lease_id=lease.lease_id, request_id=request_id, step=json.dumps(step))
        return await self.ask(Method.STEP, request, StepRan)

    async def look(self) -> Looked:
        return await self.ask(Method.LOOK, TakeLook(), Looked)

    async def tree(self, *, raw: bool = False) -> SeenTree:
        return await self.ask(Method.TREE, ReadTree(raw=raw), SeenTree)


def held(bench: Bench) -> bool:
    return bench.session.held


def code(reply: Reply) -> str:
    return reply.fault.code if reply.fault is not None else "OK"


@asynccontextmanager
async def working(bench: Bench) -> AsyncIterator[Bench]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.session.run(), name="session")
        unsubscribe = bench.session.subscribe()
        await settle()
        yield bench
        await unsubscribe()
        task.cancel()


# The lease.


async def test_a_lease_is_given_to_one_holder_and_the_next_one_learns_who_has_it_and_until_when() -> None:
    bench = Bench()
    assert code(await bench.open("anna")) == "OK"
    refused = await bench.open("ben")
    assert refused.fault is not None
    assert (refused.fault.code, refused.fault.kind) == ("DEVICE_BUSY", "precondition")
    assert "anna, until 00:00:30 UTC" in refused.fault.message


async def test_a_lease_whose_holder_is_dead_ends_by_the_agents_own_clock() -> None:
    async with working(Bench()) as bench:
        await bench.open("anna")
        assert held(bench)
        changes = bench.changes
        await bench.clock.move(TTL_S + TICK_S)
        assert not held(bench)
        assert bench.changes == changes + 1
        assert code(await bench.open("ben")) == "OK"


async def test_a_renewed_lease_holds_for_as_long_again() -> None:
    bench = Bench()
    lease = await bench.open()
    await bench.clock.move(TTL_S - 1)
    assert code(await bench.ask(Method.RENEW, RenewSession(lease_id=lease.lease_id), Leased)) == "OK"
    await bench.clock.move(TTL_S - 1)
    assert held(bench)


async def test_a_lease_that_ended_cannot_be_renewed_or_used() -> None:
    bench = Bench()
    lease = await bench.open()
    await bench.clock.move(TTL_S + 1)
    assert code(await bench.ask(Method.RENEW, RenewSession(lease_id=lease.lease_id), Leased)) == "LEASE_LOST"
    assert code(await bench.step(lease, TAP_TEA)) == "LEASE_LOST"
    assert bench.phone.done == []


async def test_a_lease_that_was_given_back_is_free_at_once() -> None:
    bench = Bench()
    lease = await bench.open("anna")
    await bench.ask(Method.CLOSE, CloseSession(lease_id=lease.lease_id), Leased)
    assert code(await bench.open("ben")) == "OK"


async def test_somebody_elses_lease_is_not_given_back() -> None:
    bench = Bench()
    await bench.open("anna")
    await bench.ask(Method.CLOSE, CloseSession(lease_id="guessed"), Leased)
    assert held(bench)


async def test_a_running_execution_makes_the_device_busy() -> None:
    bench = Bench()
    bench.running = ref("x-1")
    refused = await bench.open()
    assert refused.fault is not None
    assert (refused.fault.code, "x-1" in refused.fault.message) == ("DEVICE_BUSY", True)


async def test_a_step_keeps_its_lease_until_it_has_ended() -> None:
    async with working(Bench()) as bench:
        lease = await bench.open(ttl_s=1.0)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(bench.step(lease, WAIT_FOR_NOTHING | {"timeoutMs": 20_000}), name="step")
            await bench.clock.move(10)
            assert held(bench)
            assert code(await bench.open("ben")) == "DEVICE_BUSY"
            await bench.clock.move(10.5)
        assert code(running.result()) == "OK"
        assert held(bench)
        await bench.clock.move(1 + TICK_S)
        assert not held(bench)


# Looking.


async def test_a_tree_shows_the_nodes_with_their_selectors_and_why_others_would_not_do() -> None:
    tree = await Bench().tree()
    assert (tree.package_name, tree.activity_name) == ("com.example.shop", "com.example.shop.MainActivity")
    shown = {each.text: each for each in tree.nodes}
    assert [json.loads(each.selector) for each in shown["Tea"].offered] == [{"text": "Tea"}]
    assert [each.why for each in shown["Delete"].rejected] == ['text "Delete" matches 2 nodes']
    assert tree.nodes[0].parent == -1
    assert {"clickable", "enabled", "visible"} <= set(shown["Tea"].flags)


async def test_looking_needs_no_lease_and_goes_on_beside_an_execution() -> None:
    bench = Bench()
    await bench.open("somebody else")
    bench.running = ref("x-1")
    assert (await bench.tree()).nodes


async def test_the_raw_dump_comes_on_request_only() -> None:
    bench = Bench()
    assert (await bench.tree()).xml == ""
    assert (await bench.tree(raw=True)).xml.startswith("<?xml")


async def test_a_password_that_was_typed_is_not_shown() -> None:
    bench = Bench()
    assert bench.phone.window is not None
    secret = next(each for each in bench.phone.window.walk() if each.password)
    secret.text = "hunter2"
    assert "hunter2" not in (await bench.tree()).encode().decode()


async def test_a_phone_that_does_not_answer_is_said_to_be_so_by_the_deadline() -> None:
    bench = Bench()
    bench.phone.fail("dump", Fault.HANG)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(bench.tree(), name="tree")
        await bench.clock.move(20)
    assert code(asked.result()) == "PHONE_UNAVAILABLE"


async def test_a_picture_comes_as_the_phone_sent_it_when_it_fits() -> None:
    picture = await Bench().ask(Method.SCREENSHOT, ReadScreenshot(), SeenPicture)
    assert (picture.media_type, base64.b64decode(picture.data)[:2], picture.scale_percent) == (
        "image/jpeg",
        b"\xff\xd8",
        100,
    )


def test_a_large_picture_is_made_smaller_until_it_fits() -> None:
    noise = Image.effect_noise((1080, 2400), 120)
    buffer = io.BytesIO()
    noise.save(buffer, "PNG")
    picture = fitting(buffer.getvalue(), max_bytes=200_000)
    assert picture is not None
    assert len(picture.data) <= 200_000 < len(buffer.getvalue())
    assert (picture.media_type, picture.scale_percent < 100) == ("image/jpeg", True)


def test_what_is_no_picture_and_too_large_is_refused() -> None:
    assert fitting(b"x" * (MAX_PICTURE_BYTES + 1), max_bytes=MAX_PICTURE_BYTES) is None


@pytest.mark.parametrize("most", [MAX_MESSAGE_BYTES, 120_000, 40_000, 2_000])
def test_a_tree_fits_its_message_and_says_what_was_left_out(most: int) -> None:
    xml = dump(window(_list(500)))
    tree = seen_tree(Matcher(screen_of(xml)), max_bytes=most, xml=xml)
    assert len(tree.encode()) <= most
    assert len(tree.nodes) + tree.omitted == 492
    assert tree.fewer_selectors is (most < MAX_MESSAGE_BYTES)
    assert tree.xml == xml or tree.xml.endswith("characters more -->")
    assert all(each.parent < place for place, each in enumerate(tree.nodes))


# Acting.


async def test_a_step_runs_through_the_engine_and_gives_its_result() -> None:
    bench = Bench()
    ran = await bench.step(await bench.open(), TAP_TEA)
    assert ran.result is not None
    assert (ran.result.code, ran.result.steps[0].action) == ("OK", "CLICK")
    assert [each.call for each in bench.phone.done] == ["tap"]


async def test_a_step_that_fails_is_an_answer_with_candidates() -> None:
    bench = Bench()
    ran = await bench.step(await bench.open(), {"id": "d", "action": "CLICK", "selector": {"text": "Delete"}})
    assert ran.result is not None
    assert ran.result.code == "TARGET_AMBIGUOUS"
    assert len(ran.result.steps[0].candidates) == 2


async def test_a_step_needs_a_lease() -> None:
    bench = Bench()
    assert code(await bench.step(Leased(lease_id="guessed"), TAP_TEA)) == "LEASE_LOST"
    assert bench.phone.done == []


async def test_a_step_that_is_asked_for_twice_runs_once_and_answers_twice() -> None:
    bench = Bench()
    lease = await bench.open()
    first = await bench.step(lease, TAP_TEA, request_id="one")
    again = await bench.step(lease, TAP_TEA, request_id="one")
    assert first == again
    assert len(bench.phone.done) == 1


async def test_a_step_that_broke_after_it_acted_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    lease = await bench.open()
    tap = bench.phone.tap

    async def acts_and_breaks(x: int, y: int, *, deadline: Deadline, hold_ms: int | None = None) -> bool:
        await tap(x, y, deadline=deadline, hold_ms=hold_ms)
        raise RuntimeError("a defect")

    monkeypatch.setattr(bench.phone, "tap", acts_and_breaks)
    with pytest.raises(RuntimeError):
        await bench.step(lease, TAP_TEA, request_id="one")
    assert code(await bench.step(lease, TAP_TEA, request_id="one")) == "OUTCOME_UNKNOWN"
    assert len(bench.phone.done) == 1


async def test_a_second_step_beside_the_first_is_refused() -> None:
    bench = Bench()
    lease = await bench.open()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(bench.step(lease, WAIT_FOR_NOTHING, request_id="one"), name="step")
        await settle()
        assert code(await bench.step(lease, TAP_TEA, request_id="two")) == "DEVICE_BUSY"
        await bench.clock.move(30)
    assert code(first.result()) == "OK"
    assert bench.phone.done == []


async def test_an_invalid_step_is_refused_with_all_that_is_wrong() -> None:
    bench = Bench()
    ran = await bench.step(await bench.open(), {"id": "x", "action": "CLIK", "selector": {}})
    assert ran.fault is not None
    assert ran.fault.code == "INVALID_STEP"
    assert "/steps/0/action" in [issue.path for issue in ran.fault.issues]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id":"a","id":"b","action":"BACK"}', '{"id":"a","action":"BACK"}]'])
async def test_what_is_no_step_is_refused(text: str) -> None:
    bench = Bench()
    lease = await bench.open()
    request = RunStep(lease_id=lease.lease_id, request_id="r", step=text)
    assert code(await bench.ask(Method.STEP, request, StepRan)) == "INVALID_STEP"


async def test_closing_a_session_stops_its_step() -> None:
    bench = Bench()
    lease = await bench.open()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bench.step(lease, WAIT_FOR_NOTHING), name="step")
        await settle()
        await bench.ask(Method.CLOSE, CloseSession(lease_id=lease.lease_id), Leased)
    result = running.result().result
    assert result is not None
    assert result.code == "CANCELLED"


async def test_an_agent_that_ends_stops_the_step_and_gives_no_lease() -> None:
    bench = Bench()
    lease = await bench.open()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bench.step(lease, WAIT_FOR_NOTHING), name="step")
        await settle()
        await bench.session.stop("the agent is stopping.")
    assert running.result().result is not None
    assert code(await bench.open()) == "DEVICE_OFFLINE"


# The bus.


async def test_requests_are_answered_on_the_bus() -> None:
    async with working(Bench()) as bench:
        bench.bus.subscribe("inbox", lambda _: settle())
        request = OpenSession(holder="anna").encode()
        await bench.bus.publish(subjects.rpc(AGENT, "open"), request, reply="inbox")
        await settle()
        (answer,) = [each for each in bench.bus.published if each.subject == "inbox"]
        assert Leased.decode(answer.data).lease_id == "lease-1"


async def test_an_agent_without_its_name_says_nothing() -> None:
    async with working(Bench()) as bench:
        bench.granted = False
        await bench.bus.publish(subjects.rpc(AGENT, "open"), OpenSession(holder="anna").encode(), reply="inbox")
        await settle()
        assert [each.subject for each in bench.bus.published] == [subjects.rpc(AGENT, "open")]


@pytest.mark.parametrize(
    ("method", "data", "expected"),
    [
        ("nonsense", b"{}", "BAD_REQUEST"),
        ("open", b"not json", "BAD_MESSAGE"),
        ("open", b'{"v": 2, "holder": "a"}', "UNKNOWN_MESSAGE_VERSION"),
        ("open", b'{"v": 1}', "BAD_MESSAGE"),
        ("open", b'{"v": 1, "holder": "a", "ttlS": 1e9}', "BAD_MESSAGE"),
    ],
)
async def test_a_request_that_cannot_be_read_is_answered_so(method: str, data: bytes, expected: str) -> None:
    assert code(Reply.decode(await Bench().session.answer(method, data))) == expected


def test_a_node_of_a_tree_takes_few_bytes() -> None:
    tree = seen_tree(Matcher(screen_of(dump(window(node("Buy", (0, 0, 100, 50)))))), max_bytes=MAX_MESSAGE_BYTES)
    assert len(tree.encode()) < 900


async def test_a_look_needs_no_lease_and_can_be_matched_elsewhere() -> None:
    bench = Bench()
    looked = await bench.look()
    assert looked.snapshot is not None
    tree = await bench.tree()
    named = next(node for node in tree.nodes if node.offered)
    outcome = looked.snapshot.matcher().match(Selector.model_validate_json(named.offered[0].selector), touch=False)
    assert isinstance(outcome, Matched)
