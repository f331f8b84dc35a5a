"""The planner: a conversation in, the next answer out. Pure, and it remembers nothing.

It is no language model and says so: in what it says, in each draft's notes, and where it gives up. It takes part in
explorations as one does, so that everything around a model can be seen at work without one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.conversation import Message, ToolCall
from droidfleet_designer.practice.issues import Issue, issues_in
from droidfleet_designer.practice.past import Past, Purpose, Wanted, call_id, past_of
from droidfleet_designer.practice.said import said
from droidfleet_designer.practice.understanding import understood
from droidfleet_designer.practice.walking import Call, Walk
from droidfleet_designer.practice.wishes import Understood
from droidfleet_designer.tools.catalogue import SUBMIT

UNNAMED = "practice"
"""The id of a task of whose description no letter is one of an id."""

MAX_SUBMISSIONS = 4
"""The first, and as many corrections as the loop takes."""

MAX_ID = 60
"""Characters of a task's id."""

MAX_REASON = 600
"""Characters of why it gives up."""

_STEP = re.compile(r"/task/steps/(\d+)(?:/|$)")
_SAID = ("text", "description")
_PLANNED = ("/schedule", "/target", "/retry")
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Planned:
    """An answer: words, and one call. ``call`` None: words alone. ``refused``: it gives up, and they say why."""

    text: str
    call: ToolCall | None = None
    refused: bool = False


def planned(messages: Sequence[Message]) -> Planned:
    """The next answer in a conversation."""
    past = past_of(messages)
    if past.wanted is None:
        return Planned(said("NOT_ASKED", "en"))
    return _Planner(past, past.wanted).answer()


