"""The recording: from an action on a look to a step, and from steps to a task document. Pure.

Each step bears the selector that is unique on the screen it was chosen on, and the package that was in front. Passwords
never get into it: a text typed into a password field becomes the input `password`, a secret that each run gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from droidfleet_controller.cli.recorder.commands import (
    Action,
    Back,
    NodeWord,
    Open,
    Press,
    Read,
    Scroll,
    Tap,
    Type,
    WaitFor,
)
from droidfleet_controller.cli.screens import ScreenView, Seen, escaped, selector_of
from droidfleet_shared.errors import ExhaustedError, InvalidInputError, PreconditionError
from droidfleet_shared.protocol.names import PACKAGE_PATTERN
from droidfleet_shared.protocol.steps.flow import MAX_STEPS
from droidfleet_shared.protocol.steps.touching import DEFAULT_SCROLLS
from droidfleet_shared.protocol.task import SCHEMA_VERSION
from droidfleet_shared.protocol.validate import validate_template

MAX_SLUG = 32
MAX_SCROLLS = 50
OWN_LABEL = ("text", "textStartsWith", "description")
"""What a step that reads a node must not name it by: that is what will be another one."""

_NOT_A_WORD = re.compile(r"[^\w]+")
_VERBS = {"CLICK": "tap", "INPUT": "type", "WAIT": "see", "EXTRACT_TEXT": "read"}

Step = dict[str, object]


@dataclass(frozen=True, slots=True)
class Planned:
    """A step to be run and recorded. ``run`` differs from ``kept`` where that leaves out a secret.

    ``note``: why its selector may not last; empty when it should.
    """

    run: Step
    kept: Step
    note: str = ""


class Recording:
    """The steps so far."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.steps: list[Step] = []
        self._ids: set[str] = set()

    def plan(  # noqa: PLR0911 - one for each action
        self, action: Action, view: ScreenView, choose: Mapping[NodeWord, Seen]
    ) -> Planned:
        """The step of an action on a look; ``choose`` holds the node that it means, if any.

        Raises:
            PreconditionError: ``NO_SELECTOR``.
            ExhaustedError: ``TOO_MANY_STEPS``.
        """
        if len(self.steps) >= MAX_STEPS:
            raise ExhaustedError("TOO_MANY_STEPS", f"a task has at most {MAX_STEPS} steps.", hint="Save it with q.")
        package = view.tree.package_name
        where: Step = {"packageName": package} if re.fullmatch(PACKAGE_PATTERN, package) and "$" not in package else {}
        match action:
            case Tap(node):
                return self._on(choose[node], "CLICK", where)
            case WaitFor(node):
                return self._on(choose[node], "WAIT", where)
            case Read(node, output):
                return self._on(choose[node], "EXTRACT_TEXT", where, {"outputField": output}, own_label=False)
            case Type(node, text):
                planned = self._on(choose[node], "INPUT", where, {"value": escaped(text)})
                if "password" not in choose[node].node.flags:
                    return planned
                secret = self._secret(planned.kept["selector"])
                return Planned(planned.run, planned.kept | {"value": f"${{inputs.{secret}}}"}, planned.note)
            case Back():
                return _same({"id": self._id("back"), "action": "BACK", **where})
            case Press(key):
                return _same({"id": self._id(f"press-{key.lower()}"), "action": "KEY", **where, "key": key})
            case Scroll(direction):
                step = {"id": self._id("scroll"), "action": "SCROLL", **where, "direction": direction}
                return _same({**step, "maxScrolls": 1})
            case Open(package_name):
                name = package_name.rpartition(".")[2]
                return _same({"id": self._id(f"open-{name}"), "action": "OPEN", "packageName": package_name})
            case _:
                assert_never(action)

    def add(self, planned: Planned) -> None:
        """Keeps a step that was run."""
        self.steps.append(planned.kept)
        self._ids.add(str(planned.kept["id"]))

    def undo(self) -> Step | None:
        """Takes the last step out; None when there is none."""
        if not self.steps:
            return None
        step = self.steps.pop()
        self._ids.discard(str(step["id"]))
        return step

    def document(self) -> str:
        """The task template as JSON text.

        Raises:
            PreconditionError: ``NOTHING_RECORDED``.
            InvalidInputError: ``INVALID_TASK``, for a task id or a name that the protocol does not take.
        """
        if not self.steps:
            raise PreconditionError("NOTHING_RECORDED", "no step was recorded, so there is no task.")
        secrets = {name: {"type": "secret", "description": f"What was typed for {name}"} for name in self._secrets()}
        body: Step = {"schemaVersion": SCHEMA_VERSION, "taskId": self.task_id}
        if secrets:
            body["inputs"] = secrets
        body["steps"] = scrolled_to(self.steps)
        text = json.dumps(body, ensure_ascii=False, indent=2) + "\n"
        validation = validate_template(text)
        if validation.task is None:
            raise InvalidInputError("INVALID_TASK", "what was recorded is not a valid task.", issues=validation.errors)
        return text

    def _on(
        self,
        seen: Seen,
        action: str,
        where: Step,
        fields: Mapping[str, object] | None = None,
        *,
        own_label: bool = True,
    ) -> Planned:
        offered = list(seen.node.offered)
        lasting = [each for each in offered if own_label or not set(OWN_LABEL) & set(selector_of(each.selector_json))]
        if not offered:
            raise PreconditionError("NO_SELECTOR", f"no selector names {seen.named()} alone.", hint="Choose another.")
        best = (lasting or offered)[0]
        note = best.note if lasting else "it is named by the very text that is read"
        called = str((fields or {}).get("outputField", "")) or seen.label or seen.identity or seen.kind
        name = f"{_VERBS[action]}-{_slug(called)}"
        selector = escaped_all(selector_of(best.selector_json))
        return _same({"id": self._id(name), "action": action, **where, "selector": selector, **(fields or {})}, note)

    def _id(self, name: str) -> str:
        number = 1
        while (numbered := name if number == 1 else f"{name}-{number}") in self._ids:
            number += 1
        return numbered

    def _secrets(self) -> dict[str, object]:
        """The secrets in use, with the selector of the field of each."""
        found = {}
        for step in self.steps:
            used = re.fullmatch(r"\$\{inputs\.(\w+)\}", str(step.get("value", "")))
            if used:
                found[used[1]] = step["selector"]
        return found

    def _secret(self, selector: object) -> str:
        known = self._secrets()
        same = next((name for name, field in known.items() if field == selector), None)
        return same or ("password" if not known else f"password_{len(known) + 1}")


