"""One whole agent with a memory bus, a memory phone and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest
from structlog.testing import capture_logs

from droidfleet_agent.agent import Agent, AgentSettings
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.link.heartbeat import Identity, NameTakenError
from droidfleet_agent.presence import Presence
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import (
    DesiredState,
    Event,
    ExecutionFinished,
    Heartbeat,
    HeartbeatReply,
    PhoneState,
    decode_event,
)
from droidfleet_shared.bus.port import BusMessage, PayloadTooLargeError
from droidfleet_shared.errors import DeniedError
from support.assignments import AGENT, TAP_TEA, WAIT_FOR_NOTHING, assignment, document, ref, task_text
from support.clock import HandClock, settle
from support.memory_bus import MemoryBus
from support.shop import shop

SETTINGS = AgentSettings(heartbeat_s=10.0, read_document_s=60.0)
LONGEST_READ_S = 60 * 1.2
BACK: dict[str, object] = {"id": "back", "action": "BACK"}


class Plug(Presence):
    """A phone that the test plugs and unplugs."""

    def __init__(self) -> None:
        self.now = PhoneState.ONLINE
        self._callbacks: list[Callable[[], None]] = []

    def state(self, serial: str) -> PhoneState:
        return self.now

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def turn(self, state: PhoneState) -> None:
        self.now = state
        for callback in self._callbacks:
            callback()


class Fleet:
    """An agent and the controller's side of the bus."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.bus = MemoryBus()
        self.phone = shop(self.clock)
        self.plug = Plug()
        self.journal = MemoryJournal()
        self.reply: HeartbeatReply | None = HeartbeatReply(granted=True)
        self.way_s = 0.0
        """What a heartbeat and its answer take each."""
        self.failure: BaseException | None = None
        self.agent = Agent(
            Identity(name=AGENT, serial="S1", instance="i1", host_id="h1"),
            bus=self.bus,
            phone=self.phone,
            presence=self.plug,
            journal=self.journal,
            clock=self.clock,
            random=Random(1),
            settings=SETTINGS,
        )
        self.bus.subscribe(subjects.heartbeat(AGENT), self._hear)

    async def _hear(self, message: BusMessage) -> None:
        beat = Heartbeat.decode(message.data)
        # Like the controller: a hello is answered, and what does not come from the holder.
        if self.reply is not None and message.reply and (beat.hello or not self.reply.granted):
            if self.way_s:
                await self.clock.sleep(2 * self.way_s + (self.reply.took_s or 0.0))
            await self.bus.publish(message.reply, self.reply.encode())

    @property
    def beats(self) -> list[Heartbeat]:
        heard = [message for message in self.bus.published if message.subject == subjects.heartbeat(AGENT)]
        return [Heartbeat.decode(message.data) for message in heard]

    async def assign(self, wanted: DesiredState, *, push: bool = True) -> None:
        """Stores a document as the controller does, and pushes it live as the broker does."""
        before = next((m.sequence for m in reversed(self.bus.stored) if m.subject == subjects.desired(AGENT)), 0)
        sequence = await self.bus.js_publish(
            subjects.desired(AGENT), wanted.encode(), stream=subjects.DESIRED_STREAM, timeout_s=1
        )
        if push:
            await self.bus.push(subjects.live(AGENT), wanted.encode(), sequence=sequence, before=before)
        await settle()

    def events(self, execution_id: str = "a") -> list[Event]:
        return [decode_event(data) for data in self.bus.data(subjects.event(AGENT, execution_id))]

    def kinds(self, execution_id: str = "a") -> list[str]:
        return [event.kind for event in self.events(execution_id)]


@asynccontextmanager
async def running(fleet: Fleet) -> AsyncIterator[Fleet]:
    async def run() -> None:
        try:
            await fleet.agent.run()
        except NameTakenError as error:
            fleet.failure = error

    async with asyncio.TaskGroup() as group:
        group.create_task(run(), name="agent")
        await settle()
        yield fleet
        fleet.agent.stop()


async def test_the_first_heartbeat_asks_for_the_name_and_the_next_ones_do_not() -> None:
    async with running(Fleet()) as fleet:
        await fleet.clock.move(20)
        assert [beat.hello for beat in fleet.beats][:2] == [True, False]
        assert not any(beat.hello for beat in fleet.beats[1:])


