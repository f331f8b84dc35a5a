"""A bus in memory: streams that keep the last message of a subject, subscriptions, and failures on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from droidfleet_shared.bus.port import (
    DEFAULT_PENDING_LIMIT,
    Bus,
    BusMessage,
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


class MemoryBus(Bus):
    """One connection that tests break and mend. Handlers are called at once, in the sender's own turn.

    ``lose_answers``: the next stored messages are kept and their senders told that the connection broke.
    ``refuse_storing``: nothing is stored, and its senders are told this. ``before_get_answer``: done once, between the
    reading of a message and its answer.
    """

    def __init__(self) -> None:
        self.stored: list[StoredMessage] = []
        self.published: list[BusMessage] = []
        self.gets: list[str] = []
        self.lose_answers = 0
        self.refuse_storing: DroidfleetError | None = None
        self.before_get_answer: Callable[[], Awaitable[None]] | None = None
        self._up = asyncio.Event()
        self._up.set()
        self._handlers: list[tuple[str, Handler]] = []
        self._callbacks: list[ConnectedCallback] = []

    @property
    def connected(self) -> bool:
        return self._up.is_set()

    def disconnect(self) -> None:
        """Breaks the connection."""
        self._up.clear()

    async def reconnect(self) -> None:
        """Mends it, and calls back."""
        self._up.set()
        for callback in list(self._callbacks):
            await callback()

    def data(self, subject: str) -> list[bytes]:
        """What was stored on a subject, in order."""
        return [message.data for message in self.stored if message.subject == subject]

    async def push(self, subject: str, data: bytes, *, sequence: int, before: int) -> None:
        """What the broker republishes of a stored message."""
        headers = {"Nats-Sequence": str(sequence), "Nats-Last-Sequence": str(before)}
        await self._deliver(BusMessage(subject, data, headers=headers))

    async def wait_connected(self, deadline: Deadline) -> None:
        await self._up.wait()

    def on_connected(self, callback: ConnectedCallback) -> None:
        self._callbacks.append(callback)

    def subscribe(self, subject: str, handler: Handler, *, pending_limit: int = DEFAULT_PENDING_LIMIT) -> Unsubscribe:
        entry = (subject, handler)
        self._handlers.append(entry)

        async def unsubscribe() -> None:
            self._handlers.remove(entry)

        return unsubscribe

    async def publish(self, subject: str, payload: bytes, *, reply: str = "") -> None:
        self._check()
        message = BusMessage(subject, payload, reply)
        self.published.append(message)
        await self._deliver(message)

    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> BusMessage:
        self._check()
        answers: list[BusMessage] = []

        async def take(message: BusMessage) -> None:
            answers.append(message)

        inbox = f"_MEMORY.{len(self.published)}"
        unsubscribe = self.subscribe(inbox, take)
        message = BusMessage(subject, payload, inbox)
        self.published.append(message)
        heard = await self._deliver(message)
        await unsubscribe()
        if not answers:
            raise NoRespondersError("NO_RESPONDERS", f"nobody answers on {subject} ({heard} heard it).")
        return answers[0]

    async def js_publish(
        self,
        subject: str,
        payload: bytes,
        *,
        stream: str,
        timeout_s: float,
        expected_last_subject_sequence: int | None = None,
    ) -> int:
        self._check()
        if self.refuse_storing is not None:
            raise self.refuse_storing
        sequence = len(self.stored) + 1
        self.stored.append(StoredMessage(subject, payload, sequence))
        if self.lose_answers:
            self.lose_answers -= 1
            raise BusUnavailableError("BUS_DISCONNECTED", "the answer was lost.")
        return sequence

    async def get_last(self, stream: str, subject: str, *, timeout_s: float) -> StoredMessage | None:
        self._check()
        self.gets.append(subject)
        found = next((message for message in reversed(self.stored) if message.subject == subject), None)
        if self.before_get_answer is not None:
            meanwhile, self.before_get_answer = self.before_get_answer, None
            await meanwhile()
        return found

    async def check_broker(self, *, timeout_s: float) -> None:
        self._check()

    async def ensure_stream(self, spec: StreamSpec, *, timeout_s: float) -> None:
        self._check()

    async def ensure_consumer(self, spec: ConsumerSpec, *, timeout_s: float) -> None:
        self._check()

    async def fetch(self, consumer: ConsumerSpec, *, batch: int, timeout_s: float) -> list[StoredMessage]:
        raise NotImplementedError

    async def ack(self, messages: Sequence[StoredMessage]) -> None:
        raise NotImplementedError

    def _check(self) -> None:
        if not self.connected:
            raise BusUnavailableError("BUS_UNAVAILABLE", "not connected.")

    async def _deliver(self, message: BusMessage) -> int:
        heard = [handler for subject, handler in self._handlers if _fits(subject, message.subject)]
        for handler in heard:
            await handler(message)
        return len(heard)


def _fits(wanted: str, subject: str) -> bool:
    """Whether a subscription covers a subject; ``*`` stands for one token."""
    tokens = subject.split(".")
    pairs = zip(wanted.split("."), tokens, strict=False)
    return len(wanted.split(".")) == len(tokens) and all(one in ("*", other) for one, other in pairs)
