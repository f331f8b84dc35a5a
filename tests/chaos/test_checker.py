"""The reckoning finds each planted fault, alone, and finds nothing in a history that is whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.checker import Answer, Asked, Counts, Evidence, Kill, Pause, Reported, Sin, check
from chaos.effects import Felt
from chaos.posts import CONFIRMED, EFFECTS, SENT, TYPED

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
DEVICES = ("a", "b")
BEGAN, ENDED = NOON, NOON + timedelta(seconds=4)


def felt(word: str, device: str, *kinds: str) -> list[Felt]:
    return [Felt(device, word, kind, NOON) for kind in kinds]


def reported(word: str, device: str, *, state: str = "SUCCEEDED", code: str = "OK") -> Reported:
    return Reported(
        f"x-{word}-{device}",
        f"run-{word}",
        device,
        state,
        code=code,
        acted=True,
        counted=1,
        began_at=BEGAN,
        ended_at=ENDED,
    )


def whole() -> Evidence:
    """Two calls, one of them answered twice, and a rollout: all done, all felt, all reported."""
    calls = [
        Asked(word, DEVICES, (Answer(f"run-{word}", {device: f"x-{word}-{device}" for device in DEVICES}),) * times)
        for word, times in (("w1", 1), ("w2", 2))
    ]
    rollout = Asked("r1", DEVICES, (Answer("run-r1"),), rollout=True)
    words = ("w1", "w2", "r1")
    return Evidence(
        asked=[*calls, rollout],
        felt=[effect for word in words for device in DEVICES for effect in felt(word, device, *EFFECTS)],
        reported=[reported(word, device) for word in words for device in DEVICES],
        counts=[Counts("run-r1", ended=True, members=2, outcomes={"SUCCEEDED": 2})],
        expected=dict.fromkeys(DEVICES, EFFECTS),
    )


def changed(evidence: Evidence, execution_id: str, **fields: object) -> Evidence:
    """The evidence with another report of one execution."""
    return replace(
        evidence,
        reported=[
            replace(each, **fields) if each.execution_id == execution_id else each  # type: ignore[arg-type]  # of Reported
            for each in evidence.reported
        ],
    )


def killed(evidence: Evidence, at: datetime, *, device: str = "a") -> Evidence:
    return replace(evidence, kills=[Kill("light-0", frozenset({device}), at)])


def stopped(evidence: Evidence, at: datetime, seconds: float, *, device: str = "a") -> Evidence:
    pause = Pause("light-0", frozenset({device}), at, at + timedelta(seconds=seconds))
    return replace(evidence, pauses=[pause])


def out_of_time(evidence: Evidence) -> Evidence:
    """One execution ended because its step's time was over."""
    evidence = without(changed(evidence, "x-w1-a", state="FAILED", code="DEVICE_UNAVAILABLE"), "w1", "a", SENT)
    return without(evidence, "w1", "a", CONFIRMED)


def in_doubt(evidence: Evidence) -> Evidence:
    """One execution ended in doubt after its first effect."""
    evidence = without(changed(evidence, "x-w1-a", state="FAILED", code="OUTCOME_UNKNOWN"), "w1", "a", SENT)
    return without(evidence, "w1", "a", CONFIRMED)


def without(evidence: Evidence, word: str, device: str, kind: str) -> Evidence:
    return replace(
        evidence,
        felt=[each for each in evidence.felt if (each.word, each.device, each.kind) != (word, device, kind)],
    )


def test_a_whole_history_has_no_findings() -> None:
    verdict = check(whole())
    assert (verdict.findings, verdict.doubts, verdict.executions, verdict.repeated) == ((), (), 6, 1)


