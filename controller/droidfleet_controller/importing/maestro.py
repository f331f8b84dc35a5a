"""Maestro flows: ``config --- commands`` in YAML, with the flows that they run, as one task.

What a command does is `maestro_commands`' business; here are the file, the commands that hold others, and the bounds.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from droidfleet_controller.importing import building
from droidfleet_controller.importing.building import Draft, Step, escaped, without_gaps
from droidfleet_controller.importing.fields import Fields, meant
from droidfleet_controller.importing.flow_yaml import BadYamlError, FlowText, read_flow
from droidfleet_controller.importing.maestro_commands import (
    COMMANDS,
    NOT_SUPPORTED,
    OPTIONAL_LOOKUP_MS,
    Command,
    waits,
)
from droidfleet_controller.importing.maestro_selectors import CONDITION, NEVER, Selectors, conditions
from droidfleet_controller.importing.maestro_texts import Variables
from droidfleet_controller.importing.report import ImportCode, Imported, Reporter, Scope
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.steps.flow import MAX_ITERATIONS
from droidfleet_shared.protocol.suggestions import folded
from droidfleet_shared.protocol.wording import described, name, shown

MAX_FLOWS = 50
"""Flows that are put into one task, each use counted."""

MAX_FLOW_DEPTH = 5
"""Flows that run flows, the first counted."""

MAX_COMMAND_DEPTH = 10
"""Commands within commands: more than the depth of a task, so that the validator names the place that is too deep."""

EXAMPLE = "appId: com.example.shop, then a line `---`, then the commands, each as `- tapOn: Buy`"
ASIDE = ("tags", "properties", "ext")
"""What a flow says about its suite."""

CONFIG = ("appId", "name", "env", "onFlowStart", "onFlowComplete", "url", "jsEngine", *ASIDE)
CONTAINERS = {
    "repeat": ("times", "while", "commands"),
    "runFlow": ("file", "when", "commands", "env"),
}
"""The commands that hold others, and their fields."""

COMMON = ("label", "optional")
EXAMPLES = {
    "repeat": "`repeat: {times: 3, commands: [back]}`",
    "runFlow": "`runFlow: login.yaml`",
}

FlowReader = Callable[[str], str]
"""The text of a flow by its path from the first flow's folder (``common/login.yaml``).

Raises:
    FlowUnreadableError: there is none, or it cannot be read.
