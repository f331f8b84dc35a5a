"""The supervised connection to NATS: the one owner of a NATS client, for agents and controllers alike.

nats-py's own reconnecting is switched off: it can end up closed for good all the same (credential reload, oversized
message), buffers what it cannot send, loses waiting pulls, and waits without jitter. Here there is one way back:
whatever ends a client, a new one is built. Never decides what to send.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from random import Random

import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError as NatsNoRespondersError
from nats.js.errors import APIError

from droidfleet_shared.bus import provision, suitability
from droidfleet_shared.bus.credentials import BusCredentials, check_url
from droidfleet_shared.bus.delivery import Delivery
from droidfleet_shared.bus.port import (
    DEFAULT_PENDING_LIMIT,
    BrokerRefusedError,
    Bus,
    BusDeniedError,
    BusMessage,
    BusTimeoutError,
    BusUnavailableError,
    ConnectedCallback,
    Handler,
    NoRespondersError,
    PayloadTooLargeError,
    SequenceConflictError,
    StoredMessage,
    Unsubscribe,
)
from droidfleet_shared.bus.pull import PullReader
from droidfleet_shared.bus.reasons import why
from droidfleet_shared.bus.streams import ConsumerSpec, StreamSpec
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.errors import DroidfleetError, InvalidInputError

log = structlog.get_logger(__name__)

BACKOFF_BASE_S = 0.5
BACKOFF_CAP_S = 30.0
"""Full jitter between nothing and a bound that doubles from base to cap: a fleet does not come back all at once."""

STABLE_S = 10.0
"""A connection that lasted this long starts the back-off afresh; a shorter one goes on with it."""

PING_INTERVAL_S = 10
MAX_OUTSTANDING_PINGS = 2
"""A dead peer is noticed within 30 s (nats-py's own default is six minutes)."""

CONNECT_TIMEOUT_S = 5
CLOSE_TIMEOUT_S = 2.0
FLUSH_TIMEOUT_S = 5

_WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
_PERMISSION = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')


@dataclass(slots=True, eq=False)
class _Call:
    """A call that waits for its answer; ``failure`` is why it was ended early."""

    subject: str
    scope: asyncio.Timeout
    failure: DroidfleetError | None = None

    def end(self, failure: DroidfleetError) -> None:
        if self.failure is None:
            self.failure = failure
            self.scope.reschedule(asyncio.get_running_loop().time())


class _Client(Client):
    """A NATS client that is really gone when it closes.

    nats-py's own closing ends in the middle when what is still to be sent cannot be sent any more: the socket stays
    open and ``closed_cb`` is never called, so that nobody learns of the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        try:
            await super()._close(status, do_cbs)
        finally:
            if self._transport is not None:
                self._transport.close()  # type: ignore[no-untyped-call]  # nats-py leaves it without types
            self.ended.set()


@contextmanager
def _cancellation_kept() -> Iterator[None]:
    """Raises a cancellation that the block swallowed.

    nats-py catches some, and up to Python 3.11 `asyncio.wait_for`, on which it stands, loses one that comes together
    with its result (bpo-37658). The task would live for ever.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    try:
        yield
    finally:
        if task.cancelling() > before:
            raise asyncio.CancelledError


class BusLink(Bus):
    """`Bus` over NATS. Call `run` in a task that lives as long as the link is needed.

    ``url``: one or more ``nats://host:port``, separated by commas. ``name`` is shown in the broker's monitoring.
    ``inbox_prefix``: own prefix of reply subjects, so that nobody else may read them (`subjects.inbox_prefix`).
    ``credentials``: read anew for each attempt to connect, so that those that were changed are found.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        clock: Clock,
        random: Random,
        inbox_prefix: str | None = None,
        credentials: Callable[[], BusCredentials | None] = lambda: None,
    ) -> None:
        self._servers = check_url(url).split(",")
        self._name = name
        self._inbox_prefix = inbox_prefix or "_INBOX"
        self._credentials = credentials
        self._clock = clock
        self._random = random
        self._client: _Client | None = None
        self._up = asyncio.Event()
        self._reconcile_wanted = asyncio.Event()
        self._callbacks: list[ConnectedCallback] = []
        self._deliveries: list[Delivery] = []
        self._readers: dict[str, PullReader] = {}
        self._calls: set[_Call] = set()
        self._group: asyncio.TaskGroup | None = None
        self._first_error = ""
        """Of the current client: later ones (a reset while closing) only hide what it was about."""
        self._reason = ""
        """Why the last client ended."""

    # Supervision.

    async def run(self) -> None:
        """Keeps the connection until cancelled. A broker that is down, also at the start, is waited for."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for delivery in self._deliveries:
                    group.create_task(delivery.run(), name=f"bus {delivery.subject}")
                group.create_task(self._reconcile(), name="bus reconcile")
                await self._supervise()
            finally:
                self._group = None

    async def _supervise(self) -> None:
        attempt = 0
        while True:
            started = self._clock.monotonic()
            with _cancellation_kept():
                await self._connection()
            if self._clock.monotonic() - started > STABLE_S:
                attempt = 0
            delay = self._random.uniform(0, min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2**attempt))
            attempt = min(attempt + 1, 10)
            log.warning(
                "bus_disconnected",
                servers=self._servers,
                reason=self._reason,
                attempt=attempt,
                retry_in_s=round(delay, 1),
            )
            await self._clock.sleep(delay)

    async def _connection(self) -> None:
        """One client from its start to its end; returns when it is gone."""
        try:
            credentials = self._credentials() or BusCredentials()
        except InvalidInputError as error:
            self._reason = error.message
            return
        client = _Client()
        self._first_error = ""
        try:
            with _cancellation_kept():
                # Two quick attempts for each server, 5 s each at most; nats-py's own way back stays unused.
                async with asyncio.timeout(CONNECT_TIMEOUT_S * (2 * len(self._servers) + 1)):
                    await client.connect(
                        servers=list(self._servers),
                        name=self._name,
                        error_cb=self._on_error,
                        allow_reconnect=False,
                        max_reconnect_attempts=1,
                        reconnect_time_wait=0,
                        connect_timeout=CONNECT_TIMEOUT_S,
                        ping_interval=PING_INTERVAL_S,
                        max_outstanding_pings=MAX_OUTSTANDING_PINGS,
                        flush_timeout=FLUSH_TIMEOUT_S,
                        inbox_prefix=self._inbox_prefix,
                        user_credentials=credentials.creds_file,
                        user=credentials.user or None,
                        password=credentials.password or None,
                        token=credentials.token or None,
                    )
                for delivery in list(self._deliveries):
                    await delivery.attach(client)
                # The answer to the flush shows that the server has the subscriptions.
                await client.flush(timeout=FLUSH_TIMEOUT_S)
            self._client = client
            self._reason = ""
            self._up.set()
            self._reconcile_wanted.set()
            log.info("bus_connected", server=client.connected_url.netloc if client.connected_url else "")
            await client.ended.wait()
        except (NatsError, OSError, TimeoutError) as error:
            self._first_error = self._first_error or why(error)
        except Exception as error:
            # Whatever a stranger on that port says: nats-py's reading of it must not end what needs the link.
            log.exception("bus_client_broke")
            self._first_error = self._first_error or why(error)
        finally:
            self._reason = self._first_error
            self._disconnected()
            with suppress(NatsError, OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await client.close()

    def _disconnected(self) -> None:
        self._client = None
        self._up.clear()
        self._readers.clear()
        for call in list(self._calls):
            call.end(
                BusUnavailableError("BUS_DISCONNECTED", "the connection to the broker broke before the answer came.")
            )

    async def _on_error(self, error: Exception) -> None:
        text = str(error)
        denied = _PERMISSION.search(text)
        if denied is None:
            self._first_error = self._first_error or why(error)
            log.debug("bus_error", error=text or type(error).__name__)
            return
        # nats-py hands errors over in lower case.
        verb, subject = denied.groups()
        log.error("bus_denied", verb=verb, subject=subject)
        # A refused publish is never answered: its caller learns it now instead of at its timeout.
        for call in list(self._calls):
            if call.subject.lower() == subject:
                call.end(
                    BusDeniedError(
                        "BUS_DENIED",
                        f"the broker does not let this user publish on {call.subject}.",
                        hint="Give the user the subjects that docs/agent.md lists.",
                    )
                )

    async def _reconcile(self) -> None:
        while True:
            await self._reconcile_wanted.wait()
            self._reconcile_wanted.clear()
            for callback in list(self._callbacks):
                try:
                    await callback()
                except BusUnavailableError as error:
                    log.info("bus_reconcile_interrupted", code=error.code)
                except Exception:
                    # A defect in one callback must not stop the link, on which everything else depends.
                    log.exception("bus_reconcile_failed")

    # The port.

    @property
    def connected(self) -> bool:
        return self._up.is_set()

    @property
    def reason(self) -> str:
        """Why the last connection ended, or none came about; empty while all is well, and before the first attempt."""
        return self._reason

    async def wait_connected(self, deadline: Deadline) -> None:
        try:
            async with asyncio.timeout(deadline.remaining()):
                await self._up.wait()
        except TimeoutError:
            raise self._not_connected() from None

    def on_connected(self, callback: ConnectedCallback) -> None:
        self._callbacks.append(callback)

    def subscribe(self, subject: str, handler: Handler, *, pending_limit: int = DEFAULT_PENDING_LIMIT) -> Unsubscribe:
        delivery = Delivery(subject, handler, pending_limit)
        self._deliveries.append(delivery)
        if self._group is not None:
            self._group.create_task(delivery.run(), name=f"bus {subject}")
            if self._client is not None:
                self._group.create_task(self._attach(delivery, self._client), name=f"bus attach {subject}")

        async def unsubscribe() -> None:
            if delivery in self._deliveries:
                self._deliveries.remove(delivery)
                with suppress(NatsError):
                    await delivery.close()

        return unsubscribe

    @staticmethod
    async def _attach(delivery: Delivery, client: Client) -> None:
        # A client that closed meanwhile: the next one subscribes everything.
        with suppress(NatsError):
            await delivery.attach(client)

    async def publish(self, subject: str, payload: bytes, *, reply: str = "") -> None:
        client = self._checked_client(payload, {})
        async with self._call(subject, FLUSH_TIMEOUT_S):
            await client.publish(subject, payload, reply=reply)

    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> BusMessage:
        return await self._request(subject, payload, {}, timeout_s)

    async def _request(self, subject: str, payload: bytes, headers: Mapping[str, str], timeout_s: float) -> BusMessage:
        client = self._checked_client(payload, headers)
        async with self._call(subject, timeout_s):
            # A copy: nats-py may add to the headers it is given.
            answer = await client.request(subject, payload, timeout=timeout_s + 1.0, headers=dict(headers) or None)
        return BusMessage(answer.subject, answer.data, answer.reply or "", dict(answer.headers or {}))

    async def js_publish(
        self,
        subject: str,
        payload: bytes,
        *,
        stream: str,
        timeout_s: float,
        expected_last_subject_sequence: int | None = None,
    ) -> int:
        headers = {"Nats-Expected-Stream": stream}
        if expected_last_subject_sequence is not None:
            headers["Nats-Expected-Last-Subject-Sequence"] = str(expected_last_subject_sequence)
        answer = json.loads((await self._request(subject, payload, headers, timeout_s)).data)
        error = answer.get("error")
        if error is None:
            return int(answer["seq"])
        if error.get("err_code") in _WRONG_LAST_SEQUENCE:
            raise SequenceConflictError("SEQUENCE_CONFLICT", f"somebody else wrote {subject} meanwhile.")
        raise BrokerRefusedError("BUS_REFUSED", f"the broker refused {subject}: {error.get('description')}.")

    async def get_last(self, stream: str, subject: str, *, timeout_s: float) -> StoredMessage | None:
        answer = await self.request(f"$JS.API.DIRECT.GET.{stream}.{subject}", b"", timeout_s=timeout_s)
        status = answer.headers.get("Status") if not answer.data else None
        if status == "404":
            return None
        if status is not None:
            raise BrokerRefusedError("BUS_REFUSED", f"the broker refused the direct get of {subject}: {status}.")
        return StoredMessage(answer.headers["Nats-Subject"], answer.data, int(answer.headers["Nats-Sequence"]))

    async def check_broker(self, *, timeout_s: float) -> None:
        client = self._checked_client(b"", {})
        async with self._call("check", timeout_s):
            await suitability.check_broker(client, timeout_s=timeout_s)

    async def ensure_stream(self, spec: StreamSpec, *, timeout_s: float) -> None:
        client = self._checked_client(b"", {})
        async with self._call(spec.name, timeout_s):
            await provision.ensure_stream(client, spec, timeout_s=timeout_s)

    async def ensure_consumer(self, spec: ConsumerSpec, *, timeout_s: float) -> None:
        client = self._checked_client(b"", {})
        async with self._call(spec.name, timeout_s):
            await provision.ensure_consumer(client, spec, timeout_s=timeout_s)

    async def fetch(self, consumer: ConsumerSpec, *, batch: int, timeout_s: float) -> list[StoredMessage]:
        client = self._checked_client(b"", {})
        # The reader ends its wait itself; the margin is for the server that does not even take the pull.
        async with self._call(consumer.name, timeout_s + FLUSH_TIMEOUT_S):
            reader = self._readers.get(consumer.name)
            if reader is None:
                reader = PullReader(client, consumer, batch=batch)
                await reader.start()
                self._readers[consumer.name] = reader
            return await reader.fetch(timeout_s)

    async def ack(self, messages: Sequence[StoredMessage]) -> None:
        client = self._checked_client(b"", {})
        async with self._call("ack", FLUSH_TIMEOUT_S):
            for message in messages:
                await client.publish(message.ack_token)

    @asynccontextmanager
    async def _call(self, subject: str, timeout_s: float) -> AsyncIterator[None]:
        """Ends the block at its timeout or with the connection, and turns every failure into one of the port's."""
        call: _Call | None = None
        try:
            async with asyncio.timeout(timeout_s) as scope:
                call = _Call(subject, scope)
                self._calls.add(call)
                with _cancellation_kept():
                    yield
        except TimeoutError as error:
            if call is not None and call.failure is not None:
                raise call.failure from error
            raise BusTimeoutError("BUS_TIMEOUT", f"no answer on {subject} within {timeout_s:g} s.") from error
        except NatsNoRespondersError as error:
            raise NoRespondersError(
                "NO_RESPONDERS",
                f"nobody listens on {subject}.",
                hint="Is the other side running, and does its stream exist?",
            ) from error
        except APIError as error:
            said = error.description or type(error).__name__
            raise BrokerRefusedError("BUS_REFUSED", f"the broker refused {subject}: {said}.") from error
        except NatsError as error:
            raise BusUnavailableError("BUS_DISCONNECTED", f"{subject} failed: {error}.") from error
        finally:
            if call is not None:
                self._calls.discard(call)

    def _checked_client(self, payload: bytes, headers: Mapping[str, str]) -> Client:
        client = self._client
        if client is None or client.is_closed:
            raise self._not_connected()
        # The server counts the headers too, and closes a connection that sends more than it takes.
        size = len(payload) + (12 + sum(len(key) + len(value) + 4 for key, value in headers.items()) if headers else 0)
        if size > client.max_payload:
            raise PayloadTooLargeError(
                "MESSAGE_TOO_LARGE", f"the message has {size} bytes; the broker takes {client.max_payload}."
            )
        return client

    def _not_connected(self) -> BusUnavailableError:
        reason = f" ({self._reason})" if self._reason else ""
        return BusUnavailableError(
            "BUS_UNAVAILABLE",
            f"not connected to the broker at {', '.join(self._servers)}{reason}.",
            hint="Is nats-server running there? The connection is retried all the time.",
        )
