"""A fleet of the real programs under load and kills: nothing lost, nothing done twice, nothing counted twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.plain_queue import comparisons, run_plain_queue
from chaos.plan import CI, FaultKind, Lane
from chaos.report import write_report
from chaos.world import live_through
from support.summary import CHECKED
from support.workplace import left_running

pytestmark = pytest.mark.e2e

SEED = int(os.environ.get("SEED", "1"))
MOST_S = 900.0
"""Four minutes on two cores that do nothing else; a machine that runs other tests beside them takes longer."""


# The client of the plain queue leaves its broken connections to the collector, as plain clients do.
@pytest.mark.filterwarnings("ignore:Exception ignored in. .*StreamWriter:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(MOST_S)
async def test_every_execution_is_felt_and_counted_once_while_everything_is_killed(tmp_path: Path) -> None:
    fleet, crowd = tmp_path / "fleet", tmp_path / "crowd"
    fleet.mkdir()
    crowd.mkdir()
    *_, (title, some, lanes) = comparisons(CI)
    try:
        outcome = await live_through(SEED, CI, fleet)
        plain = await run_plain_queue(SEED, some, crowd, title=title, lanes=lanes)
    finally:
        for process in left_running(tmp_path):
            process.kill()
    told = write_report(CHECKED, "What was found", outcome, [plain]).read_text()
    assert outcome.clean, told
    assert outcome.verdict.executions >= 2_000, told
    assert outcome.done[Lane.BROKER, FaultKind.KILL] >= 20, told
    assert outcome.done[Lane.AGENTS, FaultKind.KILL] >= 20, told
    assert outcome.done[Lane.CONTROLLER, FaultKind.KILL] >= 5, told
    # Kills that met nobody at work would show nothing.
    assert outcome.verdict.doubts, told
