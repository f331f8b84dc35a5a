"""Pulling messages of one durable consumer, with one pull request under way at a time.

nats-py's own ``fetch(n)`` waits for the whole batch or the timeout once the consumer was idle, which would delay every
event by the timeout; this reader hands over what has come as soon as something has.
"""

from __future__ import annotations

import asyncio
import json

from nats.aio.client import Client
from nats.aio.msg import Msg

from droidfleet_shared.bus.port import NoRespondersError, StoredMessage
from droidfleet_shared.bus.streams import ConsumerSpec

_EXPIRY_SLACK_S = 1.0
"""How long after its expiry a pull request without a word from the server counts as lost."""

_QUEUE_FACTOR = 2
"""Messages of an expired pull may still arrive beside those of the next one."""

_MAX_PULL_BYTES = 16 * 1024 * 1024
"""Of one pull's messages together, since some hold artifacts: a batch of those would be a quarter of a gigabyte. Far
above the largest single message, which would never come otherwise."""

_NO_RESPONDERS = "503"
_CONSUMER_GONE = "409"


class PullReader:
    """Reads one consumer over one client; both end together."""

    def __init__(self, client: Client, consumer: ConsumerSpec, *, batch: int) -> None:
        self._client = client
        self._consumer = consumer
        self._batch = batch
        self._inbox = client.new_inbox()
        self._queue: asyncio.Queue[Msg] = asyncio.Queue(batch * _QUEUE_FACTOR)
        self._outstanding = 0
        self._outstanding_until = 0.0

    async def start(self) -> None:
        """Subscribes the inbox that messages come to."""
        # The server never sends more than was asked for, so a queue of this size does not fill up.
        await self._client.subscribe(self._inbox, cb=self._queue.put)

    async def fetch(self, timeout_s: float) -> list[StoredMessage]:
        """What is there, else what comes first within ``timeout_s`` seconds, else nothing.

        Raises:
            NoRespondersError: stream or consumer are gone.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        messages = self._drain()
        while not messages:
            remaining = until - loop.time()
            if remaining <= 0:
                break
            if self._outstanding <= 0 or loop.time() > self._outstanding_until:
                await self._pull(remaining)
            try:
                async with asyncio.timeout(remaining):
                    first = await self._queue.get()
            except TimeoutError:
                break
            messages = [*self._take(first), *self._drain()]
        return messages

    async def _pull(self, expires_s: float) -> None:
        self._outstanding = self._batch
        self._outstanding_until = asyncio.get_running_loop().time() + expires_s + _EXPIRY_SLACK_S
        await self._client.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._consumer.stream}.{self._consumer.name}",
            json.dumps(
                {
                    "batch": self._batch,
                    "expires": int(expires_s * 1e9),
                    "max_bytes": _MAX_PULL_BYTES,
                }
            ).encode(),
            reply=self._inbox,
        )

    def _drain(self) -> list[StoredMessage]:
        messages: list[StoredMessage] = []
        while not self._queue.empty() and len(messages) < self._batch:
            messages += self._take(self._queue.get_nowait())
        return messages

    def _take(self, message: Msg) -> list[StoredMessage]:
        status = (message.headers or {}).get("Status") if not message.data else None
        if status is None:
            self._outstanding -= 1
            sequence = message.metadata.sequence.stream
            return [StoredMessage(message.subject, message.data, sequence, ack_token=message.reply)]
        # Every status (408 expired, 409 leadership change or shutdown, ...) ends the pull request.
        self._outstanding = 0
        description = (message.headers or {}).get("Description", "")
        if status == _NO_RESPONDERS or (status == _CONSUMER_GONE and "Deleted" in description):
            raise NoRespondersError(
                "CONSUMER_MISSING",
                f"the consumer {self._consumer.name} of stream {self._consumer.stream} does not exist.",
                hint="Make it again with ensure_stream and ensure_consumer.",
            )
        return []
