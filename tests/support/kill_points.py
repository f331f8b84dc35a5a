"""Kill points: places between "written" and "done" at which an agent's process ends by SIGKILL.

Patched in from outside: `install` puts them around the journal's calls, into its transactions, around and into the
calls to the phone, and around what is sent. The product knows nothing of them. A point is a name such as
``append StepFinished send: after``, with ``#2`` where a run passes it for the second time; only those of one execution
count.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from droidfleet_agent.driver.http import Answer, HttpConnection
from droidfleet_agent.driver.phone import AdbPhone
from droidfleet_agent.engine.trail import Decided, Entry
from droidfleet_agent.journal import sqlite
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.book import Change
from droidfleet_agent.journal.sqlite import SqliteJournal
from droidfleet_agent.worker import Worker
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import DesiredState, Event, ExecutionRef, StepFinished, StepStarted, decode_event
from droidfleet_shared.clock import Deadline

P = ParamSpec("P")
T = TypeVar("T")

ACTIONS = ("tap", "set_focused_text", "press", "hide_keyboard", "swipe", "start_app", "stop_app")
"""Of the driver: what tells the phone to do something."""

EVENTS = "fleet.event."


class KillSwitch:
    """Ends this process at ``point`` of ``execution``. ``record``: a file that every point passed is written to."""

    def __init__(self, execution: str, *, point: str = "", record: Path | None = None) -> None:
        self.execution = execution
        self.acting = False
        """Whether the execution has begun and not ended, so that calls to the phone are its."""
        self._point = point
        self._record = record
        self._passed: Counter[str] = Counter()

    def at(self, name: str) -> None:
        """The process is at this point now, for the last time perhaps."""
        self._passed[name] += 1
        times = self._passed[name]
        full = name if times == 1 else f"{name} #{times}"
        if self._record is not None:
            with self._record.open("a") as file:
                file.write(f"{full}\n")
        if full == self._point:
            os.kill(os.getpid(), signal.SIGKILL)

    async def around(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """Points before and after a call."""
        self.at(f"{name}: before")
        result = await call()
        self.at(f"{name}: after")
        return result


def install(switch: KillSwitch) -> None:
    """Puts the points into this process."""
    _journal(switch)
    _transactions(switch)
    _phone(switch)
    _bus(switch)


def _journal(switch: KillSwitch) -> None:
    take_on, append, dispatching = SqliteJournal.take_on, SqliteJournal.append, SqliteJournal.dispatching
    note, sent, forget = SqliteJournal.note, SqliteJournal.sent, SqliteJournal.forget

    async def taking_on(self: SqliteJournal, attempt: Attempt, make: Callable[[int], Event]) -> Event:
        if attempt.ref.execution_id != switch.execution:
            return await take_on(self, attempt, make)
        return await switch.around("take on", lambda: take_on(self, attempt, make))

    async def appending(
        self: SqliteJournal, ref: ExecutionRef, make: Callable[[int], Event], *, trail: Entry | None = None
    ) -> Event:
        if ref.execution_id != switch.execution:
            return await append(self, ref, make, trail=trail)
        event = make(1)
        switch.acting = event.kind != "ExecutionFinished"
        return await switch.around(f"append {_words(event)}", lambda: append(self, ref, make, trail=trail))

    async def announcing(self: SqliteJournal, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> None:
        if ref.execution_id != switch.execution:
            return await dispatching(self, ref, step_id=step_id, path=path, ordinal=ordinal)
        return await switch.around(
            f"announce {step_id}", lambda: dispatching(self, ref, step_id=step_id, path=path, ordinal=ordinal)
        )

    async def noting(self: SqliteJournal, ref: ExecutionRef, entry: Entry) -> None:
        if ref.execution_id != switch.execution or not isinstance(entry, Decided):
            return await note(self, ref, entry)
        return await switch.around(f"note {entry.what}", lambda: note(self, ref, entry))

    async def taking_out(self: SqliteJournal, events: Sequence[Event]) -> None:
        ours = [event for event in events if event.execution_id == switch.execution]
        for event in ours:
            switch.at(f"take out {_words(event)}: before")
        await sent(self, events)
        for event in ours:
            switch.at(f"take out {_words(event)}: after")

    async def forgetting(self: SqliteJournal, refs: Sequence[ExecutionRef]) -> None:
        if all(ref.execution_id != switch.execution for ref in refs):
            return await forget(self, refs)
        return await switch.around("forget", lambda: forget(self, refs))

    SqliteJournal.take_on = taking_on  # type: ignore[method-assign]  # what this module is for
    SqliteJournal.append = appending  # type: ignore[method-assign]  # what this module is for
    SqliteJournal.dispatching = announcing  # type: ignore[method-assign]  # what this module is for
    SqliteJournal.note = noting  # type: ignore[method-assign]  # what this module is for
    SqliteJournal.sent = taking_out  # type: ignore[method-assign]  # what this module is for
    SqliteJournal.forget = forgetting  # type: ignore[method-assign]  # what this module is for


def _transactions(switch: KillSwitch) -> None:
    """Points between a transaction's writes and its commit."""
    write = sqlite._write

    def writing(connection: sqlite3.Connection, change: Change) -> None:
        write(connection, change)
        names = (*(attempt.ref.execution_id for attempt in change.attempts), *(name[0] for name in change.forgotten))
        if names[:1] == (switch.execution,):
            switch.at(f"uncommitted {_change(change)}")

    sqlite._write = writing