async def test_an_answer_that_a_push_overtook_is_read_again() -> None:
    fleet = Fleet()
    async with running(fleet):
        await fleet.assign(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING)), epoch="db-1"))
        newer = document(1, assignment("b", task=task_text(TAP_TEA)), epoch="db-2")
        fleet.bus.before_get_answer = lambda: fleet.assign(newer)
        await fleet.clock.move(LONGEST_READ_S)
        await fleet.clock.move(1)
        assert (fleet.kinds("a")[-1], fleet.kinds("b")[-1]) == ("ExecutionFinished", "ExecutionFinished")
        assert fleet.beats[-1].epoch == "db-2"


@pytest.mark.parametrize(("data", "warned"), [(b"", False), (b"{", True)])
async def test_an_answer_by_nobody_is_no_news_and_one_that_cannot_be_read_is(data: bytes, warned: bool) -> None:
    async with running(Fleet()) as fleet:
        with capture_logs() as logs:
            await fleet.bus.publish(f"{subjects.inbox_prefix(AGENT)}.heartbeat.i1", data)
            await settle()
        assert ("heartbeat_answer_unreadable" in [line["event"] for line in logs]) is warned


async def test_heartbeats_come_in_their_interval_and_at_each_change() -> None:
    async with running(Fleet()) as fleet:
        await fleet.clock.move(0.5)
        before = len(fleet.beats)
        await fleet.clock.move(30)
        assert len(fleet.beats) == before + 3
        fleet.plug.turn(PhoneState.OFFLINE)
        await settle()
        assert (len(fleet.beats), fleet.beats[-1].phone) == (before + 4, PhoneState.OFFLINE)


async def test_heartbeats_carry_what_is_known_of_the_phone_and_of_the_work() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(7, assignment("a", task=task_text(WAIT_FOR_NOTHING))))
        await fleet.clock.move(1)
        beat = fleet.beats[-1]
        assert (beat.model, beat.android, beat.battery_percent) == ("Memory", "14", 100)
        assert (beat.running, beat.generation, beat.serial, beat.host_id) == (ref("a"), 7, "S1", "h1")


async def test_a_pushed_document_is_run_and_its_events_are_sent_in_order() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, assignment("a", task=task_text(TAP_TEA))))
        assert fleet.kinds() == [
            "ExecutionAccepted",
            "ExecutionStarted",
            "StepStarted",
            "StepFinished",
            "ExecutionFinished",
        ]
        assert [event.sequence for event in fleet.events()] == [1, 2, 3, 4, 5]
        assert list(await fleet.journal.outbox(10)) == []


async def test_a_document_that_was_there_before_the_agent_is_read_at_its_start() -> None:
    fleet = Fleet()
    await fleet.assign(document(1, assignment("a")), push=False)
    async with running(fleet):
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_a_document_whose_push_was_lost_is_found_in_time() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, assignment("a")), push=False)
        assert fleet.kinds() == []
        await fleet.clock.move(LONGEST_READ_S)
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_a_gap_in_the_pushes_makes_the_agent_read() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1))
        reads = len(fleet.bus.gets)
        await fleet.assign(document(2), push=False)
        await fleet.assign(document(3))
        assert len(fleet.bus.gets) == reads + 1
        await fleet.assign(document(4))
        assert len(fleet.bus.gets) == reads + 1


@pytest.mark.parametrize("data", [b"", b"{", b'{"v": 2}', document(1, agent="phone-02").encode()])
async def test_a_document_that_is_unreadable_or_another_agents_is_left_alone(data: bytes) -> None:
    async with running(Fleet()) as fleet:
        await fleet.bus.push(subjects.live(AGENT), data, sequence=1, before=0)
        await fleet.assign(document(2, assignment("a")))
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_nothing_begins_before_the_name_is_granted() -> None:
    fleet = Fleet()
    fleet.reply = None
    async with running(fleet):
        await fleet.assign(document(1, assignment("a")))
        await fleet.clock.move(30)
        assert fleet.kinds() == ["ExecutionAccepted"]
        assert len(fleet.beats) > 2
        assert all(beat.hello for beat in fleet.beats)
        fleet.reply = HeartbeatReply(granted=True)
        await fleet.clock.move(20)
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_an_agent_whose_name_is_held_elsewhere_says_who_holds_it() -> None:
    fleet = Fleet()
    fleet.reply = HeartbeatReply(granted=False, holder="pid 7 on host-b")
    async with running(fleet):
        pass
    assert isinstance(fleet.failure, NameTakenError)
    assert fleet.failure.code == "NAME_TAKEN"
    assert "pid 7 on host-b" in fleet.failure.message
    assert fleet.kinds() == []


