"""The channel to the controller and how it is called: deadlines, pages, resumed streams, errors in our own words."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import grpc

from droidfleet_controller.cli.access import Access
from droidfleet_controller.cli.failures import from_rpc
from droidfleet_shared.net import parse_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

CALL_S = 10.0
"""Deadline of a call that reads or changes one thing."""

RUN_S = 60.0
"""Deadline of a run: one transaction for up to 10,000 devices."""

STREAM_S = 60.0
"""How long one stream stays open before it is opened anew, so that a dead peer is noticed; a watch has no end."""

RECONNECT_S = 30.0
"""How long a stream that worked once may be without its controller (a restart takes seconds)."""

RETRY_S = 0.5
"""Pause between two attempts to open a stream again."""

PAGE_SIZE = 1000
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""A full page of executions with their outputs; the default of 4 MiB is too small for it."""

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A proxy meant for web traffic would swallow calls to loopback and to machines beside us.
    ("grpc.enable_http_proxy", 0),
)

T = TypeVar("T")
Page: TypeAlias = "tuple[Iterable[T], str]"
"""Items of a list, and the token of the next page; empty at the end."""


class Channel:
    """A context manager around one channel to the controller at ``address`` (``host:port``).

    Raises `InvalidInputError` (``BAD_ADDRESS``) for another form. Every call made through it raises a `DroidfleetError`
    and nothing else: `UnavailableError` with code ``CONTROLLER_UNAVAILABLE`` when nobody answers, else what the
    controller said. ``metadata`` goes with every call.
    """

    def __init__(self, address: str, *, access: Access | None = None, reconnect_s: float = RECONNECT_S) -> None:
        self.address = str(parse_endpoint(address, setting="--api"))
        self._reconnect_s = reconnect_s
        access = access or Access.of_environment()
        self.metadata = access.metadata(self.address)
        self.channel = access.channel(self.address, options=_OPTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Failed calls inside it leave as domain errors."""
        try:
            yield
        except grpc.RpcError as error:
            raise from_rpc(error, address=self.address) from error

    def paged(self, fetch: Callable[[str, int], Page[T]], *, limit: int | None = None) -> Iterator[T]:
        """The items of a list, at most ``limit``. ``fetch`` gives a page by token and size."""
        token = ""
        left = limit
        while left is None or left > 0:
            with self.errors():
                items, token = fetch(token, PAGE_SIZE if left is None else min(left, PAGE_SIZE))
            for item in items:
                yield item
                left = None if left is None else left - 1
            if not token:
                return

    def resumed(self, opened: Callable[[], Iterator[T]], *, quiet: bool) -> Iterator[T]:
        """A stream that is opened again at its deadline, and for ``reconnect_s`` after its controller went away.

        ``quiet``: a whole period without an item is normal. Otherwise each opening must bring one.
        """
        worked = False
        lost_at: float | None = None
        while True:
            brought = False
            try:
                for item in opened():
                    worked = brought = True
                    lost_at = None
                    yield item
            except grpc.RpcError as error:
                status = error.code()
                if status is grpc.StatusCode.DEADLINE_EXCEEDED and (brought or quiet):
                    worked = True
                    continue
                now = time.monotonic()
                lost_at = now if lost_at is None else lost_at
                if status is not grpc.StatusCode.UNAVAILABLE or not worked or now - lost_at >= self._reconnect_s:
                    raise from_rpc(error, address=self.address) from error
                time.sleep(RETRY_S)
            else:
                return
