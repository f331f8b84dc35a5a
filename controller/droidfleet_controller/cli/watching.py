"""Watching executions: live rows on a terminal, a line for each change elsewhere, a JSON line for programs.

`Board` holds the newest version of each execution and renders it; `follow` feeds it from a stream and never decides
anything about the fleet.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from droidfleet_controller.cli import documents, tables
from droidfleet_controller.cli.output import console, note
from droidfleet_controller.cli.text import cell, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from droidfleet.v1 import execution_pb2

BAR_WIDTH = 20
REFRESH_PER_S = 8
MARGIN_LINES = 4
"""Lines of the terminal kept free of rows: summary, header, what is left out, prompt."""

WAITING = frozenset({"QUEUED", "ASSIGNED"})
GOING_ON = frozenset({"ACCEPTED", "RUNNING", "PAUSED"})


class Board:
    """The newest version of each watched execution, in the order they were first seen.

    ``notes`` says by device why an execution may have to wait (its agent is offline). Rendered from another thread than
    the one that updates it: rows are replaced, never changed.
    """

    def __init__(
        self,
        executions: Iterable[execution_pb2.Execution] = (),
        *,
        notes: Mapping[str, str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executions: dict[str, execution_pb2.Execution] = {}
        self._going_since: dict[str, float] = {}
        self._notes = dict(notes or {})
        self._monotonic = monotonic
        for execution in executions:
            self.update(execution)

    def update(self, execution: execution_pb2.Execution) -> bool:
        """Takes a newer version; whether its state changed, which is worth a line where there is no live view."""
        before = self._executions.get(execution.execution_id)
        self._executions[execution.execution_id] = execution
        if documents.state_of(execution) in GOING_ON:
            self._going_since.setdefault(execution.execution_id, self._monotonic())
        return before is None or before.state != execution.state

    @property
    def executions(self) -> list[execution_pb2.Execution]:
        """All of them as they are."""
        return list(self._executions.values())

    @property
    def all_succeeded(self) -> bool:
        """Whether there is at least one and every one of them succeeded."""
        return bool(self._executions) and all(documents.state_of(item) == "SUCCEEDED" for item in self.executions)

    def summary(self) -> str:
        """``3 of 5 done: 2 succeeded, 1 failed; 2 running``."""
        counts = Counter(documents.state_of(item) for item in self.executions)
        done = {state: count for state, count in counts.items() if state in documents.TERMINAL}
        going = {state: count for state, count in counts.items() if state not in documents.TERMINAL}
        text = f"{sum(done.values())} of {counts.total()} done"
        if done:
            text += ": " + _counted(done)
        return text + (f"; {_counted(going)}" if going else "")

    def line(self, execution: execution_pb2.Execution) -> str:
        """One change as a line: ``phone-01 FAILED TARGET_AMBIGUOUS``."""
        state = documents.state_of(execution)
        what = "" if state in GOING_ON else self._what(execution)
        return f"{execution.device} {state} {what}".rstrip()

    def render(self, *, height: int) -> Group:
        """The live view in at most ``height`` lines: rows that go on come first when not all fit."""
        items = self.executions
        room = max(1, height - MARGIN_LINES)
        shown = items if len(items) <= room else sorted(items, key=_rank)[:room]
        rows = tables.table("Device", "State", "Steps", "", "Time", "Step")
        for item in shown:
            state = documents.state_of(item)
            rows.add_row(
                cell(item.device),
                tables.state(state),
                _bar(item),
                cell(tables.progress(item)),
                cell(self._time(item)),
                cell(self._what(item)),
            )
        hidden = len(items) - len(shown)
        more = [cell(f"... and {hidden} more", "dim")] if hidden else []
        return Group(rows, *more, cell(self.summary(), "bold"))

    def _time(self, item: execution_pb2.Execution) -> str:
        if item.HasField("result"):
            return duration(documents.milliseconds(item.result.duration) / 1000)
        since = self._going_since.get(item.execution_id)
        return "" if since is None else duration(self._monotonic() - since)

    def _what(self, item: execution_pb2.Execution) -> str:
        state = documents.state_of(item)
        if state in WAITING:
            return self._notes.get(item.device, "")
        if state in documents.TERMINAL:
            return item.result.code if item.HasField("result") and not item.result.successful else item.reason
        if item.cancel_requested:
            return "cancel asked"
        return "pause asked" if item.pause_requested and documents.state_of(item) != "PAUSED" else item.current_step_id


def follow(stream: Iterable[execution_pb2.Execution], board: Board) -> None:
    """Updates the board until the stream ends and shows it meanwhile, on standard error."""
    with _shown(board) as changed:
        for execution in stream:
            if board.update(execution):
                changed(execution)


@contextmanager
def _shown(board: Board) -> Iterator[Callable[[execution_pb2.Execution], None]]:
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda execution: note(board.line(execution))
        return

    def render() -> Table | Group:
        return board.render(height=screen.height)

    with Live(console=screen, get_renderable=render, refresh_per_second=REFRESH_PER_S, transient=True):
        yield lambda execution: None  # the live view reads the board by itself


def _bar(item: execution_pb2.Execution) -> ProgressBar:
    """A loop's end is not known before it is there, so in one the bar only shows that something goes on."""
    if item.iteration and documents.state_of(item) in GOING_ON:
        return ProgressBar(total=None, pulse=True, width=BAR_WIDTH)
    return ProgressBar(total=max(1, item.step_count), completed=item.steps_done, width=BAR_WIDTH)


def _rank(execution: execution_pb2.Execution) -> int:
    """What is worth a line when there are too few: what goes on, then what waits, then what failed."""
    state = documents.state_of(execution)
    if state in GOING_ON:
        return 0
    if state in WAITING:
        return 1
    return 3 if state == "SUCCEEDED" else 2


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state.lower().replace('_', ' ')}" for state, count in sorted(counts.items()))
