"""Watching a rollout: a live view on a terminal, lines of progress elsewhere. Decides nothing about the fleet."""

from __future__ import annotations

import time
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING

from rich.live import Live

from droidfleet_controller.cli import rollout_documents as documents
from droidfleet_controller.cli import rollout_view as view
from droidfleet_controller.cli.output import console, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import RenderableType

    from droidfleet.v1 import rollout_pb2

REFRESH_PER_S = 4
"""The controller sends no more versions than that."""

LINE_S = 2.0
"""Between two lines that only count; what changes otherwise has its line at once."""


CLOSED = "CLOSED"

SAID_OTHERWISE = frozenset({"RESULTS", view.SAID_BY_THE_STATE})
"""Reasons to wait that counts and states tell."""


class Until(StrEnum):
    """How long to watch."""

    ENDED = "ended"
    """Until the rollout has ended."""
    HELD = "held"
    """Until it has ended, or nothing more starts without a person."""


def enough(item: rollout_pb2.Rollout, until: Until) -> bool:
    """Whether there is nothing more to wait for."""
    state = documents.rollout_state(item)
    return state in documents.TERMINAL or (until is Until.HELD and state in documents.HELD)


class Progress:
    """What is worth a line, as versions of one rollout come in."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._said: dict[str, str] = {}
        self._waits: set[str] = set()
        self._counted_at = float("-inf")

    def lines(self, item: rollout_pb2.Rollout) -> list[str]:
        """The lines that this version adds: states and reasons when they change, counts now and then."""
        found = self._changed("state", _state_line(item))
        for wave in item.waves:
            state = documents.wave_state(wave)
            found += self._changed(f"state of {wave.number}", "" if state == CLOSED else f"{_wave_of(wave)} {state}")
        found += [f"waits: {wait.sentence}" for wait in item.waits if wait.why not in self._waits | SAID_OTHERWISE]
        self._waits = {wait.why for wait in item.waits}
        found += self._changed("confirmation", view.confirmation(item))
        now = self._monotonic()
        if found or now - self._counted_at >= LINE_S:
            counts = [line for wave in item.waves for line in self._changed(f"count {wave.number}", _count_line(wave))]
            if counts:
                self._counted_at = now
            found += counts
        return found

    def _changed(self, what: str, line: str) -> list[str]:
        if not line or self._said.get(what) == line:
            return []
        self._said[what] = line
        return [line]


def follow(
    stream: Iterable[rollout_pb2.Rollout], first: rollout_pb2.Rollout, *, until: Until = Until.ENDED
) -> rollout_pb2.Rollout:
    """Shows the rollout on standard error until the stream ends or it is enough; returns it as it was last seen."""
    with _shown(first) as changed:
        item = first
        for item in stream:
            changed(item)
            if enough(item, until):
                break
    return item


@contextmanager
def _shown(first: rollout_pb2.Rollout) -> Iterator[Callable[[rollout_pb2.Rollout], None]]:
    screen = console(stderr=True)
    if not screen.is_terminal:
        progress = Progress()

        def said(item: rollout_pb2.Rollout) -> None:
            for line in progress.lines(item):
                note(line)

        yield said
        return
    newest = [first]

    def render() -> RenderableType:
        return view.rollout(newest[0], width=screen.width, height=screen.height)

    def changed(item: rollout_pb2.Rollout) -> None:
        newest[0] = item

    with Live(console=screen, get_renderable=render, refresh_per_second=REFRESH_PER_S, transient=True):
        yield changed


def _state_line(item: rollout_pb2.Rollout) -> str:
    reason = item.reason or item.reason_code
    return f"{documents.rollout_state(item)}{f': {reason}' if reason else ''}"


def _wave_of(wave: rollout_pb2.Wave) -> str:
    return "dry run" if wave.number == view.DRY_RUN else f"wave {wave.number}"


def _count_line(wave: rollout_pb2.Wave) -> str:
    """``wave 2: 12 of 40 done: 11 succeeded, 1 failed; 10 going on``; empty while nothing of it was started."""
    outcomes = documents.outcomes_of(wave)
    going = view.live_of(wave) + wave.retrying
    if not outcomes and not going:
        return ""
    ended = ", ".join(f"{count} {outcome.lower().replace('_', ' ')}" for outcome, count in sorted(outcomes.items()))
    text = f"{_wave_of(wave)}: {sum(outcomes.values())} of {wave.members} done"
    return f"{text}{f': {ended}' if ended else ''}{f'; {going} going on' if going else ''}"
