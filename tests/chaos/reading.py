"""What the controller reports, read after everything is healed: by its API, and from its database what the API would
take long to tell of many executions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import grpc

from chaos.checker import Counts, Reported
from droidfleet.v1 import execution_pb2, execution_pb2_grpc, rollout_pb2, rollout_pb2_grpc
from droidfleet_controller.store.schema import instant

CALL_S = 60.0
PAGE = 1_000

LIVE = tuple(
    execution_pb2.ExecutionState.Value(f"EXECUTION_STATE_{word}")
    for word in ("QUEUED", "ASSIGNED", "ACCEPTED", "RUNNING", "PAUSED")
)
ROLLOUT_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "ABORTED"})

_EVENTS = """
SELECT occurred_at, kind, attempt, summary, payload FROM events WHERE execution_id = ? ORDER BY event_id
"""
_ENDS = "SELECT execution_id, payload FROM events WHERE kind IN ('ExecutionFinished', 'ExecutionRejected')"
_SPANS = """
SELECT execution_id, MIN(CASE kind WHEN 'ExecutionStarted' THEN occurred_at END),
  MAX(CASE kind WHEN 'ExecutionFinished' THEN occurred_at END)
FROM events GROUP BY execution_id
"""


class Reading:
    """``data``: the controller's folder."""

    def __init__(self, channel: grpc.aio.Channel, data: Path) -> None:
        self._executions: execution_pb2_grpc.ExecutionServiceAsyncStub = execution_pb2_grpc.ExecutionServiceStub(
            channel
        )
        self._rollouts: rollout_pb2_grpc.RolloutServiceAsyncStub = rollout_pb2_grpc.RolloutServiceStub(channel)
        self._database = data / "droidfleet.db"

    async def live(self) -> list[execution_pb2.Execution]:
        """Executions that have not ended, a page of them."""
        request = execution_pb2.ListExecutionsRequest(page_size=PAGE, states=LIVE)
        return list((await self._executions.ListExecutions(request, timeout=CALL_S)).executions)

    async def rollouts(self) -> list[Counts]:
        """Every rollout with what it counts."""
        found: list[Counts] = []
        token = ""
        while True:
            request = rollout_pb2.ListRolloutsRequest(page_size=PAGE, page_token=token)
            page = await self._rollouts.ListRollouts(request, timeout=CALL_S)
            for listed in page.rollouts:
                one = rollout_pb2.GetRolloutRequest(rollout_id=listed.rollout_id)
                found.append(_counts((await self._rollouts.GetRollout(one, timeout=CALL_S)).rollout))
            token = page.next_page_token
            if not token:
                return found

    async def executions(self) -> list[Reported]:
        """Every execution as the API lists it, with how often and when it ended."""
        found: list[Reported] = []
        token = ""
        while True:
            request = execution_pb2.ListExecutionsRequest(page_size=PAGE, page_token=token)
            page = await self._executions.ListExecutions(request, timeout=CALL_S)
            found += [_reported(each) for each in page.executions]
            token = page.next_page_token
            if not token:
                break
        ends, spans = self._ends(), self._spans()
        return [
            replace(
                each,
                counted=ends.get(each.execution_id, 0),
                began_at=spans.get(each.execution_id, (None, None))[0],
                ended_at=spans.get(each.execution_id, (None, None))[1],
            )
            for each in found
        ]

    def events(self, execution_id: str) -> Iterator[tuple[datetime, str]]:
        """The log of one execution, for people."""
        with closing(self._connect()) as connection:
            for at, kind, attempt, summary, _ in connection.execute(_EVENTS, (execution_id,)):
                yield instant(at), f"attempt {attempt} {kind}: {summary}"

    def event_count(self) -> int:
        """Events on record."""
        with closing(self._connect()) as connection:
            [count] = connection.execute("SELECT COUNT(*) FROM events").fetchone()
            return int(count)

    def _ends(self) -> dict[str, int]:
        """How many ends of each execution count; a label says why one does not."""
        found: dict[str, int] = {}
        with closing(self._connect()) as connection:
            for execution_id, payload in connection.execute(_ENDS):
                if not json.loads(payload).get("label"):
                    found[execution_id] = found.get(execution_id, 0) + 1
        return found

    def _spans(self) -> dict[str, tuple[datetime | None, datetime | None]]:
        with closing(self._connect()) as connection:
            return {
                execution_id: (began and instant(began), ended and instant(ended))
                for execution_id, began, ended in connection.execute(_SPANS)
            }

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)


def unreceipted(journals: list[Path]) -> int:
    """Attempts that agents still hold, for want of a receipt."""
    held = 0
    for file in journals:
        if file.name.endswith(("-wal", "-shm")):
            continue
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            held += connection.execute("SELECT COUNT(*) FROM attempts").fetchone()[0]
    return held


def _reported(each: execution_pb2.Execution) -> Reported:
    ended = each.HasField("result")
    return Reported(
        execution_id=each.execution_id,
        run_id=each.run_id,
        device=each.device,
        state=execution_pb2.ExecutionState.Name(each.state).removeprefix("EXECUTION_STATE_"),
        code=each.result.code if ended else each.reason,
        acted=each.result.acted if ended and each.result.HasField("acted") else None,
    )


def _counts(rollout: rollout_pb2.Rollout) -> Counts:
    outcomes: dict[str, int] = {}
    for wave in rollout.waves:
        for each in wave.outcomes:
            word = rollout_pb2.MemberOutcome.Name(each.outcome).removeprefix("MEMBER_OUTCOME_")
            outcomes[word] = outcomes.get(word, 0) + each.count
    state = rollout_pb2.RolloutState.Name(rollout.state).removeprefix("ROLLOUT_STATE_")
    return Counts(
        run_id=rollout.rollout_id,
        ended=state in ROLLOUT_ENDED,
        members=sum(wave.members for wave in rollout.waves),
        outcomes=outcomes,
    )
