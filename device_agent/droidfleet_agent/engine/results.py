"""Keeps the step results of a run, the first and the last ones and failures between: a loop may make a million."""

from __future__ import annotations

from collections import deque

from droidfleet_shared.protocol.result import StepResult

FIRST = 200
"""As many as a task has steps: a task without loops is kept whole."""
LAST = 200
FAILURES = 50
"""Between the first and the last."""


class Results:
    """At most `FIRST` + `FAILURES` + `LAST` results, in the order in which the steps ended."""

    def __init__(self) -> None:
        self._first: list[StepResult] = []
        self._failures: list[StepResult] = []
        self._last: deque[StepResult] = deque()
        self.omitted = 0

    def add(self, result: StepResult) -> None:
        """Takes the result of a step that has just ended."""
        if len(self._first) < FIRST:
            self._first.append(result)
            return
        self._last.append(result)
        if len(self._last) > LAST:
            old = self._last.popleft()
            if not old.successful and len(self._failures) < FAILURES:
                self._failures.append(old)
            else:
                self.omitted += 1

    def kept(self) -> tuple[StepResult, ...]:
        """What the task's result shows."""
        return (*self._first, *self._failures, *self._last)
