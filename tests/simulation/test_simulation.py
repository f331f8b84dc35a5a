"""Simulated worlds keep the invariants, a seed is one history in every process, and the checks catch what breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from droidfleet_agent import reconcile, worker
from droidfleet_controller.dispatch import deadlines, ingest, progress, sweeper
from droidfleet_controller.dispatch.deadlines import RECHECK, Judgement, Verdict
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.progress import Applied
from droidfleet_controller.rollouts.planner import advance, gate, retries
from droidfleet_controller.rollouts.planner.starts import Starter
from droidfleet_controller.rollouts.planner.tally import Tally
from droidfleet_controller.rollouts.spec import Gate, Retry
from droidfleet_controller.rollouts.states import ReasonCode
from droidfleet_shared.bus.messages import Event
from simulation.scenario import draw
from simulation.world import Verdict as WorldVerdict
from simulation.world import live_through

CI_SEEDS = int(os.environ.get("SEEDS", "2000"))
PARTS = 16
"""So that several workers share them, and none is left with all of it at the end."""

CI_S = 300.0
"""Some fifteen seconds for a part on a core that does nothing else; a busy machine takes longer."""

REPLAYED_S = 120.0

SOON = 200
"""Seeds within which a broken product has to be found out."""

SOON_S = 300.0

TESTS = Path(__file__).parents[1]


def simulate(*arguments: str, within_s: float) -> subprocess.CompletedProcess[str]:
    """Runs the command in a fresh process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return subprocess.run(
        [sys.executable, "-m", "simulation", *arguments],
        env={**environment, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )


@pytest.mark.timeout(CI_S)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_invariant_breaks_in_any_of_many_worlds(part: int) -> None:
    seeds = CI_SEEDS // PARTS
    ran = simulate("--first", str(part * seeds), "--seeds", str(seeds), "--jobs", "1", within_s=CI_S)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.timeout(2 * REPLAYED_S)
def test_a_seed_is_the_same_history_in_fresh_processes() -> None:
    one = simulate("--first", "500", "--seeds", "24", "--digests", "--jobs", "1", within_s=REPLAYED_S)
    two = simulate("--first", "500", "--seeds", "24", "--digests", "--jobs", "2", within_s=REPLAYED_S)
    assert len(one.stdout.splitlines()) == 24, one.stderr
    assert one.stdout == two.stdout


def test_one_seed_prints_its_history_and_how_it_ended() -> None:
    ran = simulate("--first", "3", "--seeds", "1", within_s=REPLAYED_S)
    verdict = live_through(3)
    assert len(ran.stdout.splitlines()) == len(verdict.lines)
    assert "seed 3: 0 findings" in ran.stderr


def test_different_seeds_are_different_worlds() -> None:
    assert len({draw(seed).troubled_s for seed in range(50)}) == 50


# Broken on purpose.

broken = pytest.mark.timeout(SOON_S)


def found_out() -> WorldVerdict:
    """The first world in which an invariant does not hold."""
    for seed in range(SOON):
        verdict = live_through(seed)
        if verdict.findings:
            return verdict
    raise AssertionError(f"nothing was noticed in {SOON} worlds")


@broken
def test_a_controller_that_ignores_the_attempt_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def believing(execution: Execution, event: Event, *, now: datetime) -> Applied:
        return progress.apply(execution, event.model_copy(update={"attempt": execution.attempt}), now=now)

    monkeypatch.setattr(ingest, "apply", believing)
    assert "its phone has not done it" in found_out().findings[0]


@broken
def test_a_controller_that_forgets_deadlines_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def patient(execution: Execution, *, agent_silent: bool, now: datetime) -> Judgement:
        return Judgement(Verdict.WAIT, check_at=now + RECHECK)

    monkeypatch.setattr(sweeper, "judge", patient)
    assert deadlines.judge is not patient
    assert "for ever" in found_out().findings[0]


@broken
def test_an_agent_that_does_not_see_what_runs_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(situation: reconcile.Situation) -> list[reconcile.Action]:
        return reconcile.reconcile(replace(situation, running=None))

    monkeypatch.setattr(worker, "reconcile", blind)
    assert found_out().findings


@broken
def test_a_gate_that_is_off_by_one_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(wanted: Gate, tally: Tally) -> ReasonCode:
        said = gate.verdict(wanted, tally)
        one_more = tally.succeeded + 1
        enough = one_more * 10_000 >= wanted.min_success_percent.hundredths * tally.counted
        return ReasonCode.NONE if said is ReasonCode.BELOW_THRESHOLD and enough else said

    monkeypatch.setattr(advance, "verdict", lenient)
    assert "below the gate of" in found_out().findings[0]


@broken
def test_a_retry_after_what_may_have_acted_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    careful = retries.never_retried

    def careless(retry: Retry, *, repeatable: bool, **how: object) -> str | None:
        return careful(retry, repeatable=True, **how)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(retries, "never_retried", careless)
    assert "which may have acted" in found_out().findings[0]


@broken
def test_one_more_at_a_time_than_allowed_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = Starter.room
    monkeypatch.setattr(Starter, "room", lambda starter: strict(starter) + 1)
    assert found_out().findings


@broken
def test_a_wave_that_does_not_soak_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advance, "_soaks", lambda *_: False)
    assert "has soaked" in found_out().findings[0]