async def test_an_agent_that_lost_its_name_stops_what_it_runs_and_ends() -> None:
    fleet = Fleet()
    async with running(fleet):
        await fleet.assign(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING))))
        fleet.reply = HeartbeatReply(granted=False, holder="pid 7 on host-b")
        await fleet.clock.move(10)
    assert isinstance(fleet.failure, NameTakenError)
    finished = fleet.events()[-1]
    assert isinstance(finished, ExecutionFinished)
    assert finished.result.code == "AGENT_RESTARTED"


async def test_an_answer_to_another_instance_of_the_name_is_not_heard() -> None:
    async with running(Fleet()) as fleet:
        await fleet.clock.move(10)
        [reply] = {message.reply for message in fleet.bus.published if message.reply.endswith("i1")}
        other = reply.replace("i1", "i2")
        await fleet.bus.publish(other, HeartbeatReply(granted=False, holder="somebody").encode())
        await fleet.clock.move(10)
        assert fleet.failure is None


async def test_an_unplugged_phone_lets_nothing_begin_until_it_is_back() -> None:
    async with running(Fleet()) as fleet:
        fleet.plug.turn(PhoneState.OFFLINE)
        await fleet.assign(document(1, assignment("a")))
        assert fleet.kinds() == ["ExecutionAccepted"]
        fleet.plug.turn(PhoneState.ONLINE)
        await settle()
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_without_the_broker_the_agent_finishes_what_it_has_and_reports_later() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING)), assignment("b")))
        fleet.bus.disconnect()
        await fleet.clock.move(60)
        assert fleet.kinds("b") == ["ExecutionAccepted"]
        await fleet.bus.reconnect()
        await settle()
        assert fleet.kinds("a")[-1] == "ExecutionFinished"
        assert fleet.kinds("b")[-1] == "ExecutionFinished"
        assert [event.sequence for event in fleet.events("b")] == [1, 2, 3, 4, 5]


async def test_an_hour_without_the_broker_loses_nothing_and_repeats_nothing() -> None:
    names = ("a", "b", "c", "d")
    rest: dict[str, object] = {"id": "rest", "action": "DELAY", "minMs": 300_000}
    tasks = [assignment(name, task=task_text(TAP_TEA, rest, BACK)) for name in names]
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, *tasks))
        fleet.bus.disconnect()
        await fleet.clock.move(3_600, turns=20)
        assert [each.call for each in fleet.phone.done] == ["tap", "press"] * len(names)
        assert fleet.kinds("d") == ["ExecutionAccepted"]
        await fleet.bus.reconnect()
        await fleet.clock.move(15)
        for name in names:
            sequences = [event.sequence for event in fleet.events(name)]
            assert sequences == list(range(1, len(sequences) + 1))
            assert fleet.kinds(name)[-1] == "ExecutionFinished"
        assert [beat.hello for beat in fleet.beats].count(True) == 1
        assert fleet.beats[-1].running is None
    assert [each.call for each in fleet.phone.done] == ["tap", "press"] * len(names)


async def test_an_event_whose_acknowledgement_was_lost_is_sent_again() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1))
        fleet.bus.lose_answers = 1
        wanted = document(2, assignment("a"))
        await fleet.bus.push(subjects.live(AGENT), wanted.encode(), sequence=99, before=1)
        await fleet.clock.move(5)
        assert fleet.kinds()[:2] == ["ExecutionAccepted", "ExecutionAccepted"]
        assert fleet.kinds()[-1] == "ExecutionFinished"
        assert {event.sequence for event in fleet.events()} == {1, 2, 3, 4, 5}


async def test_events_that_are_refused_wait_and_go_later() -> None:
    async with running(Fleet()) as fleet:
        wanted = document(1, assignment("a"))
        fleet.bus.refuse_storing = DeniedError("BUS_DENIED", "no")
        await fleet.bus.push(subjects.live(AGENT), wanted.encode(), sequence=1, before=0)
        await fleet.clock.move(5)
        assert fleet.kinds() == []
        fleet.bus.refuse_storing = None
        await fleet.clock.move(60)
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_an_event_that_is_too_large_for_the_broker_holds_nothing_up() -> None:
    async with running(Fleet()) as fleet:
        wanted = document(1, assignment("a"))
        fleet.bus.refuse_storing = PayloadTooLargeError("MESSAGE_TOO_LARGE", "no")
        await fleet.bus.push(subjects.live(AGENT), wanted.encode(), sequence=1, before=0)
        await settle()
        assert list(await fleet.journal.outbox(10)) == []


