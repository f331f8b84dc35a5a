"""The rules of single actions that look at more than one field, over the raw tree."""

from __future__ import annotations

from collections.abc import Iterator

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.steps.base import DEFAULT_TIMEOUT_MS
from droidfleet_shared.protocol.steps.touching import (
    DEFAULT_DRAG_MS,
    DEFAULT_HOLD_MS,
    DEFAULT_INTERVAL_MS,
    DEFAULT_SWIPE_MS,
    DRAG_HOLD_MS,
    MAX_TIMES,
)
from droidfleet_shared.protocol.wording import listed, name

_HELD = {"LONG_CLICK": DEFAULT_HOLD_MS, "SWIPE": DEFAULT_SWIPE_MS, "DRAG": DEFAULT_DRAG_MS}
"""How long the finger stays down by default, by action."""

RESERVE_MS = 250
RESERVE_SHARE = 5
"""What an action must leave of its step's time (the smaller: 250 ms, or a fifth), as the engine keeps it."""


def action_findings(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    """Everything wrong with one step beyond single fields."""
    yield from _activity_needs_package(place, step)
    yield from _redo(place, step)
    match step.get("action"):
        case "CLICK":
            yield from _taps_fit(place, step)
        case "LONG_CLICK" | "SWIPE" | "DRAG" as action:
            yield from _gesture_fits(place, step, _HELD[str(action)])
    match step.get("action"):
        case "WAIT":
            example = 'For example `"condition": {"gone": {"text": "Loading"}}`.'
            yield from _one_of(place, step, ("selector", "condition"), "a `WAIT` step", example)
        case "DRAG":
            yield from _one_of(
                place, step, ("to", "byPercent"), "a `DRAG` step", 'For example `"to": {"text": "Trash"}`.'
            )
            yield from _moves(place, step)
        case "DELAY":
            yield from _delay(place, step)
        case "EXTRACT":
            yield from _extract(place, step)


def _activity_needs_package(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    if step.get("activityName") is not None and step.get("packageName") is None:
        yield Finding(
            place,
            ValidationCode.MISSING_FIELD,
            "a step with `activityName` must have `packageName` too; an activity is not enough on its own",
            'Add it; for example `"packageName": "com.android.settings"`.',
        )


def _redo(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    action = step.get("action")
    model = IMPLEMENTED_ACTIONS.get(action) if isinstance(action, str) else None
    if step.get("redo") is True and model is not None and not model.touches:
        message = f"`redo` says that repeating an action is harmless, and {name(str(action))} does nothing to the phone"
        hint = "Leave it out; to run steps again use REPEAT."
        yield Finding((*place, "redo"), ValidationCode.CONFLICTING_FIELDS, message, hint)


def _taps_fit(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    times = step.get("times", 1)
    interval = step.get("intervalMs", DEFAULT_INTERVAL_MS)
    timeout = step.get("timeoutMs", DEFAULT_TIMEOUT_MS)
    if type(times) is not int or type(interval) is not int or type(timeout) is not int:
        return
    pauses = (times - 1) * interval
    if pauses >= timeout > 0 and 1 <= times <= MAX_TIMES:
        yield Finding(
            place,
            ValidationCode.CONFLICTING_FIELDS,
            f"{times} taps with {interval} ms between them take at least {pauses} ms, and `timeoutMs` is {timeout}",
            "Make `intervalMs` shorter or `timeoutMs` longer.",
        )


def _gesture_fits(place: Place, step: dict[str, Json], default: int) -> Iterator[Finding]:
    held = step.get("durationMs", default)
    before = DRAG_HOLD_MS if step.get("action") == "DRAG" else 0
    timeout = step.get("timeoutMs", DEFAULT_TIMEOUT_MS)
    if type(held) is not int or type(timeout) is not int or not 0 < held <= 10_000 or timeout <= 0:
        return
    needed = before + held + min(RESERVE_MS, timeout // RESERVE_SHARE)
    if needed > timeout:
        yield Finding(
            place,
            ValidationCode.CONFLICTING_FIELDS,
            f"the finger stays down for {before + held} ms, and `timeoutMs` is {timeout}, with looking and answering",
            "Make `durationMs` shorter or `timeoutMs` longer.",
        )


def _one_of(
    place: Place, step: dict[str, Json], fields: tuple[str, str], around: str, example: str
) -> Iterator[Finding]:
    given = [field for field in fields if field in step]
    words = listed([name(field) for field in fields], "or")
    if not given:
        yield Finding(place, ValidationCode.MISSING_FIELD, f"{around} must have {words}", f"Add one. {example}")
    elif len(given) > 1:
        message = f"{around} has {words}, not both"
        yield Finding(place, ValidationCode.CONFLICTING_FIELDS, message, "Keep one or the other.")


def _moves(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    offset = step.get("byPercent")
    nowhere = isinstance(offset, dict) and offset.keys() <= {"x", "y"} and not any(offset.values())
    if nowhere or ("to" in step and isinstance(step["to"], dict) and step["to"] == step.get("selector")):
        message = "the drag ends where it starts"
        hint = "Name another node in `to`, or a distance in `byPercent`."
        yield Finding(place, ValidationCode.CONFLICTING_FIELDS, message, hint)


def _delay(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    least, most = step.get("minMs"), step.get("maxMs")
    if type(least) is int and type(most) is int and most < least:
        message = f"`maxMs` is {most} and less than `minMs`, which is {least}"
        yield Finding(place, ValidationCode.CONFLICTING_FIELDS, message, "Exchange the two.")


def _extract(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    fields = step.get("fields")
    seen: set[str] = set()
    for position, field in enumerate(fields if isinstance(fields, list) else ()):
        output = field.get("outputField") if isinstance(field, dict) else None
        if isinstance(output, str):
            if output in seen:
                message = f"{name(output)} is written by a field before this one"
                here = (*place, "fields", position, "outputField")
                yield Finding(here, ValidationCode.DUPLICATE_ID, message, "Give each field an output of its own.")
            seen.add(output)
    if "maxItems" in step and step.get("all") is not True:
        message = "`maxItems` bounds the rows of `all`, and `all` is not `true`"
        hint = 'Add `"all": true` or leave `maxItems` out.'
        yield Finding((*place, "maxItems"), ValidationCode.CONFLICTING_FIELDS, message, hint)
