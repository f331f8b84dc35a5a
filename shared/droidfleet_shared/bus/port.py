"""The port `Bus`: what both sides may ask of the broker, and the only ways it can fail.

Implemented by `droidfleet_shared.bus.link.BusLink` (NATS) and by the memory bus of the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from droidfleet_shared.bus.streams import ConsumerSpec, StreamSpec
from droidfleet_shared.clock import Deadline
from droidfleet_shared.errors import ConflictError, DeniedError, ExhaustedError, PreconditionError, UnavailableError

DEFAULT_PENDING_LIMIT = 1_024
"""Messages that wait for one subscription's handler; more are dropped, counted and logged."""


class BusUnavailableError(UnavailableError):
    """The broker is not connected, or nobody answers. Whether a message that was under way arrived is unknown."""


class BusTimeoutError(BusUnavailableError):
    """No answer in time. The message may have arrived all the same."""


class NoRespondersError(BusUnavailableError):
    """Nobody listens on the subject: the message certainly had no effect."""


class BusDeniedError(DeniedError):
    """The broker refuses the subject to this user."""


class SequenceConflictError(ConflictError):
    """The last message on the subject is not the one that the writer expected: somebody else wrote."""


class BrokerUnsuitableError(PreconditionError):
    """The broker's configuration does not allow what a fleet needs; the hint says what to change there."""


class BrokerRefusedError(BusUnavailableError):
    """The broker answered that it does not do this now; its reason is in the message."""


class PayloadTooLargeError(ExhaustedError):
    """The message is larger than the broker takes. Sending it would close the connection for good."""


@dataclass(frozen=True, slots=True)
class BusMessage:
    """A message as it came. ``reply`` is empty when no answer is expected."""

    subject: str
    data: bytes
    reply: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a stream. ``sequence`` is the stream's; ``ack_token`` is empty when it needs no acknowledgement."""

    subject: str
    data: bytes
    sequence: int
    ack_token: str = ""


Handler = Callable[[BusMessage], Awaitable[None]]
ConnectedCallback = Callable[[], Awaitable[None]]
Unsubscribe = Callable[[], Awaitable[None]]


class Bus(ABC):
    """One connection to the broker. The contract:

    - Every call ends: at once when the broker is not connected (`BusUnavailableError`), else by its ``timeout_s``
      (real seconds), or as soon as the connection breaks. Nothing is buffered while disconnected.
    - A call that fails after its message was sent leaves open whether the message arrived; the caller must be
      idempotent. `NoRespondersError`, `BusDeniedError`, `PayloadTooLargeError` and `SequenceConflictError` are certain.
    - Subscriptions and connected-callbacks outlive the connection. The handler of one subscription is called for one
      message at a time, in the order of arrival, and is not cancelled when the connection breaks; an error it raises is
      logged. Messages past ``pending_limit`` are dropped and logged.
    - Connected-callbacks run after every (re)connect, one after the other, with the subscriptions in place; one that
      fails is logged, and called again after the next connect.
    """

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether calls have a chance right now."""

    @abstractmethod
    async def wait_connected(self, deadline: Deadline) -> None:
        """Waits until connected.

        Raises:
            BusUnavailableError: not by the deadline.
        """

    @abstractmethod
    def on_connected(self, callback: ConnectedCallback) -> None:
        """Calls ``callback`` after every (re)connect: the place to reconcile."""

    @abstractmethod
    def subscribe(self, subject: str, handler: Handler, *, pending_limit: int = DEFAULT_PENDING_LIMIT) -> Unsubscribe:
        """Hands every message on ``subject`` (wildcards allowed) to ``handler`` from the next connect on, or from
        about now when connected. The result ends the subscription."""

    @abstractmethod
    async def publish(self, subject: str, payload: bytes, *, reply: str = "") -> None:
        """Sends without an acknowledgement (core NATS, at most once)."""

    @abstractmethod
    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> BusMessage:
        """Sends and waits for one answer."""

    @abstractmethod
    async def js_publish(
        self,
        subject: str,
        payload: bytes,
        *,
        stream: str,
        timeout_s: float,
        expected_last_subject_sequence: int | None = None,
    ) -> int:
        """Stores a message in ``stream`` and returns its sequence there.

        ``expected_last_subject_sequence``: the sequence of the last message on this subject, 0 for none.
        """

    @abstractmethod
    async def get_last(self, stream: str, subject: str, *, timeout_s: float) -> StoredMessage | None:
        """The last message on exactly ``subject``, by the subject form of the direct get; None when there is none."""

    @abstractmethod
    async def check_broker(self, *, timeout_s: float) -> None:
        """Refuses a broker that would fail later, in the middle of the work. For a user that may do everything.

        Raises:
            BrokerUnsuitableError
        """

    @abstractmethod
    async def ensure_stream(self, spec: StreamSpec, *, timeout_s: float) -> None:
        """Makes the stream be as ``spec`` says."""

    @abstractmethod
    async def ensure_consumer(self, spec: ConsumerSpec, *, timeout_s: float) -> None:
        """Makes the durable pull consumer be as ``spec`` says."""

    @abstractmethod
    async def fetch(self, consumer: ConsumerSpec, *, batch: int, timeout_s: float) -> list[StoredMessage]:
        """The next messages of a durable consumer: at once what is there (up to ``batch``), else the first ones that
        come within ``timeout_s``, else none. One fetch at a time for one consumer.

        Raises:
            NoRespondersError: stream or consumer are gone; make them again.
        """

    @abstractmethod
    async def ack(self, messages: Sequence[StoredMessage]) -> None:
        """Acknowledges fetched messages. It may get lost: the same message can come again."""
