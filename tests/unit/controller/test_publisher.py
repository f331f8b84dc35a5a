"""Documents on their way to the broker: newest only, in order, through conflicts, outages and a broker that forgot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random

from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.window import Body, Document, Listed
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import documents
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import DesiredState
from droidfleet_shared.bus.port import SequenceConflictError
from droidfleet_shared.clock import SystemClock
from support.controller import document
from support.memory_bus import MemoryBus
from support.waiting import until
from unit.controller.builders import execution


class StrictBus(MemoryBus):
    """Refuses a message whose predecessor is not the expected one; can hold messages back."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    async def js_publish(
        self,
        subject: str,
        payload: bytes,
        *,
        stream: str,
        timeout_s: float,
        expected_last_subject_sequence: int | None = None,
    ) -> int:
        await self.open.wait()
        last = next((message.sequence for message in reversed(self.stored) if message.subject == subject), 0)
        if expected_last_subject_sequence != last:
            raise SequenceConflictError("SEQUENCE_CONFLICT", f"the last is {last}.")
        return await super().js_publish(subject, payload, stream=stream, timeout_s=timeout_s)

    def generations(self, agent: str) -> list[int]:
        """What was stored for an agent, in order."""
        return [DesiredState.decode(data).generation for data in self.data(subjects.desired(agent))]


def made(agent: str, generation: int) -> Document:
    return Document(agent, generation, (Listed(execution(device=agent), Body.of(document())),), ())


@asynccontextmanager
async def publishing(folder: Path, bus: StrictBus) -> AsyncIterator[tuple[Publisher, Database]]:
    database = Database(sqlite_url(folder / "test.db"))
    try:
        migrate(database.engine)
        publisher = Publisher(bus=bus, database=database, clock=SystemClock(), random=Random(1), metrics=Metrics())
        await publisher.load()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(publisher.run())
            yield publisher, database
            task.cancel()
    finally:
        await database.close()


async def _bump(database: Database, *agents: str) -> None:
    await database.run(lambda connection: documents.bump(connection, agents))


async def test_of_documents_that_wait_only_the_newest_is_published(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, _):
        bus.open.clear()
        publisher.submit([made("a", 1)])
        await until(lambda: not publisher._newest)
        publisher.submit([made("a", 2), made("a", 3), made("a", 2)])
        bus.open.set()
        await until(lambda: bus.generations("a") == [1, 3])


def _stored(bus: StrictBus, generation: int) -> bool:
    return generation in bus.generations("a")


async def test_each_document_names_the_one_before_it(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, _):
        for generation in (1, 2, 3):
            publisher.submit([made("a", generation)])
            await until(partial(_stored, bus, generation))
        assert bus.generations("a") == [1, 2, 3]


async def test_what_was_confirmed_is_noted_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, database):
        await _bump(database, "a")
        publisher.submit([made("a", 1)])
        await until(lambda: bus.generations("a") == [1])
        await until(lambda: publisher._confirmed)
        await publisher.note()
    async with publishing(tmp_path, bus) as (publisher, database):
        assert await database.run(lambda connection: documents.unpublished(connection, after="", limit=9)) == []
        publisher.submit([made("a", 2)])
        await until(lambda: bus.generations("a") == [1, 2])


async def test_a_lost_confirmation_is_found_out_and_written_over(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, _):
        bus.lose_answers = 1
        publisher.submit([made("a", 1)])
        await until(lambda: bus.generations("a") == [1])
        publisher.submit([made("a", 2)])
        await until(lambda: 2 in bus.generations("a"))


async def test_a_newer_document_of_somebody_else_makes_ours_newer_still(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, database):
        await _stand(bus, made("a", 40).encode(SystemClock().now(), epoch=publisher.epoch))
        await _bump(database, "a")
        publisher.submit([made("a", 1)])
        await until(lambda: bus.generations("a")[-1] > 40)


async def test_a_document_of_another_database_is_written_over_whatever_its_generation(tmp_path: Path) -> None:
    bus = StrictBus()
    await _stand(bus, made("a", 40).encode(SystemClock().now(), epoch="db-other"))
    async with publishing(tmp_path, bus) as (publisher, _):
        publisher.submit([made("a", 1)])
        await until(lambda: bus.generations("a") == [40, 1])


async def _stand(bus: StrictBus, document: bytes) -> None:
    """Somebody else's document is on the broker."""
    subject = subjects.desired("a")
    await bus.js_publish(subject, document, stream="DESIRED", timeout_s=1, expected_last_subject_sequence=0)


async def test_what_could_not_go_out_goes_out_after_the_next_connect(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, database):
        await _bump(database, "a", "b")
        bus.disconnect()
        bus.open.clear()
        publisher.submit([made("a", 1), made("b", 1)])
        bus.open.set()
        await until(lambda: not publisher._busy)
        assert bus.stored == []
        await bus.reconnect()
        await publisher.reconcile()
        await until(lambda: bus.generations("a") == [1] and bus.generations("b") == [1])


async def test_a_broker_that_forgot_everything_gets_everything_again(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, database):
        await _bump(database, "a", "b")
        publisher.submit([made("a", 1), made("b", 1)])
        await until(lambda: len(bus.stored) == 2 and not publisher._busy)
        bus.stored.clear()
        await publisher.reconcile()
        await until(lambda: bus.generations("a") == [1] and bus.generations("b") == [1])


async def test_a_broker_that_forgot_nothing_gets_nothing_again(tmp_path: Path) -> None:
    bus = StrictBus()
    async with publishing(tmp_path, bus) as (publisher, database):
        await _bump(database, "a")
        publisher.submit([made("a", 1)])
        await until(lambda: bus.generations("a") == [1] and not publisher._busy)
        await publisher.reconcile()
        publisher.submit([made("a", 2)])
        await until(lambda: bus.generations("a") == [1, 2])
