"""Lines of progress: states at once, counts now and then. The view: bars that add up, that fit, and that are safe."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from droidfleet.v1 import rollout_pb2
from droidfleet_controller.cli import rollout_view as view
from droidfleet_controller.cli.rollout_watching import LINE_S, Progress, Until, enough, follow
from droidfleet_controller.rollouts.planner.advance import GATE_PAUSES
from support.fake_rollouts import FAILED, SKIPPED, SUCCEEDED, failure, plan, rollout, wave

RUNNING = rollout_pb2.ROLLOUT_STATE_RUNNING
PAUSED = rollout_pb2.ROLLOUT_STATE_PAUSED
APPROVAL = rollout_pb2.ROLLOUT_STATE_AWAITING_APPROVAL
CANCELLING = rollout_pb2.ROLLOUT_STATE_CANCELLING
OVER = rollout_pb2.ROLLOUT_STATE_SUCCEEDED
CLOSED = rollout_pb2.WAVE_STATE_CLOSED


def text_of(renderable: RenderableType, *, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


class Time:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# Lines.


def test_the_same_version_twice_is_worth_no_line() -> None:
    progress = Progress()
    assert progress.lines(rollout(RUNNING, wave(running=2)))
    assert progress.lines(rollout(RUNNING, wave(running=2))) == []


def test_counts_wait_for_their_time_and_states_do_not() -> None:
    time = Time()
    progress = Progress(monotonic=time)
    progress.lines(rollout(RUNNING, wave(running=4)))
    assert progress.lines(rollout(RUNNING, wave(running=3, outcomes={SUCCEEDED: 1}))) == []
    time.now = LINE_S
    assert progress.lines(rollout(RUNNING, wave(running=2, outcomes={SUCCEEDED: 2}))) == [
        "wave 1: 2 of 10 done: 2 succeeded; 2 going on"
    ]
    assert progress.lines(rollout(PAUSED, wave(running=2, outcomes={SUCCEEDED: 2}), reason="by ann")) == [
        "PAUSED: by ann"
    ]


def test_closed_waves_are_not_mentioned() -> None:
    lines = Progress().lines(rollout(RUNNING, wave(1, running=1), wave(2, CLOSED)))
    assert not any("wave 2" in line for line in lines)


def test_a_reason_to_wait_is_told_once_and_again_when_it_comes_back() -> None:
    progress = Progress()

    def seen(*whys: str) -> list[str]:
        item = rollout(RUNNING)
        for why in whys:
            item.waits.add(why=why, sentence=f"for {why}")
        return [line for line in progress.lines(item) if line.startswith("waits")]

    assert seen("RATE", "RESULTS") == ["waits: for RATE"]
    assert seen("RATE") == []
    assert seen() == []
    assert seen("RATE") == ["waits: for RATE"]


def test_a_dry_run_is_called_so() -> None:
    assert "dry run OPEN" in Progress().lines(rollout(RUNNING, wave(0, members=1, running=1)))


@pytest.mark.parametrize(
    ("state", "until", "is_enough"),
    [
        (OVER, Until.ENDED, True),
        (PAUSED, Until.ENDED, False),
        (PAUSED, Until.HELD, True),
        (APPROVAL, Until.HELD, True),
        (RUNNING, Until.HELD, False),
        (CANCELLING, Until.HELD, False),
    ],
)
def test_how_long_to_watch(state: rollout_pb2.RolloutState.ValueType, until: Until, is_enough: bool) -> None:
    assert enough(rollout(state), until) is is_enough


def test_following_returns_what_was_seen_last(capsys: pytest.CaptureFixture[str]) -> None:
    items = [rollout(RUNNING), rollout(OVER, version=9)]
    assert follow(iter(items), rollout(RUNNING)).version == 9
    assert capsys.readouterr().err.splitlines() == ["RUNNING", "SUCCEEDED"]


# The view.


@given(st.lists(st.integers(0, 10_000), max_size=5), st.integers(0, 10_000), st.integers(6, 60))
def test_a_bar_is_as_wide_as_it_is_asked_to_be(counts: list[int], rest: int, width: int) -> None:
    made = view.bar([(count, "green") for count in counts], total=sum(counts) + rest, width=width)
    assert len(made.plain) == width


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=5))
def test_every_part_that_is_there_shows_in_a_bar(counts: list[int]) -> None:
    made = view.bar([(count, f"color({place})") for place, count in enumerate(counts)], total=10_000 * 6, width=24)
    assert {f"color({place})" for place in range(len(counts))} <= {str(span.style) for span in made.spans}


def test_waves_count_every_member_once() -> None:
    item = wave(members=20, outcomes={SUCCEEDED: 5, FAILED: 2, SKIPPED: 1}, running=3, retrying=1)
    row = next(line for line in text_of(view.waves([item])).splitlines() if line.startswith("1 "))
    assert row.split()[3:8] == ["8/20", "5", "2", "4", "8"]


@pytest.mark.parametrize("width", [60, 80, 104, 200])
def test_the_view_fits_the_screen_and_keeps_the_gate(width: int) -> None:
    item = rollout(RUNNING, wave(1, rollout_pb2.WAVE_STATE_PASSED), wave(2, running=3), wave(3, CLOSED))
    shown = text_of(view.rollout(item, width=width), width=width)
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "advances at 9 of 10" in " ".join(shown.split())


@pytest.mark.parametrize("open_one", [1, 25, 50])
def test_a_low_screen_shows_the_waves_around_the_open_one(open_one: int) -> None:
    states = {True: rollout_pb2.WAVE_STATE_PASSED, False: CLOSED}
    items = [
        wave(number, rollout_pb2.WAVE_STATE_OPEN if number == open_one else states[number < open_one])
        for number in range(1, 51)
    ]
    shown = text_of(view.rollout(rollout(RUNNING, *items), width=120, height=40))
    assert len(shown.splitlines()) <= 40
    assert any(line.split()[:2] == [str(open_one), "OPEN"] for line in shown.splitlines())
    assert "more waves" in shown


def test_the_view_says_why_nothing_starts_and_how_far_an_end_is_confirmed() -> None:
    item = rollout(CANCELLING, wave(running=3))
    item.waits.add(why="CONFIRMATION", sentence="3 have not confirmed.")
    item.confirmation.asked, item.confirmation.confirmed, item.confirmation.offline = 40, 37, 3
    item.failures.append(failure())
    shown = text_of(view.rollout(item, width=120))
    for expected in (
        "3 have not confirmed.",
        "confirmed on 37 of 40, 3 offline",
        "In the last minute 4 began and 2 ended.",
        "stopped",
        "droidfleet rollout abort ro-1",
    ):
        assert expected in shown


@pytest.mark.parametrize("state", [value for value in rollout_pb2.RolloutState.values() if value])
def test_every_state_has_something_to_do_next(state: rollout_pb2.RolloutState.ValueType) -> None:
    assert view.what_next(rollout(state))


@pytest.mark.parametrize(
    ("code", "word"),
    [("TOO_MANY_FAILURES", "resume"), ("BELOW_THRESHOLD", "promote"), ("PAUSED_BY_OPERATOR", "resume")],
)
def test_a_pause_names_the_way_out_of_it(code: str, word: str) -> None:
    hints = " ".join(view.what_next(rollout(PAUSED, reason_code=code)))
    assert f"rollout {word} ro-1" in hints
    assert ("rollout resume" in hints) is (word == "resume")


def test_pauses_by_a_gate_are_those_of_the_planner() -> None:
    assert {code.value for code in GATE_PAUSES} == view.GATE_PAUSES


def test_texts_from_elsewhere_cannot_act_on_the_terminal() -> None:
    item = rollout(PAUSED, reason="\x1b[2J[red]x[/red]")
    assert "\\e[2J[red]x[/red]" in text_of(view.rollout(item, width=120))


def test_a_plan_shows_as_many_phones_as_fit_and_counts_the_others() -> None:
    item = plan().plan
    del item.waves[1].devices[:]
    item.waves[1].devices.extend(f"phone-{number:05}" for number in range(9_000))
    shown = text_of(view.plan(item, example=False), width=160)
    assert "phone-00000, phone-00001, phone-00002, phone-00003 and 8996 more" in shown


def test_a_plan_by_hash_says_that_its_phones_are_an_example() -> None:
    assert "For example" in text_of(view.plan(plan().plan, example=True))