def _phone(switch: KillSwitch) -> None:
    for action in ACTIONS:
        setattr(AdbPhone, action, _told(switch, action, getattr(AdbPhone, action)))
    request = HttpConnection.request

    async def requesting(
        self: HttpConnection, method: str, target: str, body: bytes = b"", *, deadline: Deadline
    ) -> Answer:
        if switch.acting and any(f'"{call}"'.encode() in body for call in ("click", "setText", "pressKeyCode")):
            # When the loop comes to it the request is written, and its answer is not read.
            asyncio.get_running_loop().call_soon(switch.at, "the phone is told, and has not answered")
        return await request(self, method, target, body, deadline=deadline)

    HttpConnection.request = requesting  # type: ignore[method-assign]  # what this module is for


def _told(switch: KillSwitch, action: str, call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    async def telling(*args: P.args, **kwargs: P.kwargs) -> T:
        if not switch.acting:
            return await call(*args, **kwargs)
        return await switch.around(f"tell the phone: {action}", lambda: call(*args, **kwargs))

    return telling


def _bus(switch: KillSwitch) -> None:
    publish, want = BusLink.js_publish, Worker.want

    async def publishing(
        self: BusLink,
        subject: str,
        payload: bytes,
        *,
        stream: str,
        timeout_s: float,
        expected_last_subject_sequence: int | None = None,
    ) -> int:
        def call() -> Awaitable[int]:
            return publish(
                self, subject, payload, stream=stream, timeout_s=timeout_s,
                expected_last_subject_sequence=expected_last_subject_sequence,
            )  # fmt: skip

        if not subject.startswith(EVENTS) or not subject.endswith(f".{switch.execution}"):
            return await call()
        return await switch.around(f"send {_words(decode_event(payload))}", call)

    def wanting(self: Worker, document: DesiredState) -> None:
        ours = any(each.execution_id == switch.execution for each in document.executions)
        if ours:
            switch.at("document: before")
        want(self, document)
        if ours:
            switch.at("document: after")

    BusLink.js_publish = publishing  # type: ignore[method-assign]  # what this module is for
    Worker.want = wanting  # type: ignore[method-assign]  # what this module is for


def _words(event: Event) -> str:
    match event:
        case StepStarted():
            return f"{event.kind} {event.step_id}"
        case StepFinished():
            return f"{event.kind} {event.result.id}"
        case _:
            return event.kind


def _change(change: Change) -> str:
    if change.added is not None:
        return _words(change.added.event)
    if change.forgotten:
        return "forget"
    if change.trail is not None:
        return "note"
    step = change.attempts[0].open_step
    return f"announce {step.step_id if step else ''}"
