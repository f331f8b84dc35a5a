"""A fleet of the real programs under load and kills: nothing lost, nothing done twice, nothing counted twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.plan import CI, FaultKind, Lane
from chaos.report import text
from chaos.world import live_through
from support.workplace import left_running

pytestmark = pytest.mark.e2e

SEED = int(os.environ.get("SEED", "1"))
MOST_S = 900.0
"""Three minutes on two cores that do nothing else; a machine that runs other tests beside them takes longer."""


@pytest.mark.timeout(MOST_S)
async def test_every_execution_is_felt_and_counted_once_while_everything_is_killed(tmp_path: Path) -> None:
    try:
        outcome = await live_through(SEED, CI, tmp_path)
    finally:
        for process in left_running(tmp_path):
            process.kill()
    told = text("What was found", outcome, [])
    assert outcome.clean, told
    assert outcome.verdict.executions >= 2_000, told
    assert outcome.done[Lane.BROKER, FaultKind.KILL] >= 20, told
    assert outcome.done[Lane.AGENTS, FaultKind.KILL] >= 20, told
    assert outcome.done[Lane.CONTROLLER, FaultKind.KILL] >= 5, told
    # Kills that met nobody at work would show nothing.
    assert outcome.verdict.doubts, told