PLANTED: dict[str, tuple[Sin, Callable[[Evidence], Evidence]]] = {
    "an accepted execution that the controller does not have": (
        Sin.LOST,
        lambda good: replace(good, reported=[each for each in good.reported if each.execution_id != "x-w1-a"]),
    ),
    "an execution that has not ended": (Sin.LOST, lambda good: changed(good, "x-w1-a", state="RUNNING")),
    "an execution that is reported as lost": (Sin.LOST, lambda good: changed(good, "x-w1-a", state="LOST")),
    "an effect that was reported and not felt": (Sin.LOST, lambda good: without(good, "w1", "a", SENT)),
    "an answer that leaves out a device": (
        Sin.LOST,
        lambda good: replace(
            good,
            asked=[Asked("w1", DEVICES, (Answer("run-w1", {"a": "x-w1-a"}),)), *good.asked[1:]],
        ),
    ),
    "a rollout that has not ended": (
        Sin.LOST,
        lambda good: replace(good, counts=[replace(good.counts[0], ended=False)]),
    ),
    "an effect that was felt twice": (
        Sin.TWICE,
        lambda good: replace(good, felt=[*good.felt, *felt("w1", "b", SENT)]),
    ),
    "an effect of a rollout that was felt twice": (
        Sin.TWICE,
        lambda good: replace(good, felt=[*good.felt, *felt("r1", "b", TYPED)]),
    ),
    "two executions of one request on one device": (
        Sin.COUNTED_TWICE,
        lambda good: replace(good, reported=[*good.reported, replace(good.reported[0], execution_id="x-other")]),
    ),
    "a request that was answered with two runs": (
        Sin.COUNTED_TWICE,
        lambda good: replace(
            good,
            asked=[
                *good.asked[:1],
                replace(good.asked[1], answers=(good.asked[1].answers[0], Answer("run-other", {"a": "1", "b": "2"}))),
                *good.asked[2:],
            ],
        ),
    ),
    "an execution with two ends that count": (Sin.COUNTED_TWICE, lambda good: changed(good, "x-w1-a", counted=2)),
    "a rollout that counts a phone twice": (
        Sin.COUNTED_TWICE,
        lambda good: replace(good, counts=[replace(good.counts[0], outcomes={"SUCCEEDED": 3})]),
    ),
    "a rollout that counts a success that none had": (
        Sin.COUNTED_TWICE,
        lambda good: killed(
            changed(good, "x-r1-a", state="FAILED", code="OUTCOME_UNKNOWN"), BEGAN + timedelta(seconds=1)
        ),
    ),
    "an effect of what is said to have expired": (
        Sin.DENIED,
        lambda good: changed(good, "x-w1-a", state="EXPIRED", code=""),
    ),
    "an effect of what is said not to have acted": (
        Sin.DENIED,
        lambda good: killed(
            changed(good, "x-w1-a", state="FAILED", code="AGENT_RESTARTED", acted=False), BEGAN + timedelta(seconds=1)
        ),
    ),
    "an effect that nobody asked for": (
        Sin.UNASKED,
        lambda good: replace(good, felt=[*good.felt, *felt("w9", "a", SENT)]),
    ),
    "an execution that nobody asked for": (
        Sin.UNASKED,
        lambda good: replace(good, reported=[*good.reported, reported("w9", "a")]),
    ),
    "a doubt without a kill": (Sin.UNEXPLAINED, in_doubt),
    "a doubt after a kill of another agent": (
        Sin.UNEXPLAINED,
        lambda good: killed(in_doubt(good), BEGAN + timedelta(seconds=1), device="b"),
    ),
    "a doubt after a kill that came too early": (
        Sin.UNEXPLAINED,
        lambda good: killed(in_doubt(good), BEGAN - timedelta(seconds=1)),
    ),
    "a step out of time that nothing explains": (Sin.UNEXPLAINED, out_of_time),
    "a step out of time in a short pause": (Sin.UNEXPLAINED, lambda good: stopped(out_of_time(good), BEGAN, 2.0)),
    "a step out of time in a pause of another agent": (
        Sin.UNEXPLAINED,
        lambda good: stopped(out_of_time(good), BEGAN, 4.0, device="b"),
    ),
    "a step out of time before a pause": (
        Sin.UNEXPLAINED,
        lambda good: stopped(out_of_time(good), BEGAN + timedelta(seconds=2), 4.0),
    ),
    "a doubt that a pause does not explain": (Sin.UNEXPLAINED, lambda good: stopped(in_doubt(good), BEGAN, 4.0)),
    "a failure that no kill explains": (
        Sin.UNEXPLAINED,
        lambda good: killed(
            changed(good, "x-w1-a", state="FAILED", code="TARGET_NOT_FOUND"), BEGAN + timedelta(seconds=1)
        ),
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_found(planted: str) -> None:
    sin, plant = PLANTED[planted]
    found = {finding.sin for finding in check(plant(whole())).findings}
    # What no answer names was in the same instant promised and unknown.
    assert sin in found
    assert found <= {sin, Sin.UNEXPLAINED, Sin.UNASKED}


def test_a_doubt_is_listed_with_the_kill_that_explains_it() -> None:
    verdict = check(killed(in_doubt(whole()), BEGAN + timedelta(seconds=1)))
    [doubt] = verdict.doubts
    assert verdict.findings == ()
    assert (doubt.execution_id, doubt.felt) == ("x-w1-a", (TYPED,))
    assert doubt.cause == "light-0 was killed at 12:00:01.000"


def test_a_step_that_ran_out_of_time_is_listed_with_the_pause_that_took_it() -> None:
    verdict = check(stopped(out_of_time(whole()), BEGAN, 4.0))
    assert verdict.findings == ()
    assert [doubt.cause for doubt in verdict.doubts] == ["light-0 was stopped for 4.0 s at 12:00:00"]


def test_a_second_try_of_a_rollout_is_no_double() -> None:
    evidence = whole()
    first = replace(reported("r1", "a", state="FAILED", code="AGENT_RESTARTED"), execution_id="x-try-1", acted=False)
    evidence = killed(replace(evidence, reported=[*evidence.reported, first]), BEGAN + timedelta(seconds=1))
    assert check(evidence).findings == ()


def test_counts_are_not_held_against_what_has_not_ended() -> None:
    evidence = changed(whole(), "x-r1-a", state="RUNNING")
    assert [finding.sin for finding in check(evidence).findings] == [Sin.LOST]


@given(st.sampled_from(whole().felt))
def test_each_effect_is_missed_when_it_is_gone_and_noticed_when_it_comes_again(effect: Felt) -> None:
    evidence = whole()
    lacking = check(replace(evidence, felt=[each for each in evidence.felt if each != effect]))
    again = check(replace(evidence, felt=[*evidence.felt, effect]))
    assert [(found.sin, found.word, found.device) for found in lacking.findings] == [
        (Sin.LOST, effect.word, effect.device)
    ]
    assert [(found.sin, found.word, found.device) for found in again.findings] == [
        (Sin.TWICE, effect.word, effect.device)
    ]
