"""The bus link against a real nats-server that restarts, is killed, refuses and reloads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.credentials import load_credentials
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.port import (
    BusDeniedError,
    BusMessage,
    BusTimeoutError,
    BusUnavailableError,
    NoRespondersError,
    PayloadTooLargeError,
    SequenceConflictError,
)
from droidfleet_shared.bus.streams import DESIRED, EVENTS, EVENTS_READER
from droidfleet_shared.clock import SystemClock
from support.bus import running, running_link
from support.nats import NatsServer
from support.waiting import until

pytestmark = pytest.mark.integration

TIMEOUT_S = 5.0


class Received:
    """Collects what a subscription gets."""

    def __init__(self) -> None:
        self.messages: list[BusMessage] = []

    async def __call__(self, message: BusMessage) -> None:
        self.messages.append(message)

    @property
    def data(self) -> list[bytes]:
        return [message.data for message in self.messages]


async def test_subscriptions_and_callbacks_outlive_a_restart_of_the_server(nats_server: NatsServer) -> None:
    connects: list[int] = []
    received = Received()

    async def connected() -> None:
        connects.append(1)

    async with running_link(nats_server.url, on_connected=connected) as link:
        link.subscribe("fleet.live.a", received)
        await asyncio.to_thread(nats_server.restart)
        await until(lambda: len(connects) == 2)
        await link.publish("fleet.live.a", b"again")
        await until(lambda: received.data == [b"again"])


@pytest.mark.parametrize(
    "greeting",
    [b"SSH-2.0-OpenSSH_9.6\r\n", b"INFO []\r\n", b"INFO {nothing\r\n", bytes(range(256)) * 600],
    ids=["ssh", "no object", "no JSON", "bytes"],
)
async def test_a_stranger_on_the_port_is_no_reason_to_give_up(greeting: bytes) -> None:
    calls: list[int] = []

    async def stranger(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(1)
        writer.write(greeting)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
        link = BusLink(
            f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", name="t", clock=SystemClock(), random=Random(1)
        )
        async with running(link):
            await until(lambda: len(calls) > 4, what="it goes on trying")
            assert link.reason


async def test_a_killed_server_ends_waiting_calls_at_once_and_the_link_comes_back(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link, running_link(nats_server.url) as other:
        silent = Received()
        other.subscribe("silent", silent)
        await _answered(other, "ready")
        started = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            call = group.create_task(_failure(link.request("silent", b"", timeout_s=60)), name="call")
            await until(lambda: silent.messages)
            await asyncio.to_thread(nats_server.kill)
        assert call.result().code == "BUS_DISCONNECTED"
        assert asyncio.get_running_loop().time() - started < 10
        with pytest.raises(BusUnavailableError, match="not connected"):
            await link.publish("silent", b"")
        await asyncio.to_thread(nats_server.start)
        await link.wait_connected(SystemClock().deadline(20))


async def _failure(call: object) -> BusUnavailableError:
    try:
        await call  # type: ignore[misc]  # any awaitable
    except BusUnavailableError as error:
        return error
    raise AssertionError("the call did not fail")


async def test_a_server_that_is_down_at_the_start_is_waited_for(tmp_path: Path, kept_port: int) -> None:
    server = NatsServer(tmp_path)
    server.port = kept_port
    clock = SystemClock()
    link = BusLink(server.url, name="early", clock=clock, random=Random(1))
    async with running(link):
        with pytest.raises(BusUnavailableError) as refused:
            await link.wait_connected(clock.deadline(0.5))
        assert "127.0.0.1" in refused.value.message
        await asyncio.to_thread(server.start)
        await link.wait_connected(clock.deadline(20))
    server.stop()


class CountingClock(SystemClock):
    """Sleeps no time, and keeps how long it should have been."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def dead_end(kept_port: int) -> str:
    """An address where nobody listens."""
    return f"nats://127.0.0.1:{kept_port}"


async def test_pauses_between_attempts_are_spread_below_a_bound_that_doubles_to_thirty_seconds(dead_end: str) -> None:
    clock = CountingClock()
    link = BusLink(dead_end, name="lonely", clock=clock, random=Random(1))
    async with running(link):
        await until(lambda: len(clock.slept) >= 40, within_s=30)
    bounds = [min(30.0, 0.5 * 2**attempt) for attempt in range(len(clock.slept))]
    assert all(0 <= pause <= bound for pause, bound in zip(clock.slept, bounds, strict=True))
    assert 10 < sum(clock.slept[10:]) / len(clock.slept[10:]) < 20


