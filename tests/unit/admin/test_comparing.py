"""A document and a heartbeat held against what the database has for an agent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from droidfleet_controller.admin.comparing import Ours, agent_differs, broker_differs
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.window import Body, Document, Listed
from droidfleet_controller.store.documents import Head
from droidfleet_shared.bus.messages import ExecutionRef, Heartbeat
from support.controller import document
from unit.controller.builders import beat, device, execution

S = ExecutionState
AT_WORK = execution(S.RUNNING)
OURS = Ours("phone-01", "db-1", Head(7, "h-1"), (AT_WORK,))
THERE = ExecutionRef(execution_id="x-1", attempt=1)
FENCED = ExecutionRef(execution_id="x-1", attempt=2)
STRANGE = ExecutionRef(execution_id="x-9", attempt=1)


def stored(*, epoch: str = "db-1", generation: int = 7, listed: tuple[str, ...] = ("x-1",)) -> bytes:
    """A document as the broker has it."""
    entries = tuple(Listed(execution(execution_id=each), Body.of(document())) for each in listed)
    return Document("phone-01", generation, entries, ()).encode(AT_WORK.created_at, epoch=epoch)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (stored(), ""),
        (None, "DOCUMENT_MISSING"),
        (b"{", "DOCUMENT_UNREADABLE"),
        (stored(epoch="db-2"), "DOCUMENT_OF_ANOTHER_DATABASE"),
        (stored(generation=6), "DOCUMENT_OUTDATED"),
        (stored(generation=8), "DOCUMENT_AHEAD"),
        (stored(listed=()), "DOCUMENT_DIFFERS"),
        (stored(listed=("x-1", "x-2")), "DOCUMENT_DIFFERS"),
    ],
)
def test_the_brokers_document_is_the_databases_or_said_not_to_be(data: bytes | None, code: str) -> None:
    finding = broker_differs(OURS, data)
    assert (finding.code if finding else "") == code


@pytest.mark.parametrize(
    ("heard", "codes"),
    [
        (beat(epoch="db-1", generation=7, running=THERE), []),
        (beat(epoch="db-1", generation=7), ["NOT_RUNNING"]),
        (beat(epoch="db-1", generation=6), ["AGENT_BEHIND"]),
        (beat(), ["AGENT_BEHIND"]),
        (beat(epoch="db-0", generation=99), ["AGENT_BEHIND"]),
        (beat(epoch="db-1", generation=8), ["AGENT_AHEAD"]),
        (beat(epoch="db-1", generation=7, host_id="h-2"), ["AGENT_ON_ANOTHER_HOST"]),
        (beat(epoch="db-1", generation=6, running=STRANGE), ["RUNS_UNKNOWN", "AGENT_BEHIND"]),
        (beat(epoch="db-1", generation=7, running=FENCED), ["RUNS_ENDED", "NOT_RUNNING"]),
    ],
)
def test_an_agent_does_what_the_database_says_or_is_said_not_to(heard: Heartbeat, codes: list[str]) -> None:
    known = {"x-1": AT_WORK}
    assert [finding.code for finding in agent_differs(device(heard), OURS, known)] == codes


def test_what_the_database_knows_as_ended_should_not_run() -> None:
    ended = replace(AT_WORK, state=S.CANCELLED)
    ours = replace(OURS, window=())
    heard = device(beat(epoch="db-1", generation=7, running=THERE))
    assert [finding.code for finding in agent_differs(heard, ours, {"x-1": ended})] == ["RUNS_ENDED"]


def test_an_agent_without_a_document_has_nothing_to_follow() -> None:
    assert list(agent_differs(device(beat()), None, {})) == []
