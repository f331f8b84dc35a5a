"""Questions and orders about streams and consumers that only their owner, the controller, has. Over any `Bus`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.port import BrokerRefusedError, Bus
from droidfleet_shared.bus.streams import ConsumerSpec, StreamSpec

_NOT_FOUND = frozenset({10014, 10059})
"""JetStream's codes for a consumer and for a stream that does not exist."""


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """``waiting``: messages that were not handed out yet, or not acknowledged."""

    waiting: int


async def stream_exists(bus: Bus, spec: StreamSpec, *, timeout_s: float) -> bool:
    """Whether there is such a stream.

    Raises:
        BusUnavailableError
    """
    return await _ask(bus, subjects.stream_info(spec.name), timeout_s) is not None


async def consumer_state(bus: Bus, spec: ConsumerSpec, *, timeout_s: float) -> ConsumerState | None:
    """How far a durable consumer is; None: there is none.

    Raises:
        BusUnavailableError
    """
    answer = await _ask(bus, subjects.consumer_info(spec.stream, spec.name), timeout_s)
    if answer is None:
        return None
    counts = [answer.get(name) for name in ("num_pending", "num_ack_pending")]
    return ConsumerState(sum(count for count in counts if isinstance(count, int)))


async def drop_consumer(bus: Bus, spec: ConsumerSpec, *, timeout_s: float) -> None:
    """Removes a durable consumer, if it is there: one that is made anew begins at the beginning of its stream.

    Raises:
        BusUnavailableError
    """
    await _ask(bus, subjects.consumer_delete(spec.stream, spec.name), timeout_s)


async def _ask(bus: Bus, subject: str, timeout_s: float) -> dict[str, object] | None:
    """JetStream's answer; None: what the question is about does not exist."""
    answer = json.loads((await bus.request(subject, b"", timeout_s=timeout_s)).data)
    if not isinstance(answer, dict):
        raise BrokerRefusedError("BUS_REFUSED", f"the broker's answer on {subject} is none that can be read.")
    error = answer.get("error")
    if error is None:
        return answer
    if error.get("err_code") in _NOT_FOUND:
        return None
    raise BrokerRefusedError("BUS_REFUSED", f"the broker refused {subject}: {error.get('description')}.")
