"""Every log of explorations for the contract suite, and the entries that tests write into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.drafts.approvals import Approvals
from droidfleet_controller.drafts.followers import Followers
from droidfleet_controller.drafts.log import DraftLogs
from droidfleet_controller.drafts.pictures import Pictures
from droidfleet_controller.drafts.record import StoredDraft
from droidfleet_controller.store import drafts
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_designer.conversation import Stop, ToolCall, Usage
from droidfleet_designer.draft.draft import Brief, Draft, DraftTarget
from droidfleet_designer.log import (
    ApprovalAnswered,
    ApprovalAsked,
    Began,
    Ended,
    Ending,
    Entry,
    OutcomeKind,
    Problem,
    Proposed,
    Resumed,
    Spoke,
    Told,
    ToolBegan,
    ToolEnded,
)
from droidfleet_designer.ports import ExplorationLog, LogBounds
from support.clock import HandClock
from support.shelf_log import MemoryShelf, ShelfLog

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUOTA_BYTES = 1_000_000

BRIEF = Brief(description="Buy green tea", device="phone-01")
DRAFT = Draft(
    summary="Buys tea.",
    task={"schemaVersion": 1, "taskId": "buy-tea", "steps": [{"id": "b", "action": "BACK"}], "odd": None},
    target=DraftTarget(device="phone-01"),
)
TOLD = Told(code="NO_CALL", text="Call a tool.")
ENDED = Ended(ending=Ending.FAILED, code="TURN_LIMIT", message="It took too long.", spent_tokens=9)
ENTRIES: tuple[Entry, ...] = (
    Began(brief=BRIEF, model="a-model", sees=True, max_turns=40, max_tokens=1_000, prices=(0.5, 1.5)),
    Resumed(),
    Spoke(
        turn=1,
        text="I look. 茶 🍵 \x00",
        calls=(ToolCall(id="c1", name="tap", arguments='{"screen": 1, "elem'),),
        stop=Stop.LENGTH,
        usage=Usage(input_tokens=5, output_tokens=2),
        spent_tokens=7,
        spent_money=0.25,
    ),
    TOLD,
    ToolBegan(call_id="c1", name="tap", arguments_json="{}", request_id="r-1"),
    ToolEnded(call_id="c1", name="tap", outcome=OutcomeKind.RESULT, text="done", snapshot="s1", picture="ab"),
    ApprovalAsked(approval_id="a-1", call_id="c1", name="tap", arguments_json="{}", why="Send", until=NOW),
    ApprovalAnswered(approval_id="a-1", allowed=True, by="Ada"),
    Proposed(draft=DRAFT),
    Problem(code="MODEL_BUSY", message="Later.", again_in_s=2.5),
    ENDED,
)

Open = Callable[[], ExplorationLog]
"""Opens the log of the one exploration, as another process would: what was kept is there again."""


def stored_draft(draft_id: str = "d-1", *, request_id: str = "") -> StoredDraft:
    """A draft that has just begun."""
    return StoredDraft(
        draft_id=draft_id,
        request_id=request_id or f"request-{draft_id}",
        brief=BRIEF,
        model="a-model",
        max_tokens=1_000,
        created_by="Ada",
        created_at=NOW,
        updated_at=NOW,
    )


@dataclass
class Bench:
    """Logs over a real database file, with draft ``d-1``."""

    folder: Path
    database: Database
    files: ArtifactFiles
    clock: HandClock
    bounds: LogBounds = field(default_factory=LogBounds)
    quota_bytes: int = QUOTA_BYTES
    followers: Followers = field(default_factory=Followers)
    approvals: Approvals = field(default_factory=Approvals)

    def logs(self) -> DraftLogs:
        """The logs."""
        pictures = Pictures(database=self.database, files=self.files, quota_bytes=self.quota_bytes, clock=self.clock)
        return DraftLogs(
            database=self.database,
            pictures=pictures,
            clock=self.clock,
            followers=self.followers,
            approvals=self.approvals,
            bounds=self.bounds,
        )

    async def draft(self, draft_id: str = "d-1") -> StoredDraft:
        """A draft as it is stored."""
        found = await self.database.run(lambda connection: drafts.get(connection, draft_id))
        assert found is not None
        return found

    async def add(self, *added: StoredDraft) -> None:
        """Stores drafts."""
        for each in added:
            await self.database.run(partial(drafts.add, draft=each))


@asynccontextmanager
async def bench_of(folder: Path) -> AsyncIterator[Bench]:
    """The parts, over a database in this folder."""
    database = Database(sqlite_url(folder / "test.db"))
    try:
        migrate(database.engine)
        bench = Bench(folder, database, ArtifactFiles(folder / "artifacts"), HandClock())
        await bench.add(stored_draft())
        yield bench
    finally:
        await database.close()


@asynccontextmanager
async def _in_database(folder: Path, bounds: LogBounds) -> AsyncIterator[Open]:
    async with bench_of(folder) as bench:
        bench.bounds = bounds
        yield lambda: bench.logs().of("d-1")


@asynccontextmanager
async def _in_memory(_folder: Path, bounds: LogBounds) -> AsyncIterator[Open]:
    shelf, clock = MemoryShelf(), HandClock()
    yield lambda: ShelfLog(clock=clock, shelf=shelf, bounds=bounds)


LOGS = {"database": _in_database, "memory": _in_memory}