class _Planner:
    """One answer in the making."""

    def __init__(self, past: Past, wanted: Wanted) -> None:
        self._past = past
        self._wanted = wanted
        self._language = wanted.language
        self._asked: Understood = understood(wanted.description)
        self._walk = Walk(self._asked.clauses, language=wanted.language)
        self._schedule = self._asked.schedule
        self._target = self._asked.target
        self._notes: list[str] = []
        self._renamings: set[str] = set()
        self._submitted = 0

    def answer(self) -> Planned:
        if not self._asked.clauses:
            return self._give_up()
        for made in self._past.made:
            if made.purpose is Purpose.SUBMIT:
                self._submitted += 1
                self._finish()
                if not self._mend(made.answer):
                    return self._give_up(made.answer)
            else:
                self._walk.take(made)
        if self._past.hurry:
            self._finish()
        call = self._walk.next() if not self._submitted else None
        if call is not None:
            return self._saying(call.purpose, call.what, call)
        return self._hand_over()

    def _finish(self) -> None:
        """Takes the last wishes that need no call. Where one needs a call, that is where it ended."""
        if self._walk.next() is not None:
            self._walk.hurry()

    # Handing over -----------------------------------------------------------------------------------------------------

    def _hand_over(self) -> Planned:
        worth = len(self._walk.steps.done) > 1 or len(self._walk.clauses) == 1
        if not worth or not self._walk.steps.done or self._submitted >= MAX_SUBMISSIONS:
            return self._give_up()
        call = Call(SUBMIT, self._proposal(), Purpose.SUBMIT)
        return self._saying(Purpose.SUBMIT, "", call, code="SUBMIT_AGAIN" if self._submitted else "SUBMIT")

    def _proposal(self) -> dict[str, JsonValue]:
        steps = self._walk.steps
        task: dict[str, JsonValue] = {
            "schemaVersion": 1,
            "taskId": self._task_id(),
            "steps": [*steps.task],
        }
        if steps.inputs:
            task["inputs"] = steps.inputs
        if steps.duration_ms is not None:
            task["maxDurationMs"] = steps.duration_ms
        proposal: dict[str, JsonValue] = {"summary": self._summary(), "task": task, "notes": [*self._all_notes()]}
        if self._schedule is not None:
            proposal["schedule"] = dict(self._schedule)
        if self._target is not None:
            proposal["target"] = dict(self._target)
        return proposal

    def _task_id(self) -> str:
        named = self._wanted.settings.get("name")
        plain = _NOT_IN_AN_ID.sub("-", " ".join(self._done()).lower())[:MAX_ID].strip("-")
        return named if isinstance(named, str) else plain or UNNAMED

    def _summary(self) -> str:
        return said("SUMMARY", self._language, what="; ".join(self._done()))

    def _done(self) -> list[str]:
        """What is in the task, as the person said it."""
        return list(dict.fromkeys(self._walk.steps.clauses))

    def _all_notes(self) -> list[str]:
        notes = [said("MADE_BY", self._language)]
        for note in self._walk.notes:
            values = dict(note.values)
            if values.get("similar"):
                values["similar"] = f" {said('SIMILAR', self._language, similar=values['similar'])}"
            notes.append(said(note.code, self._language, **values))
        if self._walk.over and (left := self._walk.clauses[self._walk.at + 1 :]):
            notes.append(said("LEFT_OUT", self._language, what="; ".join(each.said for each in left)))
        if self._asked.rest:
            notes.append(said("NOT_UNDERSTOOD", self._language, what=self._asked.rest))
        if self._schedule is not None and "schedule" not in self._wanted.settings:
            notes.append(said("TIME_ZONE", self._language))
        return list(dict.fromkeys([*notes, *self._notes]))

    # Mending ----------------------------------------------------------------------------------------------------------

    def _mend(self, answer: str) -> bool:
        """Mends what was found wrong, or takes it out. False: neither can be."""
        found = [issue for issue in issues_in(answer) if not self._renamed(issue)]
        steps = [int(place[1]) for issue in found if (place := _STEP.match(issue.path)) is not None]
        if steps:
            gone = self._walk.steps.cut(min(steps))
            self._notes.append(said("TAKEN_OUT", self._language, what="; ".join(gone)))
        rest = [issue.path for issue in found if _STEP.match(issue.path) is None]
        if rest and all(path.startswith(_PLANNED) for path in rest):
            self._notes.append(said("NO_PLAN", self._language, what=", ".join(rest)))
            self._schedule = None if any(path.startswith("/schedule") for path in rest) else self._schedule
            self._target = None if any(path.startswith("/target") for path in rest) else self._target
            return True
        return not rest

    def _renamed(self, issue: Issue) -> bool:
        """Whether the one thing that says the same was put in a selector's place. More than one would be a guess."""
        selector = _at([*self._walk.steps.task], issue.path)
        if selector is None or issue.path in self._renamings:
            return False
        self._renamings.add(issue.path)
        alike = [
            each
            for each in issue.selectors
            if each != selector and any(each.get(key) == selector.get(key) for key in _SAID if key in selector)
        ]
        if len(alike) != 1:
            return False
        selector.clear()
        selector.update(alike[0])
        return True

    # Saying -----------------------------------------------------------------------------------------------------------

    def _saying(self, purpose: Purpose, what: str, call: Call, *, code: str = "") -> Planned:
        words = [said(code or purpose.name, self._language, what=what)]
        if not self._past.turns:
            words.insert(0, said("INTRO", self._language, count=len(self._asked.clauses)))
        turn = self._past.turns + 1
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        made = ToolCall(id=call_id(turn, self._walk.at, purpose), name=call.tool, arguments=arguments)
        return Planned(" ".join(words), made)

    def _give_up(self, why: str = "") -> Planned:
        reasons = why or " ".join(self._all_notes()[1:])
        return Planned(said("GIVE_UP", self._language, why=reasons[:MAX_REASON]), refused=True)


def _at(steps: JsonValue, pointer: str) -> dict[str, JsonValue] | None:
    """The selector at a JSON Pointer into the draft; None: there is no object."""
    here: JsonValue = steps
    for part in pointer.removeprefix("/task/steps/").split("/"):
        if isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        else:
            here = here.get(part) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else None
