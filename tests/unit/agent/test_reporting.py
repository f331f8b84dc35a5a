"""Events fit the bus, whatever is in them."""

from __future__ import annotations

from datetime import UTC, datetime

from droidfleet_agent.reporting import KEPT_STEPS, Reporter
from droidfleet_shared.bus.messages import MAX_MESSAGE_BYTES, ExecutionFinished, StepFinished
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import ArtifactModel, BoundsModel, StepResult, TargetModel, TaskResult
from support.assignments import AGENT, ref
from support.clock import HandClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REPORTER = Reporter(AGENT, HandClock())


def _step(number: int, *, text: int = 0, message: int = 0, inline: int = 0) -> StepResult:
    bounds = BoundsModel(left=0, top=0, right=1, bottom=1)
    target = TargetModel(text="ü" * text, bounds=bounds)
    artifact = ArtifactModel(name="dump", media_type="text/xml", sha256="0", size_bytes=inline, inline="x" * inline)
    return StepResult(
        id=f"s{number}",
        action="CLICK",
        path=f"/steps/{number}",
        successful=False,
        code=StepCode.TARGET_AMBIGUOUS,
        message="m" * message,
        started_at=NOW,
        duration_ms=1,
        looks=1,
        dispatched=0,
        target=target,
        candidates=(target,) * 5,
        artifacts=(artifact,) if inline else (),
    )


def _finished(*steps: StepResult, outputs: dict[str, str | list[str]] | None = None) -> ExecutionFinished:
    result = TaskResult(
        task_id="t",
        revision=1,
        agent_name=AGENT,
        execution_id="a",
        successful=False,
        code=StepCode.TARGET_AMBIGUOUS,
        message="why",
        failed_step_id="s0",
        outputs=outputs or {},
        steps=steps,
        started_at=NOW,
        duration_ms=1,
    )
    event = REPORTER.finished(ref("a"), result)(1)
    assert isinstance(event, ExecutionFinished)
    assert len(event.encode()) <= MAX_MESSAGE_BYTES
    return event


def test_a_result_that_fits_is_left_as_it_is() -> None:
    step = _step(0, text=256, inline=16_384)
    event = _finished(step, outputs={"total": "9.50"})
    assert (event.result.steps, event.result.outputs, event.result.message) == ((step,), {"total": "9.50"}, "why")


def test_texts_of_artifacts_go_first() -> None:
    event = _finished(*(_step(number, inline=16_384) for number in range(100)))
    assert len(event.result.steps) == 100
    assert event.result.steps[0].artifacts[0].inline is None
    assert len(event.result.steps[0].candidates) == 5
    assert "cut to fit" in event.result.message


def test_candidates_go_next() -> None:
    event = _finished(*(_step(number, text=500, inline=16_384) for number in range(200)))
    assert len(event.result.steps) == 200
    assert event.result.steps[0].candidates == ()
    assert event.result.steps[0].target is not None


def test_long_outputs_are_cut_with_a_marker() -> None:
    event = _finished(outputs={"page": "x" * 2_000_000, "rows": ["y" * 100] * 20_000, "short": "z"})
    assert str(event.result.outputs["page"]).endswith("characters more]")
    assert str(event.result.outputs["rows"]).endswith("characters more]")
    assert event.result.outputs["short"] == "z"


def test_of_a_result_that_is_far_too_large_the_last_steps_stay() -> None:
    event = _finished(*(_step(number, message=20_000) for number in range(200)))
    assert [step.id for step in event.result.steps] == [f"s{number}" for number in range(200 - KEPT_STEPS, 200)]
    assert (event.result.code, event.result.failed_step_id) == (StepCode.TARGET_AMBIGUOUS, "s0")


def test_a_steps_own_event_is_cut_too() -> None:
    event = REPORTER.step_finished(ref("a"), _step(0, message=2_000_000))(1)
    assert isinstance(event, StepFinished)
    assert len(event.encode()) <= MAX_MESSAGE_BYTES
