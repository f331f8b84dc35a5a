"""Makes the fields of a draft of what was handed over: fills in what is safe to fill in, and says so. Pure.

What a step does is never changed, and whether the task is valid is for the protocol's own validator to say. What the
person set beats what was handed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from droidfleet_designer.draft.draft import (
    MAX_NOTES,
    MAX_TEXT,
    Brief,
    DraftRetry,
    DraftSchedule,
    DraftTarget,
    Mark,
)
from droidfleet_designer.observation.quoting import quoted
from droidfleet_designer.prompts.sentences import sentence
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.names import MAX_NAME_LENGTH, NAME_PATTERN
from droidfleet_shared.protocol.pointers import pointer
from droidfleet_shared.protocol.steps.base import STEP_LISTS
from droidfleet_shared.protocol.task import SCHEMA_VERSION

ModelT = TypeVar("ModelT", bound=BaseModel)

Object = dict[str, JsonValue]

MAX_LEVELS = 40
"""Of steps in steps: more than the protocol takes, so that the validator is who says so."""

FIELDS = frozenset({"summary", "task", "target", "schedule", "retry", "notes"})
MADE_ANEW = frozenset({"evidence", "marks"})
"""Fields of a draft that nobody writes by hand: they are made of the task."""

_NAME = re.compile(NAME_PATTERN)
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_MAX_SLUG = 40
_FALLBACK = "task"


class ProposalCode(StrEnum):
    """What is wrong with what was handed over, beside what the validator says of the task."""

    BAD_PROPOSAL = "BAD_PROPOSAL"
    """A field is missing, unknown or of the wrong form."""


@dataclass(slots=True)
class Normal:
    """What was made of a proposal. ``task`` is there whenever there is a task to validate; the rest is whole exactly
    when there are no ``issues``."""

    summary: str = ""
    task: Object | None = None
    target: DraftTarget | None = None
    schedule: DraftSchedule | None = None
    retry: DraftRetry | None = None
    notes: list[str] = field(default_factory=list)
    before: tuple[Mark, ...] = ()
    issues: list[Issue] = field(default_factory=list)


def normalise(proposal: Mapping[str, JsonValue], *, brief: Brief) -> Normal:
    """Reads a proposal of the model, or a person's version of a draft. Paths of issues are JSON Pointers in it."""
    return _Reading(proposal, brief).done()


