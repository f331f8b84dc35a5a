"""The journal's file: what is in it after an end of any kind."""

from __future__ import annotations

import asyncio
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_agent.journal.attempt import Attempt, IllegalMoveError
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.journal.port import Journal, JournalFullError, Limits
from droidfleet_agent.journal.sqlite import JournalUnusableError, SqliteJournal
from droidfleet_agent.reporting import Reporter
from droidfleet_shared.bus.messages import Event, ExecutionRef
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import TaskResult

CLOCK = VirtualClock()
REPORTER = Reporter("phone", CLOCK)
A = ExecutionRef(execution_id="a", attempt=1)

SMALL = Limits(attempts=3, progress=3, forgotten=2, artifact_bytes=2_000)
REFS = [ExecutionRef(execution_id=name, attempt=1) for name in "abcd"]
CALLS = ("take_on", "started", "step", "dispatching", "step_end", "finished", "rejected", "sent", "forget")


def _finished(ref: ExecutionRef) -> TaskResult:
    return TaskResult(
        task_id="t",
        revision=1,
        agent_name="phone",
        execution_id=ref.execution_id,
        successful=False,
        code=StepCode.AGENT_RESTARTED,
        started_at=CLOCK.now(),
        duration_ms=1,
    )


async def _call(journal: Journal, call: str, ref: ExecutionRef) -> None:
    match call:
        case "take_on":
            await journal.take_on(Attempt(ref, '{"taskId": "t"}', CLOCK.now()), REPORTER.accepted(ref))
        case "started":
            await journal.append(ref, REPORTER.started(ref, random_seed=7))
        case "step":
            await journal.append(ref, REPORTER.step_started(ref, "tap", "/steps/0"))
        case "dispatching":
            await journal.dispatching(ref, step_id="tap", path="/steps/0", ordinal=1)
        case "step_end":
            await journal.append(ref, REPORTER.step_started(ref, "other", "/steps/1"))
        case "finished":
            await journal.append(ref, REPORTER.finished(ref, _finished(ref)))
        case "rejected":
            await journal.append(ref, REPORTER.rejected(ref, "START_EXPIRED", "too late"))
        case "sent":
            await journal.sent((await journal.outbox(2))[:1])
        case _:
            await journal.forget([ref])


async def _content(journal: Journal) -> tuple[list[Attempt], list[Event], list[bool]]:
    return (
        list(await journal.attempts()),
        list(await journal.outbox(1_000)),
        [await journal.forgotten(ref) for ref in REFS],
    )


@given(calls=st.lists(st.tuples(st.sampled_from(CALLS), st.sampled_from(REFS), st.booleans()), max_size=40))
@settings(max_examples=60, deadline=None)
def test_opened_again_at_any_point_it_holds_what_one_that_never_closed_holds(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, ExecutionRef, bool]]
) -> None:
    file = tmp_path_factory.mktemp("journal") / "journal"

    async def compare() -> None:
        memory, disk = MemoryJournal(SMALL), SqliteJournal(file, SMALL)
        for call, ref, reopen in calls:
            refusals: list[type[Exception] | None] = []
            for journal in (memory, disk):
                try:
                    await _call(journal, call, ref)
                except (IllegalMoveError, JournalFullError) as error:
                    refusals.append(type(error))
                else:
                    refusals.append(None)
            assert refusals[0] == refusals[1]
            if reopen:
                await disk.close()
                disk = SqliteJournal(file, SMALL)
            assert await _content(disk) == await _content(memory)
        await disk.close()

    asyncio.run(compare())


_WRITER = """
import asyncio, sys
from pathlib import Path
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.sqlite import SqliteJournal
from droidfleet_agent.reporting import Reporter
from droidfleet_shared.bus.messages import ExecutionRef
from droidfleet_shared.clock import SystemClock

async def main():
    journal, reporter = SqliteJournal(Path(sys.argv[1])), Reporter("phone", SystemClock())
    ref = ExecutionRef(execution_id="a", attempt=1)
    await journal.take_on(Attempt(ref, "{}", None), reporter.accepted(ref))
    await journal.append(ref, reporter.started(ref, random_seed=7))
    for number in range(1_000_000):
        event = await journal.append(ref, reporter.step_started(ref, f"s{number}", "/steps/0"))
        print(event.sequence, flush=True)

asyncio.run(main())
"""


def _killed_writer(file: Path) -> int:
    """The last number that it said was written."""
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(file)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        confirmed = [process.stdout.readline() for _ in range(50)]
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
    return int((rest.split("\n")[:-1] or confirmed)[-1])


async def test_what_was_confirmed_before_a_kill_is_there_after_it(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    last = await asyncio.to_thread(_killed_writer, file)
    journal = SqliteJournal(file)
    [attempt] = await journal.attempts()
    # The one after it may have reached the disk before its confirmation.
    assert attempt.sequence in (last, last + 1)
    assert [event.sequence for event in await journal.outbox(10_000)] == list(range(1, attempt.sequence + 1))
    await journal.close()


async def test_a_cancelled_write_is_whole_and_the_next_one_follows_it(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    await _call(journal, "take_on", A)
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(_call(journal, "started", A))
        await asyncio.sleep(0)
        writing.cancel()
    await _call(journal, "step", A)
    kept = await _content(journal)
    await journal.close()
    again = SqliteJournal(tmp_path / "journal")
    assert await _content(again) == kept
    assert [event.kind for event in kept[1]] == ["ExecutionAccepted", "ExecutionStarted", "StepStarted"]
    await again.close()


async def test_after_a_write_that_failed_nothing_is_written_until_it_is_opened_again(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    await _call(journal, "take_on", A)
    before = await _content(journal)
    [pages] = journal._connection.execute("PRAGMA page_count").fetchone()
    journal._connection.execute(f"PRAGMA max_page_count = {pages}").close()
    big = ExecutionRef(execution_id="b", attempt=1)
    with pytest.raises(JournalUnusableError, match="full") as caught:
        await journal.take_on(Attempt(big, "x" * 100_000, None), REPORTER.accepted(big))
    assert (caught.value.code, "Make room" in caught.value.hint) == ("JOURNAL_UNUSABLE", True)
    with pytest.raises(JournalUnusableError):
        await _call(journal, "started", A)
    await journal.close()
    again = SqliteJournal(tmp_path / "journal")
    assert await _content(again) == before
    await again.close()


async def test_a_file_that_is_no_journal_is_refused_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    file.write_text("something else, and long enough to be no empty database " * 20)
    with pytest.raises(JournalUnusableError, match=str(file)):
        SqliteJournal(file)
    assert file.read_text().startswith("something else")


async def test_only_its_user_can_read_it_and_a_recorded_task_leaves_no_trace_in_it(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    secret = "hunter2-hunter2-hunter2"
    await journal.take_on(Attempt(A, f'{{"password": "{secret}"}}', None), REPORTER.accepted(A))
    assert secret in _bytes_in(tmp_path)
    assert _modes_in(tmp_path) == {0o600}
    await _call(journal, "rejected", A)
    await journal.sent(await journal.outbox(10))
    await journal.forget([A])
    assert secret not in _bytes_in(tmp_path)
    await journal.close()


def _bytes_in(folder: Path) -> str:
    return "".join(file.read_bytes().decode(errors="replace") for file in folder.iterdir())


def _modes_in(folder: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
