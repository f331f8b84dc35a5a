"""What a tool is, and the five ways in which a call of one ends."""

from __future__ import annotations

from dataclasses import dataclass

from droidfleet_designer.log import OutcomeKind
from droidfleet_designer.model.port import ToolSpec
from droidfleet_designer.ports import Shot
from droidfleet_shared.screen.snapshot import Snapshot

__all__ = ["Outcome", "OutcomeKind", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call. ``text``: for the model, what a screen said in it quoted; ``code``: a stable word when it is
    no result; ``snapshot`` and ``shot``: what was seen; ``why``: of an approval that is needed; ``ends``: the tool was
    terminal and did its work, so the exploration is over."""

    kind: OutcomeKind
    text: str
    code: str = ""
    snapshot_id: str = ""
    snapshot: Snapshot | None = None
    shot: Shot | None = None
    why: str = ""
    ends: bool = False
