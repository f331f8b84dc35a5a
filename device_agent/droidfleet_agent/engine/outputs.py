"""Writes what steps read into the outputs of a run, within bounds: a loop that appends for a day must not fill it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from droidfleet_agent.engine.ending import StepFailed
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import OutputValue

MAX_OUTPUT = 16_384
"""Characters of one value. A text node of a real app holds less; a task's 200 outputs must fit its result."""

MAX_LIST = 5_000
"""Values of one output that is a list."""


def appended(outputs: Mapping[str, OutputValue], name: str, values: Sequence[str | None]) -> list[str | None]:
    """The output, a list also where it is none yet, with the values added.

    Raises:
        StepFailed: `ACTION_FAILED`, it would be too long.
    """
    before = outputs.get(name)
    earlier = [] if before is None else [before] if isinstance(before, str) else before
    return bounded(name, [*earlier, *values])


def bounded(name: str, values: list[str | None]) -> list[str | None]:
    """The values.

    Raises:
        StepFailed: `ACTION_FAILED`, there are too many.
    """
    if len(values) > MAX_LIST:
        raise StepFailed(
            StepCode.ACTION_FAILED,
            f"The output {name!r} would hold {len(values)} values; at most {MAX_LIST} are kept. Split the task.",
        )
    return values