async def test_a_client_closed_for_good_is_built_anew(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, permissions={"a": {"publish": [">"], "subscribe": [">"]}})
    server.start()
    received = Received()
    connects: list[int] = []

    async def connected() -> None:
        connects.append(1)

    async with running_link(server.url, user="a", on_connected=connected) as link:
        link.subscribe("x", received)
        # Users that are taken away and come back: the server closes the connection with an authorization error.
        server.permissions = {"b": {"publish": [">"], "subscribe": [">"]}}
        await asyncio.to_thread(server.reload)
        await until(lambda: not link.connected)
        server.permissions = {"a": {"publish": [">"], "subscribe": [">"]}}
        await asyncio.to_thread(server.reload)
        await until(lambda: len(connects) == 2, within_s=30)
        await link.publish("x", b"back")
        await until(lambda: received.data == [b"back"])
    server.stop()


async def test_a_link_that_is_cancelled_while_it_connects_ends(nats_server: NatsServer) -> None:
    for steps in range(60):
        link = BusLink(nats_server.url, name="brief", clock=SystemClock(), random=Random(1))
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            task = group.create_task(link.run(), name="link")
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
        assert task.cancelled()


async def test_a_link_that_is_cancelled_while_nobody_listens_ends(dead_end: str) -> None:
    for steps in range(250):
        link = BusLink(dead_end, name="brief", clock=CountingClock(), random=Random(1))
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            task = group.create_task(link.run(), name="link")
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
        assert task.cancelled()


