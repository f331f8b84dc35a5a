"""`SimLink`: one connection to the simulated broker, as the port `Bus` promises it, over a network that can be cut.

Messages take a random time each way and stay in their order, as on one TCP connection. A cut that nobody has noticed
swallows them: calls then end by their timeout. Once its process is dead nothing leaves it and nothing reaches it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

from droidfleet_shared.bus.port import (
    DEFAULT_PENDING_LIMIT,
    Bus,
    BusMessage,
    BusTimeoutError,
    BusUnavailableError,
    ConnectedCallback,
    Handler,
    NoRespondersError,
    StoredMessage,
    Unsubscribe,
)
from droidfleet_shared.bus.streams import ConsumerSpec, StreamSpec
from droidfleet_shared.clock import Deadline
from droidfleet_shared.errors import DroidfleetError
from simulation.broker import Broker
from simulation.history import History

T = TypeVar("T")

RECONNECT_S = 4.0
"""The longest wait before a new connection is tried; the real link's goes up to 30 s, in which little happens."""

CALL_MARGIN_S = 5.0
"""What a fetch is given beyond its own wait before it counts as lost, like the real link does."""


class Subscription:
    """A subject's messages on their way to one handler, one at a time."""

    def __init__(self, link: SimLink, subject: str, handler: Handler, limit: int) -> None:
        self.link = link
        self.subject = subject
        self.closed = False
        self._handler = handler
        self._limit = limit
        self._waiting: deque[BusMessage] = deque()
        self._woken = asyncio.Event()

    def offer(self, message: BusMessage) -> None:
        """Queues a message, or drops it where too many wait."""
        if not self.closed and len(self._waiting) < self._limit:
            self._waiting.append(message)
            self._woken.set()

    async def run(self, history: History) -> None:
        """Handles messages until cancelled or closed."""
        while not self.closed:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                message = self._waiting.popleft()
                try:
                    await self._handler(message)
                except Exception as error:
                    history.finding(f"the handler of {self.subject} raised {type(error).__name__}: {error}")

    def close(self) -> None:
        """Ends it."""
        self.closed = True
        self._woken.set()


