"""The rules of a document that look further than one field, over the raw tree.

They do not need the models to have accepted anything: each looks only at what it is about, so that a document with a
mistake in one place is still checked everywhere else. What is not of the expected type is left to `structure`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from droidfleet_shared.protocol.action_rules import action_findings
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.condition_rules import condition_findings, conditions_of
from droidfleet_shared.protocol.expression_rules import expression_findings
from droidfleet_shared.protocol.flow_rules import RawStep, flow_findings
from droidfleet_shared.protocol.issues import MAX_ISSUES, Finding
from droidfleet_shared.protocol.output_rules import output_findings
from droidfleet_shared.protocol.pointers import Json, Place, pointer
from droidfleet_shared.protocol.references import known_names, reference_findings
from droidfleet_shared.protocol.selector_rules import Sight, selector_findings
from droidfleet_shared.protocol.steps.base import STEP_LISTS
from droidfleet_shared.protocol.steps.flow import MAX_DEPTH, MAX_STEPS
from droidfleet_shared.protocol.value_rules import artifact_findings, value_findings
from droidfleet_shared.protocol.wording import name

_TOUCHED = frozenset({"CLICK", "LONG_CLICK", "DRAG"})
"""Actions whose target may be a text, a picture or a point: they touch a place, whatever node is there."""

SELECTOR_FIELDS = ("selector", "unlessVisible", "until", "to", "requireVisible", "option")
"""The fields of steps that hold a selector; a test compares them with the models. `until` of REPEAT is a condition."""


def rule_findings(document: Json) -> list[Finding]:
    """Everything that the rules find wrong, in no particular order; of each kind no more than can be reported."""
    findings = _some(_nulls(document))
    if not isinstance(document, dict):
        return findings
    steps, list_findings = _steps(document)
    findings += list_findings
    findings += _some(_duplicate_ids(steps))
    findings += _some(flow_findings(steps))
    findings += _some(output_findings(steps))
    findings += _some(value_findings(document))
    findings += _some(artifact_findings(document, steps))
    findings += _some(reference_findings(document, known_names(document, steps)))
    findings += _some(expression_findings(document))
    findings += _some(_of_single_steps(steps))
    return findings


def _some(findings: Iterator[Finding]) -> list[Finding]:
    """At most one more than is reported: what comes after would take time, and be cut."""
    return list(itertools.islice(findings, MAX_ISSUES + 1))


def _of_single_steps(steps: list[RawStep]) -> Iterator[Finding]:
    for place, step in steps:
        yield from action_findings(place, step)
        for field in SELECTOR_FIELDS:
            if field != "until" or step.get("action") == "SCROLL":
                yield from selector_findings((*place, field), step.get(field), sight=_sight(step, field))
        for here, condition in conditions_of(place, step):
            yield from condition_findings(here, condition)
        for here, selector in _fields(place, step):
            yield from selector_findings(here, selector, sight=Sight.TREE)


def _sight(step: dict[str, Json], field: str) -> Sight:
    action = step.get("action")
    if field in ("unlessVisible", "until", "requireVisible"):
        return Sight.SEE
    if field == "selector" and action == "WAIT":
        return Sight.SEE
    touched = field in ("selector", "to") and isinstance(action, str) and action in _TOUCHED
    return Sight.TOUCH if touched else Sight.TREE


def _fields(place: Place, step: dict[str, Json]) -> Iterator[tuple[Place, Json]]:
    """The selectors in the fields of an EXTRACT."""
    fields = step.get("fields")
    for position, field in enumerate(fields if isinstance(fields, list) else ()):
        if isinstance(field, dict) and "selector" in field:
            yield (*place, "fields", position, "selector"), field["selector"]


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
    field = place[-1]
    hint = f'For example `"{field}": [{{"id": "back", "action": "BACK"}}]`.'
    if field == "else":
        hint += " Or leave it out."
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


def _nulls(document: Json) -> Iterator[Finding]:
    todo: list[tuple[Place, Json]] = [((), document)]
    while todo:
        place, holder = todo.pop()
        inside = holder.items() if isinstance(holder, dict) else enumerate(holder) if isinstance(holder, list) else ()
        for token, value in inside:
            if isinstance(value, dict | list):
                todo.append(((*place, token), value))
            elif value is None:
                message = "found `null`; no field of a task may be null"
                hint = "Leave the field out instead of writing `null`."
                yield Finding((*place, token), ValidationCode.WRONG_TYPE, message, hint)
