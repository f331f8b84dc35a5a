"""What a run leaves behind, so that another process can go on with it: the way it came, in order.

A run is walked again along its trail: a step that ended is not done again but has the result that it had, a decision
that was taken on a look is not taken again, and random choices follow from the seed. Where the trail ends the run goes
on; the step that was open there is begun anew, unless it had told the phone something: that one is in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from droidfleet_shared.clock import Uptime
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import OutputValue, StepResult


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True)


class Began(_Entry):
    """The run began, with this seed of its random choices. Always the first."""

    kind: Literal["began"] = "began"
    seed: int
    at: datetime
    uptime: Uptime | None = None


class Ended(_Entry):
    """A step ended. ``counts_as``: its code for what follows, `TASK_TIMEOUT` where the task's own bound ended it;
    ``outputs``: those that it wrote, as they are now."""

    kind: Literal["ended"] = "ended"
    result: StepResult
    counts_as: StepCode
    outputs: dict[str, OutputValue] = Field(default_factory=dict)


class Decided(_Entry):
    """A container decided on a look: ``what`` (`when`, `condition`, `until`, `inFront`) was so, ``at`` this time."""

    kind: Literal["decided"] = "decided"
    path: str
    what: str
    holds: bool
    at: datetime
    uptime: Uptime | None = None


Entry = Annotated[Began | Ended | Decided, Field(discriminator="kind")]

_ENTRIES: TypeAdapter[Entry] = TypeAdapter(Entry)


def read_entry(text: str | bytes) -> Entry:
    """Reads what ``model_dump_json`` wrote.

    Raises:
        ValueError: it is none.
    """
    return _ENTRIES.validate_json(text)


class TrailLostError(DroidfleetError):
    """The trail does not lead through this task: a defect, or another version of the engine. Nothing is done then."""


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The step that had told the phone something when the process ended; ``dispatched``: how many times."""

    path: str
    dispatched: int


class Trail:
    """A trail while it is walked. Empty: the run is a new one.

    Raises:
        TrailLostError: it does not start with its beginning.
    """

    def __init__(self, entries: Sequence[Entry] = (), *, in_doubt: InDoubt | None = None) -> None:
        self._left = list(reversed(entries))
        self._in_doubt = in_doubt
        self.began: Began | None = None
        if self._left:
            first = self._left.pop()
            if not isinstance(first, Began):
                raise _lost("it has no beginning")
            self.began = first

    @property
    def in_doubt(self) -> InDoubt | None:
        """The step in doubt, while it is not settled."""
        return self._in_doubt

    @property
    def leads_on(self) -> bool:
        """Whether the way further on is known: nothing is announced that was announced before."""
        return bool(self._left) or self._in_doubt is not None

    def ended(self, path: str, iteration: int) -> Ended | None:
        """How the step at this place ended, where that comes next; None: it has not, or first others in it have."""
        entry = self._left[-1] if self._left else None
        if not isinstance(entry, Ended) or (entry.result.path, entry.result.iteration) != (path, iteration):
            return None
        self._left.pop()
        return entry

    def decided(self, path: str, what: str) -> Decided | None:
        """What was decided here; None where the trail has ended.

        Raises:
            TrailLostError: it says something else.
        """
        if not self._left:
            return None
        entry = self._left.pop()
        if not isinstance(entry, Decided) or (entry.path, entry.what) != (path, what):
            raise _lost(f"{what} at {path} was not what came next")
        return entry

    def doubted(self, path: str) -> InDoubt | None:
        """To be asked before a step without others in it is really run: the doubt about it, which is then settled.

        Raises:
            TrailLostError: something is left that is not about this step, or another one is in doubt.
        """
        doubt = self._in_doubt
        if self._left or (doubt is not None and doubt.path != path):
            raise _lost(f"{path} was not what came next")
        self._in_doubt = None
        return doubt


def _lost(why: str) -> TrailLostError:
    return TrailLostError("TRAIL_LOST", f"what was written of the run does not lead through its task: {why}.")
