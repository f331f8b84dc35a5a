"""A database that is locked or full for a while, under a controller that works: what came meanwhile counts once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import grpc
import pytest

from droidfleet_controller.store import database
from support.controller import document, running_controller, scripted_agent

pytestmark = pytest.mark.integration

BIG = 400
"""Steps of a result, and characters of each selector of a task, that take more room than a new database has left."""

PLENTY = 1_000_000
"""Pages: more than the test needs."""

Outage = Callable[[Path], AbstractContextManager[None]]


class _Connections:
    """Those that the controller opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._all: list[sqlite3.Connection] = []
        set_up = database._set_up_sqlite

        def watched(connection: sqlite3.Connection, entry: object) -> None:
            set_up(connection, entry)  # type: ignore[arg-type]  # the driver's connection, as SQLAlchemy hands it over
            self._all.append(connection)

        monkeypatch.setattr(database, "_set_up_sqlite", watched)
        monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)

    @contextmanager
    def locked(self, file: Path) -> Iterator[None]:
        """Somebody else holds the write lock."""
        with closing(sqlite3.connect(file)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def full(self, _file: Path) -> Iterator[None]:
        """Not one page can be added."""
        self._limit(1)  # SQLite makes it what there is
        yield
        self._limit(PLENTY)

    def _limit(self, pages: int) -> None:
        for connection in self._all:
            connection.execute(f"PRAGMA max_page_count={pages}").close()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> _Connections:
    return _Connections(monkeypatch)


def _big_task() -> str:
    steps = [{"id": f"s{n}", "action": "CLICK", "selector": {"text": "x" * BIG}} for n in range(100)]
    return json.dumps({"schemaVersion": 1, "taskId": "big", "steps": steps})


async def _refused(call: object) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call  # type: ignore[misc]  # any awaitable
    return str(dict(caught.value.trailing_metadata() or ())["droidfleet-code"])


@pytest.mark.parametrize("outage", ["locked", "full"])
async def test_what_comes_while_the_database_does_not_work_is_recorded_once_afterwards(
    outage: str, connections: _Connections, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    broken: Outage = connections.locked if outage == "locked" else connections.full
    async with running_controller(data) as api, scripted_agent(api.nats, "phone-01") as agent:
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.assigned(execution_id)
        await agent.accept(execution_id)
        await agent.start(execution_id)
        await api.until_state(execution_id, "RUNNING")
        with broken(data / "droidfleet.db"):
            await agent.finish(execution_id, steps=BIG)
            refused = await _refused(api.run(_big_task(), "phone-01", request_id="r-1"))
            assert refused == "DATABASE_UNAVAILABLE"
            if outage == "locked":
                status, body = await api.get("/readyz")
                assert (status, list(json.loads(body)["missing"])) == (503, ["database"])
                assert (await api.get("/healthz"))[0] == 200
            else:
                assert await api.state(execution_id) == "RUNNING"
        await api.until_state(execution_id, "SUCCEEDED", within_s=20)
        await agent.until_recorded(execution_id, within_s=20)
        kinds = [event.kind for event in await api.events(execution_id=execution_id)]
        assert kinds.count("ExecutionFinished") == 1
        again = [await api.run(_big_task(), "phone-01", request_id="r-1") for _ in range(2)]
        assert again[0].run_id == again[1].run_id
        await agent.run_when_assigned(again[0].executions[0].execution_id)
        await api.until_state(again[0].executions[0].execution_id, "SUCCEEDED", within_s=20)