async def test_a_message_over_the_servers_limit_is_refused_before_it_is_sent(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        with pytest.raises(PayloadTooLargeError):
            await link.publish("x", b"x" * (1024 * 1024 + 1))
        # With headers a payload of exactly the limit is too large as well.
        with pytest.raises(PayloadTooLargeError):
            await link.js_publish("fleet.desired.a", b"x" * 1024 * 1024, stream="DESIRED", timeout_s=TIMEOUT_S)
        await link.publish("x", b"x" * 1024 * 1024)
        await asyncio.sleep(0)
        assert link.connected


async def test_a_request_to_nobody_says_so_at_once(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        with pytest.raises(NoRespondersError, match="nobody listens on nobody"):
            await link.request("nobody", b"", timeout_s=60)


async def test_a_request_without_an_answer_ends_at_its_timeout(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        link.subscribe("silent", Received())
        await _answered(link, "other")
        with pytest.raises(BusTimeoutError):
            await link.request("silent", b"", timeout_s=0.1)


async def _answered(link: BusLink, subject: str) -> None:
    """A round trip over a subscription made just now: everything subscribed before is in place."""

    async def answer(message: BusMessage) -> None:
        await link.publish(message.reply, b"yes")

    link.subscribe(subject, answer)
    for _ in range(100):
        try:
            await link.request(subject, b"", timeout_s=TIMEOUT_S)
        except NoRespondersError:
            await asyncio.sleep(0.01)
        else:
            return
    raise AssertionError("never subscribed")


async def test_a_slow_handler_loses_messages_past_its_bound_and_nothing_else(nats_server: NatsServer) -> None:
    release = asyncio.Event()
    begun: list[bytes] = []
    handled: list[bytes] = []

    async def slow(message: BusMessage) -> None:
        begun.append(message.data)
        await release.wait()
        handled.append(message.data)

    async with running_link(nats_server.url) as link:
        link.subscribe("flood", slow, pending_limit=2)
        await _answered(link, "other")
        await link.publish("flood", b"0")
        await until(lambda: begun)
        for number in range(1, 10):
            await link.publish("flood", str(number).encode())
        await _answered(link, "another")
        release.set()
        # One in the handler, two that wait; the rest was dropped.
        await until(lambda: len(handled) == 3)
        assert handled == [b"0", b"1", b"2"]
        assert link.connected


async def test_a_handler_is_not_cancelled_when_the_connection_breaks(nats_server: NatsServer) -> None:
    release = asyncio.Event()
    state: list[str] = []

    async def slow(_message: BusMessage) -> None:
        state.append("begun")
        await release.wait()
        state.append("done")

    async with running_link(nats_server.url) as link:
        link.subscribe("x", slow)
        await _answered(link, "other")
        await link.publish("x", b"")
        await until(lambda: state == ["begun"])
        await asyncio.to_thread(nats_server.kill)
        await until(lambda: not link.connected)
        release.set()
        await until(lambda: state == ["begun", "done"])


async def test_a_handler_that_fails_does_not_end_its_subscription(nats_server: NatsServer) -> None:
    handled: list[bytes] = []

    async def fragile(message: BusMessage) -> None:
        if message.data == b"bad":
            raise ValueError("bad")
        handled.append(message.data)

    async with running_link(nats_server.url) as link:
        link.subscribe("x", fragile)
        await _answered(link, "other")
        await link.publish("x", b"bad")
        await link.publish("x", b"good")
        await until(lambda: handled == [b"good"])


async def test_an_ended_subscription_gets_nothing_more(nats_server: NatsServer) -> None:
    received = Received()
    async with running_link(nats_server.url) as link:
        end = link.subscribe("x", received)
        await _answered(link, "other")
        await end()
        await _answered(link, "another")
        with pytest.raises(NoRespondersError):
            await link.request("x", b"", timeout_s=TIMEOUT_S)
        assert received.data == []


# Desired state: last message per subject, republish, direct get, expected sequence.


async def test_a_stored_document_is_republished_and_names_the_sequence_before_it(nats_server: NatsServer) -> None:
    live = Received()
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(DESIRED, timeout_s=TIMEOUT_S)
        link.subscribe(subjects.live("phone.1"), live)
        await _answered(link, "other")
        subject = subjects.desired("phone.1")
        first = await link.js_publish(subject, b"1", stream="DESIRED", timeout_s=TIMEOUT_S)
        await link.js_publish(subjects.desired("phone-2"), b"other", stream="DESIRED", timeout_s=TIMEOUT_S)
        second = await link.js_publish(subject, b"2", stream="DESIRED", timeout_s=TIMEOUT_S)
        await until(lambda: live.data == [b"1", b"2"])
        assert live.messages[0].headers["Nats-Last-Sequence"] == "0"
        assert live.messages[1].headers["Nats-Last-Sequence"] == str(first)
        assert live.messages[1].headers["Nats-Sequence"] == str(second)


async def test_direct_get_returns_the_last_document_or_none(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(DESIRED, timeout_s=TIMEOUT_S)
        subject = subjects.desired("phone-01")
        assert await link.get_last("DESIRED", subject, timeout_s=TIMEOUT_S) is None
        await link.js_publish(subject, b"old", stream="DESIRED", timeout_s=TIMEOUT_S)
        sequence = await link.js_publish(subject, b"new", stream="DESIRED", timeout_s=TIMEOUT_S)
        stored = await link.get_last("DESIRED", subject, timeout_s=TIMEOUT_S)
        assert stored is not None
        assert (stored.subject, stored.data, stored.sequence) == (subject, b"new", sequence)


async def test_two_writers_cannot_overwrite_each_other(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(DESIRED, timeout_s=TIMEOUT_S)
        subject = subjects.desired("phone-01")
        first = await link.js_publish(
            subject, b"1", stream="DESIRED", timeout_s=TIMEOUT_S, expected_last_subject_sequence=0
        )
        with pytest.raises(SequenceConflictError):
            await link.js_publish(
                subject, b"2", stream="DESIRED", timeout_s=TIMEOUT_S, expected_last_subject_sequence=0
            )
        await link.js_publish(
            subject, b"2", stream="DESIRED", timeout_s=TIMEOUT_S, expected_last_subject_sequence=first
        )


async def test_publishing_to_a_missing_stream_says_that_nobody_listens(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        with pytest.raises(NoRespondersError):
            await link.js_publish("fleet.event.a.b", b"", stream="EVENTS", timeout_s=TIMEOUT_S)
        with pytest.raises(NoRespondersError):
            await link.get_last("DESIRED", subjects.desired("a"), timeout_s=TIMEOUT_S)


async def test_ensuring_a_stream_twice_changes_nothing(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        for _ in range(2):
            await link.ensure_stream(DESIRED, timeout_s=TIMEOUT_S)
            await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
            await link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
        await link.js_publish(subjects.event("a", "e1"), b"1", stream="EVENTS", timeout_s=TIMEOUT_S)
        await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        assert [m.data for m in await link.fetch(EVENTS_READER, batch=10, timeout_s=TIMEOUT_S)] == [b"1"]


# Events: the durable pull consumer.


async def test_fetch_returns_as_soon_as_something_came(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        await link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
        started = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            fetch = group.create_task(link.fetch(EVENTS_READER, batch=50, timeout_s=30), name="fetch")
            await asyncio.sleep(0)
            await link.js_publish(subjects.event("a", "e1"), b"1", stream="EVENTS", timeout_s=TIMEOUT_S)
        assert [message.data for message in fetch.result()] == [b"1"]
        assert asyncio.get_running_loop().time() - started < 10


async def test_fetch_brings_every_message_once_over_many_batches(nats_server: NatsServer) -> None:
    expected = {str(number).encode() for number in range(250)}
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        await link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
        for data in expected:
            await link.js_publish(subjects.event("a", "e1"), data, stream="EVENTS", timeout_s=TIMEOUT_S)
        got: list[bytes] = []
        while len(got) < len(expected):
            messages = await link.fetch(EVENTS_READER, batch=20, timeout_s=TIMEOUT_S)
            assert messages
            await link.ack(messages)
            got += [message.data for message in messages]
        assert set(got) == expected
        assert await link.fetch(EVENTS_READER, batch=20, timeout_s=0.1) == []


async def test_a_fetch_that_found_nothing_does_not_swallow_what_comes_later(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        await link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
        for number in range(5):
            assert await link.fetch(EVENTS_READER, batch=10, timeout_s=0.05) == []
            data = str(number).encode()
            await link.js_publish(subjects.event("a", "e1"), data, stream="EVENTS", timeout_s=TIMEOUT_S)
            messages = await link.fetch(EVENTS_READER, batch=10, timeout_s=TIMEOUT_S)
            await link.ack(messages)
            assert [message.data for message in messages] == [data]


async def test_fetch_from_a_missing_consumer_says_so_at_once(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        with pytest.raises(NoRespondersError, match="consumer"):
            await link.fetch(EVENTS_READER, batch=10, timeout_s=30)


async def test_a_waiting_fetch_ends_at_once_when_the_server_is_killed(nats_server: NatsServer) -> None:
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        await link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
        started = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            call = group.create_task(_failure(link.fetch(EVENTS_READER, batch=10, timeout_s=60)), name="fetch")
            # A round trip after it: the server has the pull.
            await link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
            await asyncio.to_thread(nats_server.kill)
        assert call.result().code == "BUS_DISCONNECTED"
        assert asyncio.get_running_loop().time() - started < 10


async def test_acknowledgement_subjects_have_the_form_that_the_client_reads(nats_server: NatsServer) -> None:
    """`js_ack_fc_v2` is pinned off: with it, parts of nats-py wait for ever (`nats-and-fleet-facts`, 1.4)."""
    async with running_link(nats_server.url) as link:
        await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        await link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
        await link.js_publish(subjects.event("a", "e1"), b"1", stream="EVENTS", timeout_s=TIMEOUT_S)
        [message] = await link.fetch(EVENTS_READER, batch=10, timeout_s=TIMEOUT_S)
        assert len(message.ack_token.split(".")) == 9


# Permissions.


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(
        tmp_path / "guarded", permissions={name: subjects.agent_permissions(name) for name in ("phone-01", "phone-02")}
    )
    server.start()
    yield server
    server.stop()


async def test_an_agents_permissions_are_enough_for_all_that_it_does(guarded: NatsServer) -> None:
    beats = Received()
    live = Received()
    async with (
        running_link(guarded.url, user="controller") as controller,
        running_link(guarded.url, user="phone-01", inbox_prefix=subjects.inbox_prefix("phone-01")) as agent,
    ):
        await controller.ensure_stream(DESIRED, timeout_s=TIMEOUT_S)
        await controller.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)

        async def answer(message: BusMessage) -> None:
            beats.messages.append(message)
            await controller.publish(message.reply, b"granted")

        controller.subscribe(subjects.HEARTBEATS_ALL, answer)
        await _answered(controller, "other")
        assert (await agent.request(subjects.heartbeat("phone-01"), b"hello", timeout_s=TIMEOUT_S)).data == b"granted"
        agent.subscribe(subjects.live("phone-01"), live)
        await agent.request(subjects.heartbeat("phone-01"), b"subscribed", timeout_s=TIMEOUT_S)
        await controller.js_publish(subjects.desired("phone-01"), b"doc", stream="DESIRED", timeout_s=TIMEOUT_S)
        await until(lambda: live.data == [b"doc"])
        stored = await agent.get_last("DESIRED", subjects.desired("phone-01"), timeout_s=TIMEOUT_S)
        assert stored is not None
        assert stored.data == b"doc"
        await agent.js_publish(subjects.event("phone-01", "e.1"), b"event", stream="EVENTS", timeout_s=TIMEOUT_S)


@pytest.mark.parametrize(
    ("what", "subject"),
    [
        ("another's document", subjects.direct_get("phone-02")),
        ("the batched direct get", "$JS.API.DIRECT.GET.DESIRED"),
        ("the stream API", "$JS.API.STREAM.MSG.GET.DESIRED"),
        ("another's events", subjects.event("phone-02", "e1")),
        ("another's heartbeat", subjects.heartbeat("phone-02")),
        ("its own document", subjects.desired("phone-01")),
    ],
)
async def test_an_agent_may_not_touch(guarded: NatsServer, what: str, subject: str) -> None:
    async with running_link(guarded.url, user="phone-01", inbox_prefix=subjects.inbox_prefix("phone-01")) as agent:
        with pytest.raises(BusDeniedError):
            await agent.request(subject, b"", timeout_s=30)
        assert agent.connected, what


async def test_an_agent_may_not_listen_to_another(guarded: NatsServer) -> None:
    heard = Received()
    async with (
        running_link(guarded.url, user="controller") as controller,
        running_link(guarded.url, user="phone-01", inbox_prefix=subjects.inbox_prefix("phone-01")) as agent,
    ):
        agent.subscribe(subjects.live("phone-02"), heard)
        agent.subscribe(f"{subjects.inbox_prefix('phone-02')}.>", heard)
        with pytest.raises(NoRespondersError):
            await agent.request(subjects.heartbeat("phone-01"), b"", timeout_s=TIMEOUT_S)
        await controller.publish(subjects.live("phone-02"), b"private")
        await controller.publish(f"{subjects.inbox_prefix('phone-02')}.x", b"private")
        with pytest.raises(NoRespondersError):
            await controller.request("nobody", b"", timeout_s=TIMEOUT_S)
        assert heard.data == []


async def test_wrong_credentials_are_named_as_the_reason(guarded: NatsServer) -> None:
    clock = SystemClock()
    link = BusLink(guarded.url, name="nobody", clock=clock, random=Random(1))
    async with running(link):
        with pytest.raises(BusUnavailableError, match="refuses these credentials"):
            await link.wait_connected(clock.deadline(1.0))


async def test_credentials_that_were_changed_are_used_without_a_restart(tmp_path: Path) -> None:
    everything = {"publish": [">"], "subscribe": [">"]}
    server = NatsServer(tmp_path / "nats", permissions={"old": everything})
    server.start()
    file = tmp_path / "credentials"
    file.write_text("old:old")
    file.chmod(0o600)
    clock = SystemClock()
    link = BusLink(server.url, name="t", clock=clock, random=Random(1), credentials=partial(load_credentials, file))
    async with running(link):
        await link.wait_connected(clock.deadline(20))
        server.permissions = {"new": everything}
        await asyncio.to_thread(server.reload)
        await until(lambda: "refuses these credentials" in link.reason, what="the old ones are refused")
        file.unlink()
        await until(lambda: "cannot be read" in link.reason, within_s=30, what="the reason names the file")
        file.write_text("new:new")
        file.chmod(0o600)
        await link.wait_connected(clock.deadline(30))
    server.stop()