class SimLink(Bus):
    """One process' connection. Call `run` for as long as it lives.

    ``latency_s`` bounds the time that a message takes one way.
    """

    def __init__(self, broker: Broker, name: str, *, random: Random, history: History, latency_s: float) -> None:
        self.name = name
        self.connection = 0
        """Counts connections; 0 before the first."""
        self._broker = broker
        self._random = random
        self._history = history
        self._latency_s = latency_s
        self._loop = asyncio.get_running_loop()
        self._group: asyncio.TaskGroup | None = None
        self._dead = False
        self._path = False
        """Whether messages get through."""
        self._cut_until = 0.0
        self._up = asyncio.Event()
        self._broken = asyncio.Event()
        self._reconcile_wanted = asyncio.Event()
        self._callbacks: list[ConnectedCallback] = []
        self._subscriptions: list[Subscription] = []
        self._calls: dict[int, asyncio.Future[object]] = {}
        self._numbers = itertools.count(1)
        self._up_free = 0.0
        self._down_free = 0.0
        broker.links.append(self)

    # The network.

    def alive(self, connection: int) -> bool:
        """Whether that connection is still the one, as far as the broker can know."""
        return connection == self.connection and not self._broken.is_set() and not self._dead

    def cut(self, *, for_s: float = 0.0, silent_s: float = 0.0) -> None:
        """Breaks the connection. No new one comes about for ``for_s``; nobody notices the break for ``silent_s``."""
        self._cut_until = max(self._cut_until, self._loop.time() + for_s)
        if not self._path:
            return
        self._path = False
        if silent_s:
            self._loop.call_later(silent_s, self._notice, self.connection)
        else:
            self._notice(self.connection)

    def die(self) -> None:
        """The process is gone: nothing leaves it any more, and the broker sees the connection close."""
        self._dead = True
        self._path = False
        for subscription in self._subscriptions:
            subscription.close()
            self._broker.detach(subscription)
        if self in self._broker.links:
            self._broker.links.remove(self)

    def _notice(self, connection: int) -> None:
        if connection == self.connection:
            self._broken.set()

    def _send(self, act: Callable[[], None]) -> None:
        """Does ``act`` at the broker when the message arrives there, unless the connection breaks before."""
        connection = self.connection
        self._up_free = max(self._up_free, self._loop.time() + self._random.random() * self._latency_s)
        self._loop.call_at(self._up_free, self._arrive, connection, act)

    def _bring(self, act: Callable[[], None]) -> None:
        """Does ``act`` here when the broker's message arrives."""
        connection = self.connection
        self._down_free = max(self._down_free, self._loop.time() + self._random.random() * self._latency_s)
        self._loop.call_at(self._down_free, self._arrive, connection, act)

    def _arrive(self, connection: int, act: Callable[[], None]) -> None:
        if self._path and connection == self.connection:
            act()

    def deliver(
        self, subscription: Subscription, subject: str, data: bytes, reply: str, headers: Mapping[str, str]
    ) -> None:
        """Brings what the broker has for a subscription."""
        if self._path:
            self._bring(lambda: subscription.offer(BusMessage(subject, data, reply, headers)))

    # Supervision.

    async def run(self) -> None:
        """Keeps the connection until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for subscription in self._subscriptions:
                    group.create_task(subscription.run(self._history), name=f"{self.name} {subscription.subject}")
                group.create_task(self._reconcile(), name=f"{self.name} reconcile")
                while True:
                    await asyncio.sleep(max(0.001, self._cut_until - self._loop.time()))
                    if self._loop.time() < self._cut_until:
                        continue
                    self._connect()
                    await self._broken.wait()
                    self._disconnected()
                    await asyncio.sleep(self._random.uniform(0.01, RECONNECT_S))
            finally:
                self._group = None

    def _connect(self) -> None:
        if self._dead:
            return
        self.connection += 1
        self._broken.clear()
        self._path = True
        for subscription in self._subscriptions:
            self._broker.attach(subscription)
        self._up.set()
        self._reconcile_wanted.set()

    def _disconnected(self) -> None:
        self._up.clear()
        self._path = False
        for subscription in self._subscriptions:
            self._broker.detach(subscription)
        for call in list(self._calls.values()):
            if not call.done():
                call.set_exception(BusUnavailableError("BUS_DISCONNECTED", "the connection broke before the answer."))

    async def _reconcile(self) -> None:
        while True:
            await self._reconcile_wanted.wait()
            self._reconcile_wanted.clear()
            for callback in list(self._callbacks):
                try:
                    await callback()
                except BusUnavailableError:
                    continue
                except Exception as error:
                    self._history.finding(f"{self.name}: on_connected raised {type(error).__name__}: {error}")

    # The port.

    @property
    def connected(self) -> bool:
        return self._up.is_set()

    async def wait_connected(self, deadline: Deadline) -> None:
        try:
            async with asyncio.timeout(deadline.remaining()):
                await self._up.wait()
        except TimeoutError:
            raise _unavailable() from None

    def on_connected(self, callback: ConnectedCallback) -> None:
        self._callbacks.append(callback)

    def subscribe(self, subject: str, handler: Handler, *, pending_limit: int = DEFAULT_PENDING_LIMIT) -> Unsubscribe:
        subscription = Subscription(self, subject, handler, pending_limit)
        self._subscriptions.append(subscription)
        if self._group is not None:
            self._group.create_task(subscription.run(self._history), name=f"{self.name} {subject}")
        if self.connected:
            self._send(lambda: self._broker.attach(subscription))

        async def unsubscribe() -> None:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
                subscription.close()
                self._broker.detach(subscription)

        return unsubscribe

    async def publish(self, subject: str, payload: bytes, *, reply: str = "") -> None:
        self._check()
        self._send(lambda: self._publish(subject, payload, reply))

    def _publish(self, subject: str, payload: bytes, reply: str) -> None:
        self._broker.publish(subject, payload, reply=reply)

    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> BusMessage:
        self._check()
        inbox = f"_SIM.{self.name}.{next(self._numbers)}"
        answered: asyncio.Future[BusMessage] = self._loop.create_future()

        async def take(message: BusMessage) -> None:
            if not answered.done():
                answered.set_result(message)

        def ask() -> None:
            if not self._broker.publish(subject, payload, reply=inbox) and not answered.done():
                self._bring(lambda: _refuse(answered, NoRespondersError("NO_RESPONDERS", f"nobody is on {subject}.")))

        end = self.subscribe(inbox, take)
        self._send(ask)
        try:
            return await self._answer(answered, subject, timeout_s)
        finally:
            await end()

    async def js_publish(
        self,
        subject: str,
        payload: bytes,
        *,
        stream: str,
        timeout_s: float,
        expected_last_subject_sequence: int | None = None,
    ) -> int:
        expected = expected_last_subject_sequence
        return await self._ask(subject, timeout_s, lambda: self._broker.store(stream, subject, payload, expected))

    async def get_last(self, stream: str, subject: str, *, timeout_s: float) -> StoredMessage | None:
        return await self._ask(subject, timeout_s, lambda: self._broker.last(stream, subject))

    async def check_broker(self, *, timeout_s: float) -> None:
        await self._ask("check", timeout_s, lambda: None)

    async def ensure_stream(self, spec: StreamSpec, *, timeout_s: float) -> None:
        await self._ask(spec.name, timeout_s, lambda: self._broker.ensure_stream(spec))

    async def ensure_consumer(self, spec: ConsumerSpec, *, timeout_s: float) -> None:
        await self._ask(spec.name, timeout_s, lambda: self._broker.ensure_consumer(spec))

    async def fetch(self, consumer: ConsumerSpec, *, batch: int, timeout_s: float) -> list[StoredMessage]:
        self._check()
        answered: asyncio.Future[list[StoredMessage]] = self._loop.create_future()

        def ask() -> None:
            try:
                self._broker.pull(
                    consumer,
                    self,
                    batch=batch,
                    wait_s=timeout_s,
                    answer=lambda found: self._bring(lambda: _settle(answered, found)),
                )
            except DroidfleetError as error:
                failure = error
                self._bring(lambda: _refuse(answered, failure))

        self._send(ask)
        return await self._answer(answered, consumer.name, timeout_s + CALL_MARGIN_S)

    async def ack(self, messages: Sequence[StoredMessage]) -> None:
        self._check()
        tokens = [message.ack_token for message in messages]
        self._send(lambda: self._broker.ack("EVENTS", tokens))

    async def _ask(self, subject: str, timeout_s: float, act: Callable[[], T]) -> T:
        """Does ``act`` at the broker and brings back what it gives or raises."""
        self._check()
        answered: asyncio.Future[T] = self._loop.create_future()

        def ask() -> None:
            try:
                given = act()
            except DroidfleetError as error:
                failure = error
                self._bring(lambda: _refuse(answered, failure))
            else:
                self._bring(lambda: _settle(answered, given))

        self._send(ask)
        return await self._answer(answered, subject, timeout_s)

    async def _answer(self, answered: asyncio.Future[T], subject: str, timeout_s: float) -> T:
        number = next(self._numbers)
        self._calls[number] = answered  # type: ignore[assignment]  # only ever given an exception
        try:
            async with asyncio.timeout(timeout_s):
                return await answered
        except TimeoutError:
            raise BusTimeoutError("BUS_TIMEOUT", f"no answer on {subject} within {timeout_s:g} s.") from None
        finally:
            del self._calls[number]

    def _check(self) -> None:
        if not self.connected or self._dead:
            raise _unavailable()


def _settle(answered: asyncio.Future[T], given: T) -> None:
    if not answered.done():
        answered.set_result(given)


def _refuse(answered: asyncio.Future[T], error: DroidfleetError) -> None:
    if not answered.done():
        answered.set_exception(error)


def _unavailable() -> BusUnavailableError:
    return BusUnavailableError("BUS_UNAVAILABLE", "not connected to the simulated broker.")