class _Reading:
    def __init__(self, proposal: Mapping[str, JsonValue], brief: Brief) -> None:
        self._given = proposal
        self._brief = brief
        self._settings = brief.settings
        self._made = Normal()

    def done(self) -> Normal:
        made = self._made
        for name in sorted(set(self._given) - FIELDS - MADE_ANEW):
            known = ", ".join(sorted(FIELDS))
            self._wrong((name,), f"{quoted(name)} is no field of a draft", f"There are: {known}.")
        self._notes()
        self._summary()
        self._task()
        self._target()
        made.schedule = self._part("schedule", DraftSchedule, self._settings.schedule, "SCHEDULE_SET") or (
            DraftSchedule(once="now")
        )
        made.retry = self._part("retry", DraftRetry, self._settings.retry, "RETRY_SET") or DraftRetry()
        made.before = tuple(self._marks())
        return made

    def _summary(self) -> None:
        summary = self._given.get("summary")
        if summary is None or summary == "":
            self._made.summary = self._brief.description
            self._note("SUMMARY_MISSING")
        elif isinstance(summary, str):
            self._made.summary = summary[:MAX_TEXT]
        else:
            self._wrong(("summary",), "the summary is no text", "Say in one or two sentences what the task does.")

    def _notes(self) -> None:
        given = self._given.get("notes", [])
        given = [given] if isinstance(given, str) else given
        if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
            self._wrong(("notes",), "notes is no list of texts", 'Write ["...", "..."].')
            return
        self._made.notes += dict.fromkeys(str(each)[:MAX_TEXT] for each in given if each)

    # The task -----------------------------------------------------------------------------------------------------

    def _task(self) -> None:
        given = self._given.get("task")
        if isinstance(given, str):
            # Many models write an object within arguments as a text.
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                given = None
        if not isinstance(given, dict):
            self._wrong(("task",), "there is no task", "Give the whole task of protocol v1 as a JSON object.")
            return
        task = deepcopy(given)
        task.setdefault("schemaVersion", SCHEMA_VERSION)
        if task.pop("assignedAgentName", None) is not None:
            self._note("UNADDRESSED")
        self._named(task)
        self._with_ids(task)
        wanted = self._settings.max_duration_ms
        if wanted is not None and task.get("maxDurationMs") != wanted:
            task["maxDurationMs"] = wanted
            self._note("DURATION_SET", seconds=f"{wanted / 1000:g}")
        self._made.task = task

    def _named(self, task: Object) -> None:
        given, wanted = task.get("taskId"), self._settings.name
        if wanted is not None:
            if given != wanted:
                task["taskId"] = wanted
                self._note("NAME_SET", name=wanted)
        elif given is None or given == "":
            name = _slug(self._made.summary) or _slug(self._brief.description) or _FALLBACK
            task["taskId"] = name
            self._note("NAMED", name=name)

    def _with_ids(self, task: Object) -> None:
        steps = list(_raw_steps(task))
        taken = {name for step in steps if isinstance(name := step.get("id"), str)}
        made: list[str] = []
        for step in steps:
            if step.get("id") is None or step.get("id") == "":
                action = step.get("action")
                base = _slug(action) if isinstance(action, str) else ""
                step["id"] = name = _free(base or "step", taken)
                taken.add(name)
                made.append(name)
        if made:
            self._note("IDS_GIVEN", ids=", ".join(made))

    # What it is for -----------------------------------------------------------------------------------------------

    def _target(self) -> None:
        self._made.target = self._part("target", DraftTarget, self._settings.target, "TARGET_SET")
        if self._made.target is None:
            self._made.target = DraftTarget(device=self._brief.device)
            if self._given.get("target") is None:
                self._note("TARGET_EXPLORED")

    def _part(self, name: str, model: type[ModelT], wanted: ModelT | None, note: str) -> ModelT | None:
        """A part by what the person set, else by what was handed over; None: there is none, or it is wrong."""
        given = self._given.get(name)
        if wanted is not None:
            if given is not None and given != wanted.model_dump(mode="json", by_alias=True, exclude_none=True):
                self._note(note)
            return wanted
        if given is None:
            return None
        try:
            return model.model_validate(given)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_input=False, include_context=False):
                self._wrong((name, *each["loc"]), each["msg"].removeprefix("Value error, "), "")
            return None

    def _marks(self) -> Iterator[Mark]:
        given = self._given.get("marks")
        for each in given if isinstance(given, list | tuple) else ():
            try:
                yield Mark.model_validate(each)
            except ValidationError:
                continue  # they are made anew; only what a person has seen of them counts

    def _note(self, code: str, **values: object) -> None:
        text = sentence("draft", code, self._settings.language, **values)
        if text not in self._made.notes:
            self._made.notes.append(text)

    def _wrong(self, place: tuple[str | int, ...], message: str, hint: str) -> None:
        self._made.issues.append(Issue(pointer(place), ProposalCode.BAD_PROPOSAL, message, hint))


def kept_notes(notes: list[str], *, language: str) -> tuple[str, ...]:
    """The notes within their bound, the last saying how many are left out."""
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    kept = notes[: MAX_NOTES - 1]
    return (*kept, sentence("draft", "NOTES_CUT", language, count=len(notes) - len(kept)))


def _raw_steps(holder: Object, levels: int = MAX_LEVELS) -> Iterator[Object]:
    """Every object that stands where a step stands, in document order."""
    for name in STEP_LISTS:
        listed = holder.get(name)
        for step in listed if isinstance(listed, list) and levels else ():
            if isinstance(step, dict):
                yield step
                yield from _raw_steps(step, levels - 1)


def _slug(text: str) -> str:
    """A name of small letters, digits and hyphens; empty where the text has too few of these."""
    words = _NOT_IN_A_NAME.sub("-", text.casefold()[:1_000]).strip("-")
    if len(words) > _MAX_SLUG:
        words = words[:_MAX_SLUG].rpartition("-")[0] or words[:_MAX_SLUG]
    return words if _NAME.fullmatch(words) and len(words) >= 3 else ""


def _free(base: str, taken: set[str]) -> str:
    base = base[: MAX_NAME_LENGTH - 10]
    if base not in taken:
        return base
    number = 2
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"