def scrolled_to(steps: Sequence[Step]) -> list[Step]:
    """The steps with each run of scrolls as one, which stops as soon as what was chosen after it is seen.

    How far a finger scrolls differs from phone to phone; what somebody scrolled for does not.
    """
    made: list[Step] = []
    for step in steps:
        last = made[-1] if made else {}
        if _is_scroll(last):
            if _is_scroll(step) and step["direction"] == last["direction"]:
                made[-1] = last | {"maxScrolls": _count(last) + 1}
                continue
            if "selector" in step:
                most = min(MAX_SCROLLS, max(DEFAULT_SCROLLS, 2 * _count(last)))
                made[-1] = last | {"until": step["selector"], "maxScrolls": most}
        made.append(step)
    return made


def escaped_all(value: Mapping[str, object]) -> Step:
    """A selector with all its texts as a document writes them."""
    return {
        name: escaped(each) if isinstance(each, str) else escaped_all(each) if isinstance(each, Mapping) else each
        for name, each in value.items()
    }


def _is_scroll(step: Step) -> bool:
    return step.get("action") == "SCROLL" and "until" not in step


def _count(step: Step) -> int:
    count = step["maxScrolls"]
    return count if isinstance(count, int) else 1


def _same(step: Step, note: str = "") -> Planned:
    return Planned(step, step, note)


def _slug(text: str) -> str:
    return _NOT_A_WORD.sub("-", text.casefold()).strip("-")[:MAX_SLUG].strip("-") or "node"
