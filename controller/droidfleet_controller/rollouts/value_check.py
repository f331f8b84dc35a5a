"""Whether every phone of a rollout has values that fit its task. Pure, but for giving way to others in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.tasks.values import own_values
from droidfleet_shared.protocol.pointers import Json, Place, pointer
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES
from droidfleet_shared.protocol.value_rules import value_findings
from droidfleet_shared.protocol.wording import name

AT_A_TIME = 250
"""Phones whose values are checked before others get their turn."""

MAX_NAMED = 50
"""Phones named in one issue; the others are counted."""


async def check_values(
    spec: RolloutSpec, body: str, document: Mapping[str, Json], phones: Sequence[str]
) -> list[SpecIssue]:
    """Everything that is wrong with the values of a rollout of the task ``body`` (``document`` is its tree): values
    that do not fit, each in its place, and for each input all of ``phones`` that lack it. No issue shows a value."""
    declared = document.get("inputs")
    inputs = declared if isinstance(declared, dict) else {}
    room = MAX_DOCUMENT_BYTES - len(body.encode())
    issues = list(_unfit(("inputs",), spec.inputs, inputs, room))
    for position, (device, own) in enumerate(spec.device_inputs.items()):
        if position % AT_A_TIME == 0:
            await asyncio.sleep(0)
        place = ("deviceInputs", device)
        issues.extend(_unfit(place, own, inputs, room))
        if _size({**spec.inputs, **own}) > room:
            issues.append(_too_large(place))
    issues.extend(_missing(spec, inputs, own_values(body).keys(), phones))
    return issues


def _unfit(place: Place, values: Mapping[str, Json], inputs: Mapping[str, Json], room: int) -> Iterator[SpecIssue]:
    for finding in value_findings({"inputs": dict(inputs), "inputValues": dict(values)}):
        if finding.place[0] == "inputValues":
            code = IssueCode.UNKNOWN_INPUT if finding.place[1] not in inputs else IssueCode(finding.code)
            yield SpecIssue(pointer((*place, *finding.place[1:])), code, finding.message, finding.hint)
    for each, value in values.items():
        if value is None:
            message = "found `null`, which is no value"
            yield SpecIssue(pointer((*place, each)), IssueCode.WRONG_TYPE, message, "Leave it out instead.")
    if _size(values) > room:
        yield _too_large(place)


def _too_large(place: Place) -> SpecIssue:
    message = f"with these values the task is larger than {MAX_DOCUMENT_BYTES // 1024} KiB"
    return SpecIssue(pointer(place), IssueCode.TOO_LARGE, message, "Shorten them.")


def _size(values: Mapping[str, Json]) -> int:
    return len(json.dumps(values, ensure_ascii=False).encode(errors="replace"))


def _missing(
    spec: RolloutSpec, inputs: Mapping[str, Json], given: Collection[str], phones: Sequence[str]
) -> Iterator[SpecIssue]:
    for each, declaration in inputs.items():
        has_default = isinstance(declaration, dict) and "default" in declaration
        if has_default or each in given or each in spec.inputs:
            continue
        lacking = [phone for phone in phones if each not in spec.device_inputs.get(phone, {})]
        if lacking:
            path = "/deviceInputs" if spec.device_inputs else "/inputs" if spec.inputs else ""
            message = f"{counted(lacking, 'lacks', 'lack')} a value for the input {name(each)}: {names(lacking)}"
            hint = f"Give {name(each)} in `inputs` for all phones, or in `deviceInputs` for each of these."
            yield SpecIssue(path, IssueCode.MISSING_INPUT, message, hint)


def counted(phones: Collection[str], verb: str, plural: str = "") -> str:
    """As ``1 phone lacks``, ``3 phones lack``."""
    return f"1 phone {verb}" if len(phones) == 1 else f"{len(phones):,} phones {plural or verb}"


def names(phones: Collection[str]) -> str:
    """The phones, or as many of them as people read."""
    shown = [name(each) for each in sorted(phones)[:MAX_NAMED]]
    more = [f"and {len(phones) - MAX_NAMED:,} more"] if len(phones) > MAX_NAMED else []
    return ", ".join([*shown, *more])
