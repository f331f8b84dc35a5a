"""From what was handed over to a draft that may be shown to a person, or to all that is wrong with it. Pure.

``proposal -> normalise -> the protocol's validator -> evidence -> marks -> Draft``
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Brief, Draft
from droidfleet_designer.draft.evidence import find_evidence
from droidfleet_designer.draft.marks import LOWERED_PERCENT, marked
from droidfleet_designer.draft.normalise import ProposalCode, kept_notes, normalise
from droidfleet_designer.prompts.sentences import sentence
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.validate import validate_template
from droidfleet_shared.screen.snapshot import Snapshot

MAX_DEPTH = 200
"""Levels of JSON: far more than a task has, and few enough for every reader."""

_SIMPLER = "Hand over the task as plain JSON of the protocol."


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of it. ``draft`` is there exactly when there are no ``issues``; their paths are JSON Pointers in what
    was handed over."""

    draft: Draft | None
    issues: tuple[Issue, ...]


def check(
    proposal: Mapping[str, JsonValue],
    *,
    brief: Brief,
    snapshots: Mapping[str, Snapshot],
    words: EffectWords,
    person: bool = False,
) -> Checked:
    """The draft, or all that is wrong.

    ``snapshots``: what the exploration saw, by their ids. ``words``: those that speak of what cannot be undone.
    ``person``: a person's version of a draft, whose probabilities stay as they are. May take seconds where there is
    much to match.
    """
    if (unreadable := _unreadable(proposal)) is not None:
        return Checked(None, (unreadable,))
    made = normalise(proposal, brief=brief)
    if made.task is None:
        return Checked(None, tuple(made.issues))
    valid = validate_template(json.dumps(made.task, ensure_ascii=False), words=words)
    issues = made.issues + _in_task(valid.errors)
    if valid.task is None:
        return Checked(None, tuple(issues))
    found = find_evidence(valid.task, snapshots, allow_points=brief.settings.allow_points)
    issues += _in_task(found.issues)
    if issues:
        return Checked(None, tuple(issues))
    assert made.target is not None  # there are no issues
    assert made.schedule is not None
    assert made.retry is not None
    before = made.before if person else None
    task = marked(made.task, valid.task, snapshots=snapshots, words=words, before=before)
    language = brief.settings.language
    said = [*made.notes]
    for remark, step_id in found.remarks:
        said.append(sentence("draft", remark, language, step=step_id))
    for mark in task.marks:
        code = "LOWERED" if mark.lowered else "REVIEW"
        said.append(sentence("draft", code, language, step=mark.step_id, why=mark.why, percent=LOWERED_PERCENT))
    return Checked(
        Draft(
            summary=made.summary,
            task=task.task,
            target=made.target,
            schedule=made.schedule,
            retry=made.retry,
            notes=kept_notes(list(dict.fromkeys(said)), language=language),
            marks=task.marks,
            evidence=found.evidence,
        ),
        (),
    )


def _unreadable(proposal: Mapping[str, JsonValue]) -> Issue | None:
    """Why this cannot even be looked at: it is nested without end, holds half a character or a number without end."""
    task = proposal.get("task")
    try:
        text = json.dumps(proposal, ensure_ascii=False, allow_nan=False)
        text.encode()
        nested = max(_depth(text), _depth(task) if isinstance(task, str) else 0)
    except (ValueError, RecursionError) as error:
        return Issue("", ProposalCode.BAD_PROPOSAL, f"it is no JSON that can be read: {type(error).__name__}", _SIMPLER)
    if nested > MAX_DEPTH:
        return Issue("", ProposalCode.BAD_PROPOSAL, f"it is nested {nested} levels deep", _SIMPLER)
    return None


def _depth(text: str) -> int:
    """How deep brackets are open at most; those in texts count, too, which only errs on the safe side."""
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth = max(0, depth - 1)
    return deepest


def _in_task(issues: tuple[Issue, ...]) -> list[Issue]:
    """With their places in what was handed over."""
    return [replace(each, path=f"/task{each.path}") for each in issues]
