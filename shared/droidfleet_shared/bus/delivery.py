"""One subscription that outlives connections: a bounded queue and the one loop that empties it into the handler."""

from __future__ import annotations

import asyncio

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from droidfleet_shared.bus.port import BusMessage, Handler

log = structlog.get_logger(__name__)

_LOG_EVERY = 1_000
"""Dropped messages between two log lines, after the first."""


class Delivery:
    """Messages of one subject on their way to one handler.

    nats-py would call the handler itself, but cancels it when the connection closes, in the middle of what it does.
    """

    def __init__(self, subject: str, handler: Handler, pending_limit: int) -> None:
        self.subject = subject
        self._handler = handler
        self._queue: asyncio.Queue[BusMessage | None] = asyncio.Queue(pending_limit)
        self._subscription: Subscription | None = None
        self._dropped = 0
        self._closed = False

    async def attach(self, client: Client) -> None:
        """Subscribes on a new client."""
        if not self._closed:
            self._subscription = await client.subscribe(self.subject, cb=self._receive)

    async def close(self) -> None:
        """Ends the subscription. What is queued already is still handled."""
        self._closed = True
        while self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(None)
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await subscription.unsubscribe()

    async def run(self) -> None:
        """Calls the handler for one message after the other, until closed or cancelled."""
        while (message := await self._queue.get()) is not None:
            try:
                await self._handler(message)
            except Exception:
                # A defect in one handler must not stop the link, on which everything else depends.
                log.exception("bus_handler_failed", subject=message.subject)

    async def _receive(self, message: Msg) -> None:
        try:
            self._queue.put_nowait(
                BusMessage(message.subject, message.data, message.reply or "", dict(message.headers or {}))
            )
        except asyncio.QueueFull:
            if self._dropped % _LOG_EVERY == 0:
                log.warning("bus_messages_dropped", subject=self.subject, dropped=self._dropped + 1)
            self._dropped += 1
