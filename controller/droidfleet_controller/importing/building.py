"""The new task document while it is made: ids, escaped texts, and the project's validator at the end."""

from __future__ import annotations

import json
import re

from droidfleet_controller.importing.report import Entry, Imported, Reporter, What
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.steps.base import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from droidfleet_shared.protocol.task import SCHEMA_VERSION
from droidfleet_shared.protocol.validate import validate_template

MAX_ID_LENGTH = 128
MAX_SLUG_LENGTH = 40
"""Characters of a made id: enough to recognise the step."""

_NOT_A_WORD = re.compile(r"[\W_]+")
MS_PER_S = 1_000

_UNFIT = re.compile(r"[\x00-\x1f\x7f]|\$\{")

Step = dict[str, Json]


def escaped(text: str) -> str:
    """A literal text as a document writes it, where ``${`` begins a reference."""
    return text.replace("${", "$${")


def without_gaps(**fields: Json) -> Step:
    """The fields that are not None, by protocol v1's names."""
    return {name: value for name, value in fields.items() if value is not None}


def time_for(gesture_ms: int | None) -> int | None:
    """The `timeoutMs` of a step whose finger moves so long; None where the default is enough."""
    if gesture_ms is None or 2 * gesture_ms <= DEFAULT_TIMEOUT_MS:
        return None
    return min(DEFAULT_TIMEOUT_MS + gesture_ms, MAX_TIMEOUT_MS)


def task_id(wanted: str) -> str:
    """The nearest text that can name a task; ``imported`` when nothing is left of it."""
    return _UNFIT.sub(" ", wanted).strip()[:MAX_ID_LENGTH].strip() or "imported"


class Ids:
    """Unique ids. Those that the file gives are set aside first, so that a made one never takes them."""

    def __init__(self) -> None:
        self._set_aside: set[str] = set()
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        """By words: the number that may be free. Counting from 1 takes minutes where a file says one thing often."""

    def set_aside(self, wanted: str) -> None:
        """Keeps an id for the first step that asks for it by `own`."""
        self._set_aside.add(wanted)

    def own(self, wanted: str) -> str:
        """The id that the file gives the step, or the nearest free one when it is taken or cannot be used."""
        fit = _UNFIT.sub("-", wanted).strip()[:MAX_ID_LENGTH].strip() or "step"
        if fit not in self._taken:
            self._taken.add(fit)
            return fit
        return self._numbered(fit)

    def made(self, *words: str) -> str:
        """An id from words: ``click-add-to-cart``; the same words again get a number."""
        slug = "-".join(filter(None, (_NOT_A_WORD.sub("-", word).strip("-").lower() for word in words)))
        return self._numbered(slug[:MAX_SLUG_LENGTH].strip("-") or "step")

    def _numbered(self, base: str) -> str:
        base = base[: MAX_ID_LENGTH - 8]
        number = self._next.get(base, 1)
        while (found := base if number == 1 else f"{base}-{number}") in self._taken or found in self._set_aside:
            number += 1
        self._next[base] = number + 1
        self._taken.add(found)
        return found


class Draft:
    """A task document in the making, and from where in the file each of its steps comes."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.ids = Ids()
        self.aside: dict[str, Json] = {}
        self._places: dict[str, str] = {}

    def came_from(self, step: Step, place: str) -> None:
        """Remembers the place (as shown to people) of a step."""
        self._places[str(step.get("id"))] = place

    def finished(self, fields: Step) -> Imported:
        """The outcome: a valid document, or none when anything was refused, by the validator too."""
        document: Step = {"schemaVersion": SCHEMA_VERSION, **fields}
        if not self.reporter.refused:
            for issue in validate_template(json.dumps(document)).errors:
                place = self._place(document, issue.path)
                message = f"{issue.message} (in the new task, at {issue.path or 'the document'})"
                self.reporter.add(Entry(place, issue.code.value, What.REFUSED, message, issue.hint))
        return Imported(None if self.reporter.refused else document, self.reporter.entries, self.aside)

    def _place(self, document: Json, path: str) -> str:
        """Where the innermost step on the way to ``path`` comes from; empty when none is on it."""
        place = ""
        value = document
        for token in path.split("/")[1:]:
            if isinstance(value, dict):
                value = value.get(token.replace("~1", "/").replace("~0", "~"))
            elif isinstance(value, list):
                value = value[int(token)]
            if isinstance(value, dict) and "action" in value:
                place = self._places.get(str(value.get("id")), place)
        return place
