"""The rules of a document that look further than one field, over the raw tree.

They do not need the models to have accepted anything: each looks only at what it is about, so that a document with a
mistake in one place is still checked everywhere else. What is not of the expected type is left to `structure`.
"""

from __future__ import annotations

from collections.abc import Iterator

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place, pointer
from droidfleet_shared.protocol.references import unknown_references
from droidfleet_shared.protocol.selector_rules import selector_findings
from droidfleet_shared.protocol.steps.base import DEFAULT_TIMEOUT_MS, STEP_LISTS
from droidfleet_shared.protocol.steps.flow import MAX_DEPTH, MAX_STEPS
from droidfleet_shared.protocol.steps.touching import DEFAULT_INTERVAL_MS, MAX_TIMES
from droidfleet_shared.protocol.wording import name

RawStep = tuple[Place, dict[str, Json]]
"""A step as written, and its place."""

SELECTOR_FIELDS = ("selector", "unlessVisible")
"""The fields of steps that hold a selector; a test compares them with the models."""


def rule_findings(document: Json) -> list[Finding]:
    """Everything that the rules find wrong, in no particular order."""
    findings = [*_texts_and_nulls(document)]
    if not isinstance(document, dict):
        return findings
    steps, list_findings = _steps(document)
    findings += list_findings
    findings += _duplicate_ids(steps)
    for place, step in steps:
        findings += _activity_needs_package(place, step)
        findings += _taps_fit_into_timeout(place, step)
        for field in SELECTOR_FIELDS:
            findings += selector_findings((*place, field), step.get(field))
    return findings


def raw_steps(document: Json) -> list[RawStep]:
    """Every step of the tree that is an object, in document order."""
    return _steps(document)[0] if isinstance(document, dict) else []


def _steps(document: dict[str, Json]) -> tuple[list[RawStep], list[Finding]]:
    steps: list[RawStep] = []
    findings: list[Finding] = []
    counted = 0

    def visit(place: Place, holder: dict[str, Json], depth: int) -> None:
        nonlocal counted
        for field in STEP_LISTS if place else ("steps",):
            listed = holder.get(field)
            if not isinstance(listed, list):
                continue
            here = (*place, field)
            if depth > MAX_DEPTH:
                findings.append(_too_deep(here))
                continue
            if not listed:
                findings.append(_empty(here))
            counted += len(listed)
            for position, step in enumerate(listed):
                if isinstance(step, dict):
                    steps.append(((*here, position), step))
                    visit((*here, position), step, depth + 1)

    visit((), document, 1)
    if counted > MAX_STEPS:
        findings.append(
            Finding(
                ("steps",),
                ValidationCode.TOO_MANY_STEPS,
                f"the task has {counted} steps; at most {MAX_STEPS} are accepted",
                "Split it into several tasks.",
            )
        )
    return steps, findings


def _empty(place: Place) -> Finding:
    hint = 'For example `"steps": [{"id": "back", "action": "BACK"}]`.'
    return Finding(place, ValidationCode.EMPTY_STEPS, "the list has no steps; expected at least one", hint)


def _too_deep(place: Place) -> Finding:
    return Finding(place, ValidationCode.TOO_DEEP, f"steps are nested more than {MAX_DEPTH} deep", "Nest less deeply.")


def _duplicate_ids(steps: list[RawStep]) -> Iterator[Finding]:
    first: dict[str, Place] = {}
    for place, step in steps:
        identity = step.get("id")
        if not isinstance(identity, str):
            continue
        if identity in first:
            yield Finding(
                (*place, "id"),
                ValidationCode.DUPLICATE_ID,
                f"the id {name(identity)} is used already, by the step at {pointer(first[identity])}",
                "Give each step an id of its own; results and jumps refer to it.",
            )
        else:
            first[identity] = place


def _activity_needs_package(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    if step.get("activityName") is not None and step.get("packageName") is None:
        yield Finding(
            place,
            ValidationCode.MISSING_FIELD,
            "a step with `activityName` must have `packageName` too; an activity is not enough on its own",
            'Add it; for example `"packageName": "com.android.settings"`.',
        )


def _taps_fit_into_timeout(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    if step.get("action") != "CLICK":
        return
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


def _texts_and_nulls(document: Json) -> Iterator[Finding]:
    todo: list[tuple[Place, Json]] = [((), document)]
    while todo:
        place, holder = todo.pop()
        inside = holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
        for token, value in inside:
            if isinstance(value, str):
                if "${" in value:
                    yield from unknown_references((*place, token), value)
            elif isinstance(value, dict | list):
                todo.append(((*place, token), value))
            elif value is None:
                message = "found `null`; no field of a task may be null"
                hint = "Leave the field out instead of writing `null`."
                yield Finding((*place, token), ValidationCode.WRONG_TYPE, message, hint)
