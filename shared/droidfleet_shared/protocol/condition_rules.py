"""The rules of conditions, over the raw tree: exactly one kind, a bounded size, comparisons beside an output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.condition import COMPARISONS, KINDS, MAX_CONDITION_DEPTH, MAX_LEAVES
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.selector_rules import Sight, readable_findings, selector_findings
from droidfleet_shared.protocol.wording import listed, name

CONDITION_FIELDS = ("when", "condition", "until")
"""The fields of steps that hold a condition; SCROLL's `until` is a selector. `after` holds one in `condition`."""

_EXAMPLE = 'For example `{"visible": {"text": "Done"}}`.'
_COMPARED = 'For example `{"output": "total", "equals": "19.90"}`.'
_EVERY_KIND = listed([name(kind) for kind in KINDS], "or")
_EVERY_COMPARISON = listed([name(each) for each in COMPARISONS], "or")


@dataclass(slots=True)
class _Size:
    leaves: int = 0


def conditions_of(place: Place, step: dict[str, Json]) -> Iterator[tuple[Place, Json]]:
    """The conditions of a raw step and their places."""
    for field in CONDITION_FIELDS:
        if field in step and not (field == "until" and step.get("action") == "SCROLL"):
            yield (*place, field), step[field]
    after = step.get("after")
    if isinstance(after, dict) and "condition" in after:
        yield (*place, "after", "condition"), after["condition"]


def condition_findings(place: Place, condition: Json) -> Iterator[Finding]:
    """Everything wrong with a condition and what is in it. Nothing when it is not an object."""
    size = _Size()
    yield from _visit(place, condition, 1, size)
    if size.leaves > MAX_LEAVES:
        message = f"the condition has {size.leaves} leaves; at most {MAX_LEAVES} are accepted"
        yield Finding(place, ValidationCode.TOO_DEEP, message, "Split the decision over several steps.")


def _visit(place: Place, condition: Json, depth: int, size: _Size) -> Iterator[Finding]:
    if not isinstance(condition, dict):
        return
    if depth > MAX_CONDITION_DEPTH:
        message = f"conditions are nested more than {MAX_CONDITION_DEPTH} deep"
        yield Finding(place, ValidationCode.TOO_DEEP, message, "Write it with fewer levels.")
        return
    kinds = [kind for kind in KINDS if condition.get(kind) is not None]
    yield from _kinds(place, condition, kinds)
    yield from _comparison(place, condition)
    if not {"all", "any", "not"} & {*kinds}:
        size.leaves += 1
    for field in ("visible", "gone"):
        yield from selector_findings((*place, field), condition.get(field), sight=Sight.SEE)
    for field in ("all", "any"):
        parts = condition.get(field)
        for position, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _visit((*place, field, position), part, depth + 1, size)
    yield from _visit((*place, "not"), condition.get("not"), depth + 1, size)


def _kinds(place: Place, condition: dict[str, Json], kinds: list[str]) -> Iterator[Finding]:
    if not kinds and not any(kind in condition for kind in KINDS):
        message = f"a condition must have one of {_EVERY_KIND}"
        yield Finding(place, ValidationCode.MISSING_FIELD, message, f"Add one. {_EXAMPLE}")
    elif len(kinds) > 1:
        found = listed([name(kind) for kind in kinds])
        message = f"a condition has one kind, and {found} stand together"
        parts = ", ".join(f'{{"{kind}": ...}}' for kind in kinds)
        yield Finding(place, ValidationCode.CONFLICTING_FIELDS, message, f'To ask for each: `{{"all": [{parts}]}}`.')


def _comparison(place: Place, condition: dict[str, Json]) -> Iterator[Finding]:
    comparisons = [each for each in COMPARISONS if condition.get(each) is not None]
    if condition.get("output") is None:
        if comparisons and "output" not in condition:
            message = f"{listed([name(each) for each in comparisons])} needs `output`, the value to compare"
            yield Finding(place, ValidationCode.MISSING_FIELD, message, f"Add it. {_COMPARED}")
    elif not comparisons and not any(each in condition for each in COMPARISONS):
        message = f"a condition with `output` must have one of {_EVERY_COMPARISON}"
        yield Finding(place, ValidationCode.MISSING_FIELD, message, f"Add one. {_COMPARED}")
    elif len(comparisons) > 1:
        message = f"an output is compared in one way, and {listed([name(each) for each in comparisons])} stand together"
        yield Finding(place, ValidationCode.CONFLICTING_FIELDS, message, f"Keep one of them. {_COMPARED}")
    if isinstance(part := condition.get("contains"), str):
        yield from readable_findings((*place, "contains"), part)
