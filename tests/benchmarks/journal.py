"""What the journal costs: a 20-step task with it on disk and in memory, and a backlog that is emptied while one runs.

Both journals take the same calls of the same task on the same phone, in turns. The backlog is what an agent without its
broker keeps of an hour at most (`Limits.progress`), sent to a real broker that syncs each message to its disk.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from benchmarks.figures import Figure, median_ms
from benchmarks.one_phone import READY_S, connected_phone
from benchmarks.task_run import STEPS
from droidfleet_agent.driver.phone import AdbPhone, open_phone
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.engine.trail import Began, Trail
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.journal.port import Journal, Limits
from droidfleet_agent.journal.sqlite import SqliteJournal
from droidfleet_agent.link.outbox import Outbox
from droidfleet_agent.reporting import JournalObserver, Reporter
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import ExecutionRef
from droidfleet_shared.bus.streams import EVENTS
from droidfleet_shared.clock import SystemClock
from support.bus import running_link
from support.nats import NatsServer
from support.runs import AGENT, task_of

ROUNDS = 9
WARMUP = 1
MOST_OF_MEMORY = 1.15
LEAST_PER_S = 500.0
TIMEOUT_S = 10.0

CLOCK = SystemClock()
REPORTER = Reporter(AGENT, CLOCK)
TASK = task_of(*(step for step, _ in STEPS))


async def figures() -> list[Figure]:
    """Milliseconds of the task with each journal, their ratio, and events in a second."""
    with connected_phone(latency="realistic") as where, tempfile.TemporaryDirectory() as folder:
        phone = await open_phone(where.serial, adb_port=where.adb_port, clock=CLOCK, deadline=CLOCK.deadline(READY_S))
        try:
            disk, memory = SqliteJournal(Path(folder) / "journal"), MemoryJournal()
            times: dict[Journal, list[float]] = {disk: [], memory: []}
            for turn in range(WARMUP + ROUNDS):
                for journal, taken in times.items():
                    start = time.perf_counter()
                    await _run(journal, phone, f"x-{turn}")
                    await journal.sent(await journal.outbox(1_000))
                    if turn >= WARMUP:
                        taken.append(time.perf_counter() - start)
            await disk.close()
            backlogs = [Path(folder) / "alone", Path(folder) / "executing"]
            for each in backlogs:
                each.mkdir()  # nothing else is measured now
            alone, executing = await _backlog_s(backlogs[0], None), await _backlog_s(backlogs[1], phone)
        finally:
            await phone.close()
    events = Limits().progress
    ratio = statistics.median(times[disk]) / statistics.median(times[memory])
    note = f"median of {ROUNDS} runs, in turns"
    return [
        Figure("20-step task, realistic latency, journal in memory", median_ms(times[memory]), "ms", note=note),
        Figure("20-step task, realistic latency, journal on disk", median_ms(times[disk]), "ms", note=note),
        Figure("journal on disk / in memory", ratio, "x", MOST_OF_MEMORY),
        Figure("backlog emptied, nothing else to do", events / alone, "events/s", note=f"{events} events"),
        Figure("backlog emptied while executing", events / executing, "events/s", LEAST_PER_S, "higher"),
    ]


async def _run(journal: Journal, phone: AdbPhone, execution_id: str) -> None:
    """One execution, written as the worker writes it."""
    ref = ExecutionRef(execution_id=execution_id, attempt=1)
    began = Began(seed=1, at=CLOCK.now())
    await journal.take_on(Attempt(ref, TASK.model_dump_json(by_alias=True), None), REPORTER.accepted(ref))
    await journal.append(ref, REPORTER.started(ref, random_seed=1), trail=began)
    result = await Engine(phone, clock=CLOCK).run(
        TASK,
        execution_id=execution_id,
        agent_name=AGENT,
        observer=JournalObserver(journal, ref, REPORTER, lambda: None),
        control=RunControl(),
        trail=Trail([began]),
    )
    assert result.successful, result.message
    await journal.append(ref, REPORTER.finished(ref, result))
    await journal.forget([ref])


async def _backlog_s(folder: Path, phone: AdbPhone | None) -> float:
    """Seconds until a full outbox is empty; with a phone a task runs on it meanwhile, again and again."""
    journal = SqliteJournal(folder / "journal")
    await _fill(journal)
    async with _broker(folder) as link:
        outbox = Outbox(
            AGENT, bus=link, journal=journal, again=tuple, sent=lambda _event: None, clock=CLOCK, random=Random(1)
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(_keep_running(journal, phone), name="runs") if phone is not None else None
            start = time.perf_counter()
            await outbox.flush()
            taken = time.perf_counter() - start
            if running is not None:
                running.cancel()
    await journal.close()
    return taken


async def _fill(journal: Journal) -> None:
    """As many events of steps as are kept, of one execution."""
    ref = ExecutionRef(execution_id="backlog", attempt=1)
    await journal.take_on(Attempt(ref, "{}", None), REPORTER.accepted(ref))
    await journal.append(ref, REPORTER.started(ref, random_seed=1))
    for _ in range(Limits().progress):
        await journal.append(ref, REPORTER.step_started(ref, "step", "/steps/0"))


async def _keep_running(journal: Journal, phone: AdbPhone) -> None:
    for number in itertools.count():
        await _run(journal, phone, f"meanwhile-{number}")


@asynccontextmanager
async def _broker(folder: Path) -> AsyncIterator[BusLink]:
    server = NatsServer(folder / "nats")
    server.sync_interval = "1s"
    server.start()
    try:
        async with running_link(server.url) as link:
            await link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
            yield link
    finally:
        server.stop()
