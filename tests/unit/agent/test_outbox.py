"""The outbox: several events under way at a time, in their order, each until the broker has it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.link.outbox import BATCH, BATCH_BYTES, Outbox
from droidfleet_agent.reporting import Reporter
from droidfleet_shared.artifacts import MAX_ARTIFACT_BYTES
from droidfleet_shared.bus.messages import Event, decode_event
from droidfleet_shared.bus.port import BusUnavailableError
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.result import ArtifactModel
from support.assignments import AGENT, ref
from support.memory_bus import MemoryBus

CLOCK = VirtualClock()
REPORTER = Reporter(AGENT, CLOCK)


class SlowBus(MemoryBus):
    """Stores what it is given when it is let go; ``refuses``: sequences that it does not take, once each."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way: list[bytes] = []
        self.most: list[int] = []
        self.refuses: set[int] = set()

    async def js_publish(
        self,
        subject: str,
        payload: bytes,
        *,
        stream: str,
        timeout_s: float,
        expected_last_subject_sequence: int | None = None,
    ) -> int:
        self.under_way.append(payload)
        for _ in range(2 * BATCH):  # others come meanwhile
            await asyncio.sleep(0)
        self.most.append(len(self.under_way))
        self.under_way.remove(payload)
        sequence = decode_event(payload).sequence
        if sequence in self.refuses:
            self.refuses.remove(sequence)
            raise BusUnavailableError("BUS_REFUSED", "not now.")
        return await super().js_publish(subject, payload, stream=stream, timeout_s=timeout_s)

    def sequences(self) -> list[int]:
        return [decode_event(message.data).sequence for message in self.stored]


class CountingJournal(MemoryJournal):
    """Counts the writes by which events are taken out."""

    def __init__(self) -> None:
        super().__init__()
        self.takings: list[int] = []

    async def sent(self, events: Sequence[Event]) -> None:
        self.takings.append(len(events))
        await super().sent(events)


class Bench:
    """An outbox with its journal and its bus."""

    def __init__(self) -> None:
        self.bus = SlowBus()
        self.journal = CountingJournal()
        self.told: list[int] = []
        self.outbox = Outbox(
            AGENT,
            bus=self.bus,
            journal=self.journal,
            again=tuple,
            sent=lambda event: self.told.append(event.sequence),
            clock=CLOCK,
            random=Random(1),
        )

    async def steps(self, count: int) -> None:
        """An attempt that began, with this many events in all."""
        await self.journal.take_on(Attempt(ref("a"), "{}", None), REPORTER.accepted(ref("a")))
        await self.journal.append(ref("a"), REPORTER.started(ref("a"), random_seed=1))
        for _ in range(count - 2):
            await self.journal.append(ref("a"), REPORTER.step_started(ref("a"), "s", "/steps/0"))

    async def left(self) -> list[int]:
        return [event.sequence for event in await self.journal.outbox(1_000)]


async def test_a_batch_is_under_way_together_and_arrives_in_order() -> None:
    bench = Bench()
    await bench.steps(2 * BATCH)
    await bench.outbox.flush()
    assert bench.bus.sequences() == bench.told == list(range(1, 2 * BATCH + 1))
    assert max(bench.bus.most) == BATCH
    assert await bench.left() == []


async def test_a_batch_is_taken_out_by_one_write() -> None:
    bench = Bench()
    await bench.steps(BATCH + 10)
    await bench.outbox.flush()
    assert bench.journal.takings == [BATCH, 10]


async def test_what_the_broker_does_not_take_stays_alone() -> None:
    bench = Bench()
    await bench.steps(10)
    bench.bus.refuses = {3, 7}
    with pytest.raises(BusUnavailableError):
        await bench.outbox.flush()
    assert (await bench.left(), bench.told) == ([3, 7], [1, 2, 4, 5, 6, 8, 9, 10])
    await bench.outbox.flush()
    assert sorted(bench.bus.sequences()) == list(range(1, 11))
    assert await bench.left() == []


async def test_large_events_are_not_under_way_together() -> None:
    bench = Bench()
    await bench.steps(3)
    data = bytes(MAX_ARTIFACT_BYTES)
    artifact = ArtifactModel(name="page", media_type="image/png", sha256="0" * 64, size_bytes=len(data))
    for _ in range(4):
        await bench.journal.append(ref("a"), REPORTER.artifact(ref("a"), "s", "/steps/0", artifact, data))
    await bench.outbox.flush()
    assert bench.bus.sequences() == list(range(1, 8))
    assert sum(len(message.data) for message in bench.bus.stored[:4]) <= BATCH_BYTES
    assert bench.journal.takings == [4, 1, 1, 1]