"""


class FlowUnreadableError(Exception):
    """A flow cannot be read; its text says why, as a clause."""


def no_files(_path: str) -> str:
    """Reads no other flows: for a flow that does not come from a file."""
    raise FlowUnreadableError("the flow does not come from a file, so that nothing stands beside it")


def import_maestro(
    text: str,
    *,
    file: str = "flow.yaml",
    read: FlowReader = no_files,
    fallback_id: str = "imported",
    task_id: str | None = None,
    allow_points: bool = False,
) -> Imported:
    """A task template from a flow. Never raises for bad input.

    ``file`` is how the report calls the flow. ``task_id`` names the task, else the flow's `name` does, else
    ``fallback_id``. ``read`` gives the flows that it runs.
    """
    shared = _Shared(Draft(Reporter()), Variables(), read, allow_points=allow_points)
    parsed = _parsed(shared, file, text)
    if parsed is None:
        return shared.draft.finished({})
    flow = _Flow(shared, file, parsed, trail=(file,))
    steps = flow.steps()
    shared.notes(flow.scope)
    wanted = task_id or flow.name or fallback_id
    inputs = shared.variables.inputs or None
    return shared.draft.finished(without_gaps(taskId=building.task_id(wanted), inputs=inputs, steps=[*steps]))


@dataclass(slots=True)
class _Shared:
    """What all flows of one import have in common."""

    draft: Draft
    variables: Variables
    read: FlowReader
    allow_points: bool = field(kw_only=True)
    flows: int = 1
    compared_text: bool = False
    launched: bool = False

    def notes(self, scope: Scope) -> None:
        """What is to be said once about the whole task."""
        if self.compared_text:
            message = (
                "nodes to touch are named by their text, and exactly one must match; Maestro also compares hints and "
                "descriptions, without regard to case, and takes one of several"
            )
            hint = "Where a label is a content description, write `description`; for one of several add `index`."
            scope.normalised((), ImportCode.DIFFERS, message, hint)
        if self.launched:
            message = "Maestro grants an app all permissions when it launches it; OPEN grants none"
            scope.normalised((), ImportCode.DIFFERS, message, "Grant them before the run, or answer the dialogs.")


def _parsed(shared: _Shared, file: str, text: str) -> FlowText | None:
    try:
        return read_flow(text)
    except BadYamlError as error:
        line = error.line
        scope = Scope(shared.draft.reporter, lambda _place: f"{file}:{line}", only_texts=True)
        scope.refused((), ImportCode.BAD_YAML, error.message, error.hint)
        return None


class _Flow:
    """One file. ``trail``: the files that led here, itself last."""

    def __init__(self, shared: _Shared, file: str, parsed: FlowText, *, trail: tuple[str, ...]) -> None:
        self._shared = shared
        self._file = file
        self._trail = trail
        self._documents = parsed.documents
        self.scope = Scope(shared.draft.reporter, lambda place: f"{file}:{parsed.line(place)}", only_texts=True)
        self._selectors = Selectors(self.scope, shared.variables, allow_points=shared.allow_points)
        self.name: str | None = None
        self._app_id: str | None = None

    def steps(self, *, app_id: str | None = None) -> list[Step]:
        """The steps of the whole file. ``app_id`` is that of the flow that runs it."""
        self._app_id = app_id
        if not 1 <= len(self._documents) <= 2:
            message = f"the file holds {len(self._documents)} documents; expected the configuration and the commands"
            self.scope.refused((), ImportCode.UNKNOWN_FORM, message, EXAMPLE)
            return []
        last = len(self._documents) - 1
        before = self._config(self._documents[0]) if last else []
        steps = [*before, *self._commands((last,), self._documents[last], depth=1)]
        self._shared.compared_text |= self._selectors.compared_text
        return steps

    def _config(self, config: Json) -> list[Step]:
        if config is None:
            return []
        if not isinstance(config, dict):
            message = f"the configuration is {described(config)}; expected an object"
            self.scope.refused((0,), ImportCode.WRONG_TYPE, message, EXAMPLE)
            return []
        fields = Fields(self.scope, (0,), config, CONFIG, what="the configuration", example=EXAMPLE)
        env = fields.raw("env")
        if isinstance(env, dict):
            self._shared.variables.declare(self.scope, fields.at("env"), env)
        elif env is not None:
            fields.refuse("env", ImportCode.WRONG_TYPE, "`env` is no object", "`env: {NAME: value}`")
        app_id = fields.text("appId")
        if app_id is not None:
            self._app_id = self._shared.variables.text(self.scope, fields.at("appId"), app_id)
        self.name = fields.text("name")
        for each in ASIDE:
            if each in fields:
                self._shared.draft.aside[each] = fields.raw(each)
                message = f"{name(each)} has no place in a task document and stands in the report alone"
                self.scope.normalised(fields.at(each), ImportCode.KEPT_ASIDE, message)
        if "jsEngine" in fields:
            message = "`jsEngine` needs nothing, since no JavaScript is run"
            self.scope.normalised(fields.at("jsEngine"), ImportCode.NOT_NEEDED, message)
        if "url" in fields:
            hint = "Import flows for Android apps."
            fields.refuse("url", ImportCode.NOT_SUPPORTED, "the flow is for a web page in a browser", hint)
        if "onFlowComplete" in fields:
            message = "`onFlowComplete` also runs after a failure, and a task has nothing that does"
            fields.refuse("onFlowComplete", ImportCode.NOT_SUPPORTED, message, "Make a second task of it.")
        if "onFlowStart" not in fields:
            return []
        return self._commands(fields.at("onFlowStart"), fields.raw("onFlowStart"), depth=1)

    def _commands(self, place: Place, value: Json, *, depth: int) -> list[Step]:
        if not isinstance(value, list):
            message = f"found {described(value)}; expected a list of commands"
            self.scope.refused(place, ImportCode.WRONG_TYPE, message, "Each begins with `- `: `- tapOn: Buy`.")
            return []
        if depth > MAX_COMMAND_DEPTH:
            message = f"commands are nested more than {MAX_COMMAND_DEPTH} deep"
            self.scope.refused(place, ImportCode.TOO_DEEP, message, "Nest less deeply.")
            return []
        if not value:
            self.scope.refused(place, ImportCode.EMPTY_STEPS, "the list has no commands", "For example `- back`.")
        steps: list[Step] = []
        for position, each in enumerate(value):
            if self.scope.reporter.full:
                break  # nothing of the rest would be told
            steps += self._command((*place, position), each, depth=depth)
        return steps

    def _command(self, place: Place, value: Json, *, depth: int) -> list[Step]:
        if isinstance(value, str):
            value = {value: None}
        if not isinstance(value, dict) or len(value) != 1:
            message = f"found {described(value)}; expected one command"
            if isinstance(value, dict) and value:
                message = f"found {len(value)} names in one command: {', '.join(name(each) for each in value)}"
            hint = "A command has one name; what belongs to it is indented below: `- tapOn:`, then `    text: Buy`."
            self.scope.refused(place, ImportCode.WRONG_TYPE, message, hint)
            return []
        ((word, argument),) = value.items()
        at = (*place, word)
        known = (*COMMANDS, *CONTAINERS)
        command = word if word in known else {folded(each): each for each in known}.get(folded(word))
        if command is None:
            self._unknown(place, word, known)
            return []
        if command != word:
            message = f"the command {name(word)} is read as {name(command)}"
            self.scope.normalised(place, ImportCode.SPELLING, message)
        fields = self._fields(at, command, argument)
        if fields is None:
            return []
        before = self.scope.reporter.refusals
        finished = self._finished(place, command, fields, self._made(command, fields, depth=depth))
        if finished and self.scope.reporter.refusals == before:
            words = ", ".join(f"{step['action']} {name(str(step['id']))}" for step in finished)
            self.scope.mapped(place, f"{name(command)} became {words}")
        return finished

    def _unknown(self, place: Place, word: str, known: tuple[str, ...]) -> None:
        reason = {folded(each): why for each, why in NOT_SUPPORTED.items()}.get(folded(word))
        if reason:
            message = f"{name(word)} cannot be done: {reason}"
            self.scope.refused(place, ImportCode.NOT_SUPPORTED, message, "Take it out if the task is right without it.")
            return
        self.scope.refused(place, ImportCode.UNKNOWN_TYPE, f"{name(word)} is no command", meant(word, known))

    def _fields(self, place: Place, command: str, argument: Json) -> Fields | None:
        """The fields of a command, whether it was written with all of them, with its main one alone, or with none."""
        kind = COMMANDS.get(command)
        names = kind.fields if kind else CONTAINERS[command]
        short = kind.short if kind else "file" if command == "runFlow" else ""
        example = kind.example if kind else EXAMPLES[command]
        if isinstance(argument, str) and short:
            argument = {short: argument}
        if not isinstance(argument, dict | None):
            message = f"{name(command)} has {described(argument)}; expected its fields"
            self.scope.refused(place, ImportCode.WRONG_TYPE, message, f"For example: {example}")
            return None
        return Fields(self.scope, place, argument or {}, (*names, *COMMON), what=name(command), example=example)

    def _made(self, command: str, fields: Fields, *, depth: int) -> list[Step]:
        if command == "repeat":
            return self._repeat(fields, depth=depth)
        if command == "runFlow":
            return self._run_flow(fields, depth=depth)
        if command == "launchApp":
            self._shared.launched = True
        return COMMANDS[command].make(
            Command(self.scope, self._shared.variables, self._selectors, fields, self._app_id)
        )

    def _finished(self, place: Place, command: str, fields: Fields, made: list[Step]) -> list[Step]:
        """The steps with ids, the last with the command's label and `optional`."""
        label = fields.text("label")
        optional = fields.truth("optional")
        if made and command != "runFlow":
            label = None if label is None else self._shared.variables.text(self.scope, fields.at("label"), label)
            made[-1] = without_gaps(label=label or None) | made[-1] | without_gaps(optional=optional or None)
        return [self._named(step, command, place) for step in made]

    def _named(self, step: Step, command: str, place: Place) -> Step:
        if "id" in step:
            return step
        for each in ("steps", "then"):
            inner = step.get(each)
            if isinstance(inner, list):
                step = step | {
                    each: [self._named(one, command, place) if isinstance(one, dict) else one for one in inner]
                }
        named = {"id": self._shared.draft.ids.made(_kebab(command), _telling(step)), **step}
        self._shared.draft.came_from(named, self.scope.show(place))
        return named

    def _repeat(self, fields: Fields, *, depth: int) -> list[Step]:
        times = fields.whole("times", low=1, high=MAX_ITERATIONS, unit="rounds")
        until = self._until(fields)
        if "times" not in fields:
            if "while" not in fields:
                fields.missing("times", "while")
            else:
                message = f"the loop has no bound in the file; it ends after {MAX_ITERATIONS} rounds at most"
                self.scope.normalised(fields.place, ImportCode.DIFFERS, message, "Give it `times` as well.")
        if "commands" not in fields:
            fields.missing("commands")
            return []
        steps = self._commands(fields.at("commands"), fields.raw("commands"), depth=depth + 1)
        return [without_gaps(action="REPEAT", maxIterations=times or MAX_ITERATIONS, until=until, steps=[*steps])]

    def _until(self, fields: Fields) -> Step | None:
        """What ends a loop: that its `while` no longer holds."""
        holder = self._condition_holder(fields, "while")
        if holder is None:
            return None
        found = conditions(self._selectors, self.scope, fields.at("while"), holder, what="`while`", negated=True)
        if found is None:
            return None
        if isinstance(found, str) or not found:
            message = "`while` says nothing that changes on an Android phone"
            hint = "Say what is seen: `visible` or `notVisible`."
            fields.refuse("while", ImportCode.NOT_SUPPORTED, message, hint)
            return None
        message = "`while` is decided on one look before each round; Maestro waits a while for it to hold"
        self.scope.normalised(fields.at("while"), ImportCode.DIFFERS, message)
        return found[0] if len(found) == 1 else {"any": [*found]}

    def _condition_holder(self, fields: Fields, field: str) -> Mapping[str, Json] | None:
        value = fields.raw(field)
        if value is None or isinstance(value, dict):
            return value
        example = "`visible: Sign in`"
        message = f"{name(field)} is {described(value)}; expected {', '.join(name(each) for each in CONDITION)}"
        fields.refuse(field, ImportCode.WRONG_TYPE, message, f"For example: {example}")
        return None

    def _run_flow(self, fields: Fields, *, depth: int) -> list[Step]:
        holder = self._condition_holder(fields, "when")
        found: list[Step] | str | None = []
        if holder is not None:
            found = conditions(self._selectors, self.scope, fields.at("when"), holder, what="`when`")
        if found == NEVER:
            message = "`runFlow` is left out: its `when` is for another platform and never holds on Android"
            self.scope.normalised(fields.place, ImportCode.NOT_NEEDED, message)
            return []
        env = fields.raw("env")
        if isinstance(env, dict):
            self._shared.variables.declare(self.scope, fields.at("env"), env)
        elif env is not None:
            fields.refuse("env", ImportCode.WRONG_TYPE, "`env` is no object", "`env: {NAME: value}`")
        inner = self._inner(fields, depth=depth)
        label = fields.text("label")
        common = without_gaps(label=escaped(label) if label else None, optional=fields.truth("optional") or None)
        if found is None or isinstance(found, str):
            return []
        if not found:
            return [_step("GROUP", steps=[*inner], **common)] if common else inner
        condition: Step = found[0] if len(found) == 1 else {"all": [*found]}
        message = (
            f"`when` waits up to {OPTIONAL_LOOKUP_MS // 1000} s for its condition, as Maestro does, and then decides"
        )
        self.scope.normalised(fields.at("when"), ImportCode.DIFFERS, message, "Take the WAIT out to decide at once.")
        (wait,) = waits(condition, OPTIONAL_LOOKUP_MS)
        return [wait | {"optional": True}, _step("IF", condition=condition, then=[*inner], **common)]

    def _inner(self, fields: Fields, *, depth: int) -> list[Step]:
        if ("file" in fields) == ("commands" in fields):
            if "file" in fields:
                fields.refuse("file", ImportCode.BAD_VALUE, "`file` and `commands` are both given", "Keep one.")
            else:
                fields.missing("file", "commands")
            return []
        if "commands" in fields:
            return self._commands(fields.at("commands"), fields.raw("commands"), depth=depth + 1)
        requested = fields.text("file") or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self._file), requested.replace("\\", "/")))
        problem = self._not_followed(requested, path)
        text = ""
        if not problem:
            try:
                text = self._shared.read(path)
            except FlowUnreadableError as error:
                problem = str(error)
        if problem:
            message = f"the flow {shown(requested)} is not followed: {problem}"
            hint = "Put it into the folder of the flow that is imported, or write its commands in its place."
            fields.refuse("file", ImportCode.FILE_NOT_FOLLOWED, message, hint)
            return []
        self._shared.flows += 1
        parsed = _parsed(self._shared, path, text)
        if parsed is None:
            return []
        return _Flow(self._shared, path, parsed, trail=(*self._trail, path)).steps(app_id=self._app_id)

    def _not_followed(self, requested: str, path: str) -> str:
        if "${" in requested:
            return "its name is computed"
        if posixpath.isabs(path) or path.split("/", maxsplit=1)[0] == ".." or path in (".", ""):
            return "it does not lie in the folder of the flow that is imported"
        if path in self._trail:
            return "it runs itself"
        if len(self._trail) >= MAX_FLOW_DEPTH:
            return f"flows run flows more than {MAX_FLOW_DEPTH} deep"
        return f"the task would be made of more than {MAX_FLOWS} flows" if self._shared.flows >= MAX_FLOWS else ""


def _step(action: str, **fields: Json) -> Step:
    return {"action": action, **fields}


def _kebab(command: str) -> str:
    return "".join(f"-{char.lower()}" if char.isupper() else char for char in command)


def _telling(step: Step) -> str:
    """What tells a step from others of its kind: what it touches, types or names."""
    told: Json = step.get("selector") or step.get("until") or step.get("condition")
    if told == {"focused": True}:
        told = None
    while isinstance(told, dict | list) and told:
        told = next(iter(told.values())) if isinstance(told, dict) else told[0]
    words = [told, step.get("packageName"), step.get("key"), step.get("direction"), step.get("name")]
    word = next((each for each in words if isinstance(each, str)), "")
    return word.removeprefix("(?i)")
