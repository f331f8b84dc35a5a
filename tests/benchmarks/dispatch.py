"""From the call that runs a task to the agent that has accepted it, beside a bare NATS request on the same broker.

The whole way counts: the gRPC call, validation, the database's commit on disk, the broker's commit on disk, the push to
the agent, validation there, the agent's journal. A bare request carries the same document from here over the broker to
the agent's process and back, as many at once as there are executions at once. Both start from the same rest.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

from benchmarks.figures import Figure, median_ms
from benchmarks.light_fleet import CALL_S, DOCUMENT, LightFleet, light_fleet
from droidfleet.v1 import execution_pb2

TARGET_RATIO = 5.0

ROUNDS = {1: 100, 100: 8, 1_000: 3}
"""Fleet size to rounds: a hundred executions at least, and no more than half a minute each."""

WARMUP = 2

REST_S = 0.02
"""Before each round: nothing is under way any more, for neither of the two."""


async def figures() -> list[Figure]:
    """Medians and their ratio for one agent, a hundred and a thousand."""
    found: list[Figure] = []
    for count, rounds in ROUNDS.items():
        async with light_fleet(count) as fleet:
            ours, bare = await _measure(fleet, rounds)
        agents = "1 agent" if count == 1 else f"{count:,} agents at once"
        found += [
            Figure(
                f"run to accepted, {agents}",
                statistics.median(ours) / statistics.median(bare),
                "x",
                target=TARGET_RATIO,
                note=f"of a bare request; {_spread(ours)} against {_spread(bare)}",
            ),
            Figure(f"run to accepted, {agents}, median", median_ms(ours), "ms"),
        ]
    return found


async def _measure(fleet: LightFleet, rounds: int) -> tuple[Sequence[float], Sequence[float]]:
    """Seconds of every execution and every bare request, taking turns so that a drifting machine treats them alike."""
    ours: list[float] = []
    bare: list[float] = []
    for number in range(WARMUP + rounds):
        await asyncio.sleep(REST_S)
        requests = await _ask(fleet)
        await asyncio.sleep(REST_S)
        executions = await _run(fleet)
        if number >= WARMUP:
            bare += requests
            ours += executions
    return ours, bare


async def _ask(fleet: LightFleet) -> Sequence[float]:
    start = time.perf_counter()

    async def one(name: str) -> float:
        await fleet.ask(name)
        return time.perf_counter() - start

    return await asyncio.gather(*(one(name) for name in fleet.names))


async def _run(fleet: LightFleet) -> Sequence[float]:
    request = execution_pb2.RunTaskRequest(document_json=DOCUMENT, devices=fleet.names)
    start = time.perf_counter()
    response = await fleet.executions.RunTask(request, timeout=CALL_S)
    accepted_at = await fleet.accepted_at()
    return [accepted_at[execution.execution_id] - start for execution in response.executions]


def _spread(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{median_ms(ordered):.2f} ms (p95 {ordered[int(len(ordered) * 0.95)] * 1_000:.2f})"