async def test_a_result_is_sent_again_until_the_document_records_it() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, assignment("a")))
        await fleet.clock.move(35)
        assert fleet.kinds().count("ExecutionFinished") == 2
        first, second = [event for event in fleet.events() if isinstance(event, ExecutionFinished)]
        assert first == second
        await fleet.assign(document(2, recorded=[ref("a")]))
        await fleet.clock.move(600)
        assert fleet.kinds().count("ExecutionFinished") == 2


async def test_stopping_leaves_what_runs_and_says_so() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING)), assignment("b")))
    assert fleet.kinds("a") == ["ExecutionAccepted", "ExecutionStarted", "StepStarted"]
    assert fleet.kinds("b") == ["ExecutionAccepted"]
    assert (fleet.beats[-1].leaving, fleet.beats[-1].running) == (True, ref("a"))
    assert not fleet.phone.attached


async def test_stopping_without_a_broker_ends_all_the_same() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING))))
        fleet.bus.disconnect()
    assert fleet.kinds()[-1] != "ExecutionFinished"


async def test_a_phone_that_does_not_answer_keeps_the_agent_alive() -> None:
    fleet = Fleet()
    fleet.phone.attached = False
    async with running(fleet):
        await fleet.clock.move(25)
        assert fleet.beats[-1].model == ""
        fleet.phone.attached = True
        await fleet.clock.move(60)
        assert fleet.beats[-1].model == "Memory"


async def test_an_agent_that_stood_still_asks_again_before_it_begins_anything() -> None:
    async with running(Fleet()) as fleet:
        fleet.reply = None
        fleet.clock.stand_still(30)
        await fleet.assign(document(1, assignment("a", task=task_text(TAP_TEA))))
        assert fleet.kinds() == ["ExecutionAccepted"]
        fleet.reply = HeartbeatReply(granted=True)
        await fleet.clock.move(20)
        assert fleet.kinds()[-1] == "ExecutionFinished"
        assert [beat.hello for beat in fleet.beats].count(True) > 1


async def test_an_agent_whose_machine_slept_asks_again() -> None:
    async with running(Fleet()) as fleet:
        fleet.clock.sleep_machine(30)
        await fleet.clock.move(20)
        assert [beat.hello for beat in fleet.beats].count(True) > 1


@pytest.mark.parametrize("ahead_s", [86_400.0, -86_400.0])
async def test_an_agent_whose_wall_clock_is_set_goes_on_as_before(ahead_s: float) -> None:
    async with running(Fleet()) as fleet:
        fleet.reply = None
        fleet.clock.ahead_s = ahead_s
        await fleet.clock.move(20)
        await fleet.assign(document(1, assignment("a", task=task_text(TAP_TEA), start_within_s=60)))
        assert fleet.kinds()[-1] == "ExecutionFinished"
        assert [beat.hello for beat in fleet.beats].count(True) == 1


async def test_heartbeats_say_how_long_the_way_is_without_the_time_at_its_end() -> None:
    fleet = Fleet()
    fleet.reply, fleet.way_s = HeartbeatReply(granted=True, took_s=0.5), 0.25
    async with running(fleet):
        await fleet.clock.move(20)
        assert fleet.beats[-1].round_trip_s == pytest.approx(0.5)


async def test_an_agent_that_stood_still_and_lost_its_name_begins_nothing_and_ends() -> None:
    async with running(Fleet()) as fleet:
        fleet.clock.stand_still(30)
        fleet.reply = HeartbeatReply(granted=False, holder="pid 7 on lab-2")
        await fleet.assign(document(1, assignment("a", task=task_text(TAP_TEA))))
        await fleet.clock.move(20)
        assert isinstance(fleet.failure, NameTakenError)
        assert (fleet.kinds(), fleet.phone.done) == (["ExecutionAccepted"], [])


async def test_an_agent_that_ends_in_order_says_that_it_leaves_and_nothing_after_it() -> None:
    async with running(Fleet()) as fleet:
        assert not fleet.beats[-1].leaving
    assert [beat.leaving for beat in fleet.beats].index(True) == len(fleet.beats) - 1


async def test_an_agent_without_a_granted_name_takes_no_leave() -> None:
    fleet = Fleet()
    fleet.reply = None
    async with running(fleet):
        pass
    assert not any(beat.leaving for beat in fleet.beats)
