"""Takes a task that the model hands over, and finds all that is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Brief, Draft
from droidfleet_designer.observation.quoting import quoted
from droidfleet_designer.ports import PlanCheck
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.screen.snapshot import Snapshot

MAX_ISSUES = 30
"""Told at once: more are not mended at once, and the first are mostly the reason of the rest."""

MAX_HINT = 1_000
"""Characters of a hint or message: with five candidates in words and their selectors."""


class Checked(Protocol):
    """What came of a check. ``draft`` is there exactly when there are no ``issues``."""

    @property
    def draft(self) -> Draft | None: ...

    @property
    def issues(self) -> Sequence[Issue]: ...


class Check(Protocol):
    """Makes a draft of what the model handed over: filled in, marked, each selector proved on what was seen."""

    def __call__(
        self,
        proposal: Mapping[str, JsonValue],
        *,
        brief: Brief,
        snapshots: Mapping[str, Snapshot],
        words: EffectWords,
    ) -> Checked: ...


async def examined(
    proposal: Mapping[str, JsonValue],
    *,
    brief: Brief,
    snapshots: Mapping[str, Snapshot],
    words: EffectWords,
    check: Check,
    plans: PlanCheck,
) -> Draft | Sequence[Issue]:
    """The draft; or all that is wrong, first with the task itself, and only then with what the fleet says of it.

    Raises:
        DroidfleetError: the fleet could not be asked.
    """
    # In a thread: to match every selector on every screen takes long for a loop that serves others, too.
    checked = await asyncio.to_thread(check, proposal, brief=brief, snapshots=snapshots, words=words)
    if checked.draft is None:
        return checked.issues
    return await plans.issues(checked.draft) or checked.draft


def issues_in_words(issues: Sequence[Issue]) -> str:
    """One line for each."""
    lines = [_line(each) for each in issues[:MAX_ISSUES]]
    more = [f"And {len(issues) - MAX_ISSUES} more."] if len(issues) > MAX_ISSUES else []
    return "\n".join([*lines, *more])


def _line(issue: Issue) -> str:
    hint = f" {quoted(issue.hint, most=MAX_HINT)}" if issue.hint else ""
    return f"- {quoted(issue.path)}: {issue.code}: {quoted(issue.message, most=MAX_HINT)}{hint}"
