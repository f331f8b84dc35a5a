"""What holds for every exploration that has ended, whatever its model did."""

from __future__ import annotations

from collections.abc import Sequence

from droidfleet_designer.log import Ended, Entry, Spoke, ToolBegan, ToolEnded
from support.explorations import Trip


def assert_whole(trip: Trip, end: Ended) -> None:
    """One end, which is the last entry; within the budget; each call begun and answered once at most; the phone free,
    and nothing done on it that cannot be undone."""
    entries = trip.log.kept
    assert [each for each in entries if isinstance(each, Ended)] == [end] == entries[-1:]
    began = entries[0]
    assert began.kind == "began"
    assert end.spent_tokens <= began.max_tokens
    assert began.max_money is None or (end.spent_money or 0) <= began.max_money
    spoken = [each for each in entries if isinstance(each, Spoke)]
    assert len(spoken) <= began.max_turns
    assert sum(isinstance(each, ToolEnded) for each in entries) <= sum(len(each.calls) for each in spoken)
    assert all(_begins_with(each, ToolEnded) for each in _from_each(entries, ToolBegan))
    assert trip.scripted.holder == ""
    assert not any("Delete" in done or "Send" in done for done in trip.scripted.done)


def _from_each(entries: Sequence[Entry], kind: type[Entry]) -> list[Sequence[Entry]]:
    """What follows each entry of a kind, but for questions to a person and what was proposed."""
    plain = [each for each in entries if each.kind not in ("approval_asked", "approval_answered", "proposed")]
    return [plain[place + 1 :] for place, each in enumerate(plain) if isinstance(each, kind)]


def _begins_with(entries: Sequence[Entry], kind: type[Entry]) -> bool:
    return isinstance(entries[0], kind)
