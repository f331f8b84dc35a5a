"""From a draft to the documents of a rollout and a schedule, and from places in these back to the draft. Pure.

The documents are read and checked as a person's are.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Draft, DraftSchedule, DraftTarget
from droidfleet_shared.errors import PreconditionError

NOW = "now"
"""`once` of a draft that a person starts."""

EVERY_PHONE = "name"
"""A query that holds on each: every phone has a name."""

_PLACES = {
    "/target/query": "/target/all",
    "/when": "/schedule",
    "/timeZone": "/schedule/timeZone",
}
"""Where what stands in the documents stands in the draft; everything else stands in the same place."""

Document = dict[str, JsonValue]


def rollout_document(
    draft: Draft, *, task_id: str, revision: int, inputs: Mapping[str, JsonValue] | None = None
) -> Document:
    """The rollout to the draft's target of the task that was accepted. ``inputs``: values for all phones."""
    return {
        "task": task_id,
        "revision": revision,
        "target": _target(draft.target),
        "retry": draft.retry.model_dump(by_alias=True),
        **({"inputs": dict(inputs)} if inputs else {}),
    }


def schedule_document(draft: Draft, *, name: str, rollout: Document) -> Document:
    """The schedule that begins ``rollout`` at the draft's times.

    Raises:
        PreconditionError: ``NO_TIMES``: the draft is for a person to start.
    """
    if starts_by_hand(draft.schedule):
        raise PreconditionError(
            "NO_TIMES", "the draft has no times: it is started by a person.", hint="Edit its schedule, or start it."
        )
    when = draft.schedule.model_dump(by_alias=True, exclude={"time_zone"}, exclude_none=True)
    return {"name": name, "rollout": rollout, "when": when, "timeZone": draft.schedule.time_zone}


def starts_by_hand(schedule: DraftSchedule) -> bool:
    """Whether there is nothing to schedule."""
    return schedule.once == NOW


def place_in_draft(path: str) -> str:
    """The place in a draft of something in its rollout's or its schedule's document, both JSON Pointers."""
    inner = path.removeprefix("/rollout")
    if inner.startswith("/target/devices"):
        return "/target/device"
    for place, ours in _PLACES.items():
        if inner == place or inner.startswith(f"{place}/"):
            return ours + inner.removeprefix(place)
    return inner


def _target(target: DraftTarget) -> Document:
    if target.device is not None:
        return {"devices": [target.device]}
    if target.group is not None:
        return {"group": target.group}
    return {"query": EVERY_PHONE}
