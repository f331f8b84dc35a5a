"""What a model is told of a call: lists, results, errors, screens. Pure. What others wrote is quoted."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from droidfleet_designer.observation.observe import Observation
from droidfleet_designer.observation.quoting import quoted
from droidfleet_designer.ports import DeviceFact, GroupFact, Shot
from droidfleet_designer.tools.tool import Outcome, OutcomeKind
from droidfleet_shared.errors import DroidfleetError, InvalidInputError
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot

MAX_LISTED = 100
"""Devices or groups in one answer, some 4,000 tokens."""

MAX_MESSAGE = 400
"""Characters of a message: a sentence or two."""

MAX_ISSUES = 20
"""Of one call; there is hardly more in so small a thing."""

_MENDABLE = {StepCode.TARGET_NOT_FOUND, StepCode.TARGET_DISABLED, StepCode.TARGET_AMBIGUOUS}
"""Nothing was done, and another element may do."""


def devices_in_words(devices: Sequence[DeviceFact], *, explored: str) -> str:
    """The devices, one a line."""
    lines = [_device(each, explored=explored) for each in devices[:MAX_LISTED]]
    return _list(lines, len(devices), "device")


def groups_in_words(groups: Sequence[GroupFact]) -> str:
    """The groups, one a line."""
    lines = [
        f"{quoted(each.name)}: {each.members} members" + (f", those with {quoted(each.query)}" if each.query else "")
        for each in groups[:MAX_LISTED]
    ]
    return _list(lines, len(groups), "group")


def bad_arguments(name: str, error: ValidationError) -> str:
    """All that is wrong with the arguments."""
    found = [
        f"- {quoted('.'.join(map(str, each['loc']))) if each['loc'] else 'together'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False)[:MAX_ISSUES]
    ]
    return "\n".join([f"Nothing was done: the arguments of {name} are not right.", *found])


def error_in_words(error: DroidfleetError) -> str:
    """An error, with every issue that it names."""
    issues = error.issues if isinstance(error, InvalidInputError) else ()
    lines = [f"{error.code}: {quoted(error.message, most=MAX_MESSAGE)}"]
    lines += [
        f"- {each.path}: {each.code}: {quoted(each.message, most=MAX_MESSAGE)}"
        for each in issues[:MAX_ISSUES]
        if isinstance(each, Issue)
    ]
    return "\n".join(lines)


def kind_of_error(error: DroidfleetError) -> OutcomeKind:
    """How a call ends that met the error."""
    match error.code:
        case "OUTCOME_UNKNOWN":
            return OutcomeKind.INTERRUPTED
        case "INVALID_STEP":
            return OutcomeKind.RETRY
        case _:
            return OutcomeKind.FAILED


def kind_of_result(result: TaskResult) -> OutcomeKind:
    """How a call ends whose step ended so."""
    if result.successful:
        return OutcomeKind.RESULT
    if result.code is StepCode.OUTCOME_UNKNOWN or result.acted is None:
        return OutcomeKind.INTERRUPTED
    return OutcomeKind.RETRY if result.code in _MENDABLE else OutcomeKind.FAILED


def result_in_words(name: str, result: TaskResult, kind: OutcomeKind) -> str:
    """How the step went."""
    said = f": {quoted(result.message, most=MAX_MESSAGE)}" if result.message else ""
    match kind:
        case OutcomeKind.RESULT:
            return f"{name}: done{f' ({result.detail})' if result.detail else ''}."
        case OutcomeKind.INTERRUPTED:
            return f"{name}: {result.code}{said}. {MAY_HAVE_HAPPENED}"
        case _:
            return f"{name}: {result.code}{said}."


MAY_HAVE_HAPPENED = "It may have happened or not: look before you do it again."


def outcome_seen(
    kind: OutcomeKind, text: str, seen: Observation, snapshot: Snapshot, *, code: str = "", shot: Shot | None = None
) -> Outcome:
    """An outcome that shows a screen, below a text or alone."""
    told = f"{text}\n{seen.text}" if text else seen.text
    return Outcome(kind, told, code=code, snapshot_id=seen.snapshot_id, snapshot=snapshot, shot=shot)


def _device(fact: DeviceFact, *, explored: str) -> str:
    parts = [fact.state]
    parts += [quoted(fact.model)] if fact.model else []
    parts += [f"Android {quoted(fact.android)}"] if fact.android else []
    parts += [f"in front {quoted(fact.foreground)}"] if fact.foreground else []
    parts += [f"{quoted(key)}={quoted(value)}" for key, value in sorted((fact.labels or {}).items())]
    parts += [quoted(fact.busy_with)] if fact.busy_with else []
    mine = " (the one you explore)" if fact.name == explored else ""
    return f"{quoted(fact.name)}{mine}: {', '.join(parts)}"


def _list(lines: Sequence[str], count: int, what: str) -> str:
    if not lines:
        return f"There is no {what}."
    more = [f"And {count - len(lines)} more."] if count > len(lines) else []
    return "\n".join([f"{count} {what}{'s' * (count != 1)}:", *lines, *more])
