"""Reads commands, runs each on the phone, and keeps what worked. For a person at a terminal, or a script on stdin.

A person is shown the screen and may try again; a script waits for the nodes it names, and ends at its first failure.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping

from droidfleet_controller.cli import screen_text
from droidfleet_controller.cli.commands.device import chosen
from droidfleet_controller.cli.live import LOOK_PAUSE_S, LiveDevice
from droidfleet_controller.cli.output import console, note
from droidfleet_controller.cli.recorder.commands import HELP, Action, Command, Help, Look, NodeWord, Quit, Undo, read
from droidfleet_controller.cli.recorder.recording import Planned, Recording
from droidfleet_controller.cli.screens import ScreenView, Seen
from droidfleet_shared.errors import DroidfleetError, NotFoundError, PreconditionError

SCRIPT_WAIT_S = 10.0
"""How long a script's node may take to come up; a person sees when it is there."""


class Loop:
    """One recording session on one device."""

    def __init__(self, device: LiveDevice, recording: Recording) -> None:
        self._device = device
        self._recording = recording
        self._person = sys.stdin.isatty()
        self._screen = console(stderr=True)

    def run(self) -> None:
        """Works until `q` or the end of the input.

        Raises:
            DroidfleetError: a script's command failed; the message begins with its line.
        """
        view = self._device.look_at_rest()
        number = 0
        self._show(view)
        while line := self._line():
            number += 1
            try:
                command = read(line)
                if isinstance(command, Quit):
                    return
                view = self._do(command, view)
            except DroidfleetError as error:
                if not self._person:
                    raise PreconditionError(
                        error.code, f"line {number}, {line.strip()[:80]!r}: {error.message}", hint=error.hint
                    ) from error
                note(f"{error.code}: {error.message}" + (f" {error.hint}" if error.hint else ""))

    def _line(self) -> str:
        if self._person:
            self._screen.print("number, command, ? for help: ", end="")
        return sys.stdin.readline()

    def _do(self, command: Command, view: ScreenView) -> ScreenView:
        """Carries out one command; returns the screen after it."""
        match command:
            case Help():
                note_lines(HELP)
                return view
            case Undo():
                step = self._recording.undo()
                note(f"took {step['id']!r} out; the phone stays as it is" if step else "nothing is recorded yet")
                return view
            case Quit() | Look():
                view = self._device.look()
            case _:
                view = self._act(command, view)
        self._show(view)
        return view

    def _act(self, action: Action, view: ScreenView) -> ScreenView:
        word = getattr(action, "node", None)
        choose: Mapping[NodeWord, Seen] = {}
        if isinstance(word, NodeWord):
            view, seen = self._node(word, view)
            choose = {word: seen}
        planned = self._recording.plan(action, view, choose)
        result = self._device.run(planned.run)
        if not result.successful:
            raise PreconditionError(result.code, result.message, hint="It was not recorded.")
        self._recording.add(planned)
        self._tell(planned, result.outputs_json)
        return self._device.look_at_rest()

    def _node(self, word: NodeWord, view: ScreenView) -> tuple[ScreenView, Seen]:
        deadline = time.monotonic() + (0 if self._person or word.number is not None else SCRIPT_WAIT_S)
        while True:
            try:
                return view, chosen(view, str(word.number)) if word.number is not None else view.one(word.text)
            except NotFoundError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(LOOK_PAUSE_S)
            view = self._device.look()

    def _tell(self, planned: Planned, outputs: str) -> None:
        step = planned.kept
        names = ("packageName",) if step["action"] == "OPEN" else ("selector", "key", "direction")
        told = [step[name] for name in names if name in step]
        what = " ".join(each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in told)
        note(f"{len(self._recording.steps):3}  {step['action']}  {what}".rstrip())
        if planned.note:
            note(f"     may not last: {planned.note}")
        if step["action"] == "EXTRACT_TEXT":
            note(f"     {outputs}")

    def _show(self, view: ScreenView) -> None:
        if self._person:
            self._screen.print(screen_text.heading(view))
            self._screen.print(screen_text.choices_table(view.choices()))


def note_lines(text: str) -> None:
    """Several lines for people."""
    for line in text.splitlines():
        note(line)
