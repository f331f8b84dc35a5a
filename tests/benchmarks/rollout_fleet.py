"""A rollout over a whole fleet of light agents, beside bare requests to the same agents over the same broker.

From the call that starts the rollout to the last agent's acceptance: the preflight, the planner, the database's and the
broker's commits, the push to each agent, its journal. One wave, no limit: everybody at once is the hardest case. A bare
request carries the same document to an agent's process and back, one to each agent, all at once.

``BENCH_PHONES="1000 3000"`` picks the sizes. A size for which the machine has no room is left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import time
from dataclasses import dataclass

import psutil

from benchmarks.figures import Figure
from benchmarks.light_fleet import CALL_S, DOCUMENT, LightFleet, light_fleet
from droidfleet.v1 import rollout_pb2, rollout_pb2_grpc, task_pb2, task_pb2_grpc

TARGETS_S = {1_000: 5.0, 3_000: 15.0, 10_000: 60.0}
ROUNDS = {1_000: 3, 3_000: 2, 10_000: 1}

AGENT_BYTES = 400 * 1024
"""Of an agent, its connection on both sides, and its share of the controller."""

SPARE_FILES = 1_000
"""Open files beside one for each agent, in the broker's process as in the others."""


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds from the start: until every agent had accepted, and until the rollout had ended; ``bare``: until every
    bare request was answered."""

    accepted: float
    ended: float
    bare: float


async def figures() -> list[Figure]:
    """Seconds until all have accepted, for each size."""
    found: list[Figure] = []
    for count in _sizes():
        async with light_fleet(count) as fleet:
            await task_pb2_grpc.TaskServiceStub(fleet.channel).SaveTask(
                task_pb2.SaveTaskRequest(document_json=DOCUMENT), timeout=CALL_S
            )
            rounds = [await _round(fleet, number) for number in range(ROUNDS[count])]
        accepted, ended, bare = (
            statistics.median(getattr(each, name) for each in rounds) for name in ("accepted", "ended", "bare")
        )
        note = f"bare requests to all {bare:.2f} s; rollout ended after {ended:.1f} s; {len(rounds)} rounds"
        found.append(Figure(f"rollout over {count:,} phones, all accepted", accepted, "s", TARGETS_S[count], note=note))
    return found


def _sizes() -> list[int]:
    asked = [int(word) for word in os.environ.get("BENCH_PHONES", "").split()]
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = psutil.virtual_memory().available
    return [
        count
        for count in TARGETS_S
        if count in (asked or TARGETS_S) and count + SPARE_FILES <= files and count * AGENT_BYTES <= free
    ]


async def _round(fleet: LightFleet, number: int) -> Round:
    start = time.perf_counter()
    await asyncio.gather(*(fleet.ask(name) for name in fleet.names))
    bare = time.perf_counter() - start
    rollouts = rollout_pb2_grpc.RolloutServiceStub(fleet.channel)
    spec = json.dumps({"name": f"round {number}", "task": "bench", "target": {"devices": list(fleet.names)}})
    start = time.perf_counter()
    begun = await rollouts.StartRollout(rollout_pb2.StartRolloutRequest(spec_json=spec), timeout=CALL_S)
    accepted_at = await fleet.accepted_at()
    accepted = max(accepted_at.values()) - start
    watch = rollout_pb2.WatchRolloutRequest(rollout_id=begun.rollout.rollout_id)
    async for seen in rollouts.WatchRollout(watch, timeout=CALL_S):
        last = seen.rollout.state
    assert last == rollout_pb2.ROLLOUT_STATE_SUCCEEDED
    return Round(accepted, time.perf_counter() - start, bare)
