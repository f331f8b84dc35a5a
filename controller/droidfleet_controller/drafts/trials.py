"""What of a draft is run when a person tries it: one step or all of it, without what cannot be undone. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Draft
from droidfleet_shared.errors import NotFoundError, PreconditionError
from droidfleet_shared.protocol.pointers import resolve
from droidfleet_shared.protocol.steps.base import STEP_LISTS

MAX_TRIAL_MS = 900_000
"""Of a trial: a quarter of an hour shows what a loop of hours does."""

Object = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class TrialTask:
    """The document that is run, and the ids of the steps that are left out."""

    text: str
    withheld: tuple[str, ...]


def trial_of(draft: Draft, *, step_id: str, allow: Collection[str]) -> TrialTask:
    """The task of a draft with its marked steps left out, but for those that are allowed.

    ``step_id``: of the one step that is tried, with what is in it; empty: all of them. ``allow``: ids of marked steps.

    Raises:
        NotFoundError: ``STEP_NOT_FOUND``, of ``step_id`` or ``allow``.
        PreconditionError: ``STEP_WITHHELD``: the one step is marked and not allowed.
    """
    task = deepcopy(draft.task)
    known = {str(step.get("id")): step for step in _steps(task)}
    for name in (*((step_id,) if step_id else ()), *allow):
        if name not in known:
            raise NotFoundError(
                "STEP_NOT_FOUND",
                f"the draft has no step {name!r}.",
                hint=f"There are: {', '.join(list(known)[:20])}.",
            )
    withheld: list[str] = []
    for mark in draft.marks:
        step = resolve(task, mark.path)
        assert isinstance(step, dict)  # marks are made of the task
        if mark.step_id in allow:
            step["probability"] = 100
        else:
            withheld.append(mark.step_id)
            step["probability"] = 0
    if step_id:
        withheld = [name for name in withheld if name in {str(each.get("id")) for each in _with(known[step_id])}]
        task["steps"] = [_alone(known[step_id], withheld)]
    limit = task.get("maxDurationMs")
    task["maxDurationMs"] = min(limit, MAX_TRIAL_MS) if isinstance(limit, int) else MAX_TRIAL_MS
    return TrialTask(json.dumps(task, ensure_ascii=False), tuple(withheld))


def _alone(step: Object, withheld: Collection[str]) -> Object:
    """A step by itself: what leads to others is left out, and chance decides nothing."""
    if step.get("id") in withheld:
        raise PreconditionError(
            "STEP_WITHHELD",
            f"the effect of step {step.get('id')!r} cannot be undone, so it is not tried unless you allow it.",
            hint=f"Allow it by name: {step.get('id')}.",
        )
    alone = {name: value for name, value in step.items() if name not in ("onFailure", "probability")}
    if alone.get("action") == "BRANCH":
        raise PreconditionError(
            "STEP_NEEDS_OTHERS",
            f"step {step.get('id')!r} only chooses between other steps.",
            hint="Try the whole task.",
        )
    return alone


def _steps(holder: Object) -> Iterator[Object]:
    for name in STEP_LISTS:
        listed = holder.get(name)
        for step in listed if isinstance(listed, list) else ():
            if isinstance(step, dict):
                yield step
                yield from _steps(step)


def _with(step: Object) -> Iterator[Object]:
    yield step
    yield from _steps(step)
