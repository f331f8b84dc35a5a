"""The board of watched executions: what counts as a change, what is shown when not all fits."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType

from droidfleet.v1 import execution_pb2
from droidfleet_controller.cli.watching import Board
from support.fake_controller import execution

RUNNING = execution_pb2.EXECUTION_STATE_RUNNING
QUEUED = execution_pb2.EXECUTION_STATE_QUEUED
FAILED = execution_pb2.EXECUTION_STATE_FAILED
SUCCEEDED = execution_pb2.EXECUTION_STATE_SUCCEEDED


def text_of(renderable: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_summary_counts_what_ended_and_what_goes_on() -> None:
    states = [SUCCEEDED, SUCCEEDED, FAILED, RUNNING, QUEUED]
    board = Board(execution(f"phone-{number}", state) for number, state in enumerate(states))
    assert board.summary() == "3 of 5 done: 1 failed, 2 succeeded; 1 queued, 1 running"


def test_nothing_watched_is_no_success() -> None:
    assert not Board().all_succeeded


def test_only_another_state_is_worth_a_line() -> None:
    board = Board([execution(state=QUEUED)])
    assert board.update(execution(state=RUNNING, version=2))
    assert not board.update(execution(state=RUNNING, steps_done=2, version=3))


def test_rows_that_go_on_come_first_when_not_all_fit() -> None:
    done = [execution(f"done-{number}") for number in range(30)]
    board = Board([*done, execution("late", RUNNING)])
    shown = text_of(board.render(height=10))
    assert "late" in shown
    assert "... and 25 more" in shown
    assert len(shown.splitlines()) <= 10


def test_rows_keep_their_order_when_all_fit() -> None:
    board = Board([execution("a"), execution("b", RUNNING), execution("c")])
    board.update(execution("a", FAILED, version=2))
    rows = [line.split()[0] for line in text_of(board.render(height=40)).splitlines()[2:5]]
    assert rows == ["a", "b", "c"]


def test_waiting_execution_says_that_its_agent_is_offline() -> None:
    board = Board([execution("a", QUEUED)], notes={"a": "agent offline"})
    assert "agent offline" in text_of(board.render(height=40))


def test_time_runs_from_when_the_agent_took_it() -> None:
    now = [100.0]
    board = Board([execution("a", QUEUED)], monotonic=lambda: now[0])
    now[0] = 150.0
    board.update(execution("a", RUNNING, version=2))
    now[0] = 152.5
    assert "2.5 s" in text_of(board.render(height=40))


def test_step_ids_cannot_act_on_the_terminal() -> None:
    board = Board([execution("a", RUNNING, step="\x1b[2J[red]x[/red]")])
    assert "\\e[2J[red]x[/red]" in text_of(board.render(height=40))
