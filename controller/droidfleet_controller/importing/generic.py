"""*generic_steps* documents: ``{name, task_type, target, schedule, retry, enabled, params: {max_duration, steps}}``.

Executors of this form skip what they do not understand. Here each such thing is refused, all at once, with what to
write instead. When and where the task runs (target, schedule, retry, enabled) is dispatch's business and is kept aside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from droidfleet_controller.importing import building
from droidfleet_controller.importing.building import Draft, Step, escaped, without_gaps
from droidfleet_controller.importing.fields import Fields, meant
from droidfleet_controller.importing.generic_steps import LEAVES, SELECTOR, selector_of
from droidfleet_controller.importing.report import ImportCode, Imported, Reporter, Scope
from droidfleet_controller.schedules.cron import CronError, parse
from droidfleet_shared.protocol.pointers import Json, Place, pointer
from droidfleet_shared.protocol.steps.flow import DEFAULT_ITERATIONS, MAX_ITERATIONS
from droidfleet_shared.protocol.suggestions import folded
from droidfleet_shared.protocol.wording import cut, described, listed, name, quoted, shown

TASK_TYPE = "generic_steps"
MAX_DEPTH = 5
"""Lists of steps within each other, the outermost counted."""

MAX_NODES = 60
"""Steps in all."""

MAX_DURATION_S = 86_400

EXAMPLE = (
    '{"name": "buy-tea", "task_type": "generic_steps", "params": {"steps": '
    '[{"type": "open_app", "params": {"package": "com.example.shop"}}]}}'
)
ASIDE = {
    "target": "Name the devices when it is run: `droidfleet task run FILE --device NAME`.",
    "schedule": "Run it at those times: `droidfleet task run FILE --device NAME`, from cron for example.",
    "retry": "A new run is a new decision: repeat `droidfleet task run` after a failure that may be repeated.",
    "enabled": "What is not to run is not dispatched; a task document has no such switch.",
}
"""What belongs to dispatch, and what to do with it."""

CONTAINERS = {
    "group": '{"type": "group", "params": {"children": [{"type": "wait", "params": {"min": 1, "max": 2}}]}}',
    "loop": '{"type": "loop", "params": {"loop_mode": "rounds", "max_iterations": 3, "children": '
    '[{"type": "wait", "params": {"min": 1, "max": 2}}]}}',
    "if_el": '{"type": "if_el", "params": {"selector_type": "text", "selector_value": "Later", "then": '
    '[{"type": "click", "params": {"selector_type": "text", "selector_value": "Later"}}]}}',
}
"""The types that hold steps, each as it should be."""

CHILDREN = ("children", "then", "else")
TYPES = (*LEAVES, *CONTAINERS)
LOOP_MODES = {"rounds": "rounds", "count": "rounds", "duration": "duration"}

_CONTAINER_PARAMS = {
    "group": (),
    "loop": ("loop_mode", "max_iterations", "duration"),
    "if_el": SELECTOR,
}
_TYPE_SYNONYMS = {
    "tap": "click",
    "press": "click",
    "launch_app": "open_app",
    "start_app": "open_app",
    "kill_app": "stop_app",
    "close_app": "stop_app",
    "sleep": "wait",
    "delay": "wait",
    "wait_for_element": "wait_el",
    "if": "if_el",
    "if_exists": "if_el",
    "scroll_until": "swipe_until",
    "tap_xy": "click_xy",
    "repeat": "loop",
    "keyevent": "key_event",
    "press_key": "key_event",
    "wake": "screen_on",
}
_SCHEDULE_CRON = frozenset({"cron", "cronexpression", "crontab", "expression"})
_IN_PARAMS = "It belongs into `params`."
_PERCENT = re.compile(r"(\d{1,3})\s*%")


def import_generic(
    document: Json, *, fallback_id: str = "imported", task_id: str | None = None, allow_points: bool = False
) -> Imported:
    """A task template from a parsed document. Never raises for bad input.

    ``task_id`` names the task, else the document's `name` does, else ``fallback_id``.
    """
    reporter = Reporter()
    draft = Draft(reporter)
    scope = Scope(reporter, pointer)
    if not isinstance(document, dict):
        message = f"found {described(document)}; expected an object with `params` and in it `steps`"
        scope.refused((), ImportCode.UNKNOWN_FORM, message, f"For example: {EXAMPLE}")
        return draft.finished({})
    names = ("name", "task_type", "params", *ASIDE)
    elsewhere = {"steps": _IN_PARAMS, "maxduration": _IN_PARAMS}
    fields = Fields(scope, (), document, names, what="the document", example=EXAMPLE, elsewhere=elsewhere)
    named = fields.text("name")
    if not (task_id or named):
        scope.normalised((), ImportCode.ASSUMED, f"the document has no `name`; the task is called {name(fallback_id)}")
    _task_type(fields)
    _aside(fields, draft)
    task = _Steps(draft, scope, allow_points=allow_points)
    steps, duration = task.params(fields)
    wanted = task_id or named or fallback_id
    return draft.finished(without_gaps(taskId=building.task_id(wanted), maxDurationMs=duration, steps=steps))


def _task_type(fields: Fields) -> None:
    found = fields.text("task_type")
    if found is None:
        fields.scope.normalised((), ImportCode.ASSUMED, f"`task_type` is not given; {name(TASK_TYPE)} is taken")
    elif folded(found) != folded(TASK_TYPE):
        message = f"`task_type` is {shown(found)}, which is not imported"
        fields.refuse("task_type", ImportCode.UNKNOWN_FORM, message, f"Only {name(TASK_TYPE)} has steps to import.")
    elif found != TASK_TYPE:
        message = f"`task_type`: {shown(found)} is read as {shown(TASK_TYPE)}"
        fields.scope.normalised(fields.at("task_type"), ImportCode.SPELLING, message)


def _aside(fields: Fields, draft: Draft) -> None:
    for field, hint in ASIDE.items():
        if field not in fields:
            continue
        value = draft.aside[field] = fields.raw(field)
        message = f"{name(field)} is kept aside, a task document has no place for it: {_as_json(value)}"
        fields.scope.normalised(fields.at(field), ImportCode.KEPT_ASIDE, message, hint)
    for place, expression in _crons(fields.at("schedule"), fields.raw("schedule")):
        try:
            parse(expression)
        except CronError as error:
            message = f"{shown(expression)}, at character {error.position + 1}: {error.problem}"
            hint = f"{error.hint} Without a schedule, take the field out."
            fields.scope.refused(place, ImportCode.BAD_CRON, message, hint)


def _as_json(value: Json) -> str:
    return quoted(cut(json.dumps(value, ensure_ascii=False), limit=200))


def _crons(place: Place, schedule: Json) -> Iterator[tuple[Place, str]]:
    """The cron expressions of a schedule: itself when it is a text, else in the fields that are called so."""
    if isinstance(schedule, str):
        yield place, schedule
    elif isinstance(schedule, dict):
        for key, value in schedule.items():
            if folded(key) in _SCHEDULE_CRON and isinstance(value, str):
                yield (*place, key), value


class _Steps:
    """The tree of steps of one document."""

    def __init__(self, draft: Draft, scope: Scope, *, allow_points: bool) -> None:
        self._draft = draft
        self._scope = scope
        self._allow_points = allow_points
        self._nodes = 0

    def params(self, document: Fields) -> tuple[list[Json], int | None]:
        """The steps, and the bound on the whole task in milliseconds, of the document's `params`."""
        value = document.raw("params")
        if not isinstance(value, dict):
            if value is None:
                document.missing("params")
            else:
                document.refuse("params", ImportCode.WRONG_TYPE, f"`params` is {described(value)}; expected an object")
            return [], None
        place = document.at("params")
        what = "the document's `params`"
        fields = Fields(self._scope, place, value, ("max_duration", "steps"), what=what, example=EXAMPLE)
        seconds = fields.number("max_duration", low=1, high=MAX_DURATION_S, unit="seconds")
        if "steps" not in fields:
            fields.missing("steps")
            return [], None
        for own in _own_ids(fields.raw("steps")):
            self._draft.ids.set_aside(own)
        steps = self._list(fields.at("steps"), fields.raw("steps"), depth=1)
        if self._nodes > MAX_NODES:
            message = f"the task has more than {MAX_NODES} steps"
            hint = "Split it into several tasks, or make one of what repeats with a `loop`."
            fields.refuse("steps", ImportCode.TOO_MANY_STEPS, message, hint)
        return steps, None if seconds is None else round(seconds * building.MS_PER_S)

    def _list(self, place: Place, value: Json, *, depth: int) -> list[Json]:
        if not isinstance(value, list):
            message = f"found {described(value)}; expected a list of steps"
            self._scope.refused(place, ImportCode.WRONG_TYPE, message, f"For example: [{LEAVES['wait'].example}]")
            return []
        if depth > MAX_DEPTH:
            message = f"steps are nested more than {MAX_DEPTH} deep"
            hint = "Nest less deeply; a `group` without `probability` may be replaced by its children."
            self._scope.refused(place, ImportCode.TOO_DEEP, message, hint)
            return []
        if not value:
            message = "the list has no steps; other programs skip such a step without a word"
            hint = f"Give it a step or take the step that holds it out. For example: [{LEAVES['wait'].example}]"
            self._scope.refused(place, ImportCode.EMPTY_STEPS, message, hint)
        self._nodes += len(value)
        if self._nodes > MAX_NODES:
            return []
        steps = (self._step((*place, position), each, depth=depth) for position, each in enumerate(value))
        return [step for step in steps if step is not None]

    def _step(self, place: Place, value: Json, *, depth: int) -> Step | None:
        if not isinstance(value, dict):
            message = f"found {described(value)}; expected a step, which is an object"
            self._scope.refused(place, ImportCode.WRONG_TYPE, message, f"For example: {LEAVES['click'].example}")
            return None
        outer = ("id", "type", "label", "params", "probability", *CHILDREN)
        elsewhere = {folded(each): _IN_PARAMS for params in _ALL_PARAMS.values() for each in params}
        example = LEAVES["click"].example
        step = Fields(self._scope, place, value, outer, what="a step", example=example, elsewhere=elsewhere)
        before = self._scope.reporter.refusals
        kind = self._type(step)
        if kind is None:
            return None
        made = self._made(step, kind, depth=depth)
        if made is None:
            return None
        identity = self._identity(step, kind, made)
        label = step.text("label")
        made = {"id": identity, **without_gaps(label=escaped(label) if label else None), **made}
        self._draft.came_from(made, self._scope.show(place))
        if self._scope.reporter.refusals == before:
            self._scope.mapped(place, f"{name(kind)} became {made['action']} {name(identity)}")
        return made

    def _type(self, step: Fields) -> str | None:
        found = step.text("type", required=True)
        if found is None:
            return None
        kind = {folded(each): each for each in TYPES}.get(folded(found))
        if kind is None:
            message = f"{shown(found)} is no type of step; other programs skip it without a word"
            step.refuse("type", ImportCode.UNKNOWN_TYPE, message, meant(found, TYPES, _TYPE_SYNONYMS))
        elif kind != found:
            message = f"`type`: {shown(found)} is read as {shown(kind)}"
            self._scope.normalised(step.at("type"), ImportCode.SPELLING, message)
        return kind

    def _made(self, step: Fields, kind: str, *, depth: int) -> Step | None:
        params = self._params(step, kind)
        if params is None:
            return None
        if kind in LEAVES:
            made = LEAVES[kind].make(params)
            if kind == "click_xy" and not self._allow_points:
                message = "`click_xy` touches a point, whatever is there when it does"
                hint = "Use `click` with what is seen of the node, or import with --allow-points."
                self._scope.refused(step.place, ImportCode.POINT_NOT_ALLOWED, message, hint)
        else:
            made = self._container(step, kind, params, depth=depth)
        return made and {**made, **without_gaps(probability=_probability(step, params))}

    def _params(self, step: Fields, kind: str) -> Fields | None:
        """The fields of a step's `params`, with the lists of steps that stand beside them instead."""
        value = step.raw("params")
        what = f"`params` of {name(kind)}"
        example = LEAVES[kind].example if kind in LEAVES else CONTAINERS[kind]
        if value is None:
            if _ALL_PARAMS[kind] and not any(each in step for each in CHILDREN):
                message = f"{name(kind)} has no `params`; other programs skip such a step without a word"
                self._scope.refused(step.place, ImportCode.MISSING_FIELD, message, f"For example: {example}")
                return None
            value = {}
        if not isinstance(value, dict):
            step.refuse("params", ImportCode.WRONG_TYPE, f"`params` is {described(value)}; expected an object")
            return None
        names = (*_ALL_PARAMS[kind], "probability")
        beside = "It belongs beside `params`, not into it."
        elsewhere = {"id": beside, "type": beside, "label": beside}
        place = (*step.place, "params") if "params" in step else step.place
        return Fields(self._scope, place, value, names, what=what, example=example, elsewhere=elsewhere)

    def _container(self, step: Fields, kind: str, params: Fields, *, depth: int) -> Step | None:
        inner = {each: self._inner(step, params, each, depth=depth) for each in _lists(kind)}
        for each in CHILDREN:
            if each in step and each not in _lists(kind):
                message = f"{name(each)} is no field of {name(kind)}; nothing is left out silently"
                hint = f"Its steps go into {listed([name(one) for one in _lists(kind)], 'or')}."
                self._scope.refused(step.at(each), ImportCode.UNKNOWN_FIELD, message, hint)
        match kind:
            case "group":
                return without_gaps(action="GROUP", steps=inner["children"])
            case "loop":
                return _loop(params, inner["children"])
            case _:
                selector = selector_of(params, also=("ocr",))
                condition = None if selector is None else without_gaps(visible=selector)
                otherwise = inner["else"]
                return without_gaps(action="IF", condition=condition, then=inner["then"], **{"else": otherwise})

    def _inner(self, step: Fields, params: Fields, field: str, *, depth: int) -> list[Json] | None:
        """The steps in a container's list; None when it is an `else` without any."""
        holder = step if field in step else params
        if field in step and field in params:
            step.refuse(field, ImportCode.BAD_VALUE, f"{name(field)} is given twice", "Keep the one in `params`.")
            return None
        if field in step:
            message = f"{name(field)} stands beside `params` and is read as if it were in it"
            self._scope.normalised(step.at(field), ImportCode.SPELLING, message)
        value = holder.raw(field)
        if field == "else" and value in (None, []):
            if value == []:
                message = "an `else` without steps is left out; it does nothing either way"
                self._scope.normalised(holder.at(field), ImportCode.NOT_NEEDED, message)
            return None
        if value is None:
            params.missing(field)
            return None
        return self._list(holder.at(field), value, depth=depth + 1)

    def _identity(self, step: Fields, kind: str, made: Step) -> str:
        own = (step.text("id") or "").strip()
        if not own:
            identity = self._draft.ids.made(kind, _telling(made))
            message = f"the step has no id; it is called {name(identity)}"
            self._scope.normalised(step.place, ImportCode.ID_GIVEN, message)
            return identity
        identity = self._draft.ids.own(own)
        if identity != own:
            message = f"the id {shown(own)} is used already or cannot be one; it becomes {name(identity)}"
            self._scope.normalised(step.at("id"), ImportCode.ID_GIVEN, message)
        return identity


def _loop(params: Fields, steps: list[Json] | None) -> Step:
    mode = params.word("loop_mode", LOOP_MODES)
    if "loop_mode" not in params:
        message = "`loop_mode` is not given; `rounds` is taken"
        params.scope.normalised(params.place, ImportCode.ASSUMED, message)
    rounds = params.whole("max_iterations", low=1, high=MAX_ITERATIONS, unit="rounds")
    if "max_iterations" not in params:
        message = f"`max_iterations` is not given; the loop ends after {DEFAULT_ITERATIONS} rounds, the default"
        params.scope.normalised(params.place, ImportCode.ASSUMED, message)
    seconds = params.number("duration", low=1, high=MAX_DURATION_S, unit="seconds", required=mode == "duration")
    if mode != "duration" and seconds is not None:
        message = "`duration` is given although `loop_mode` counts rounds; the loop ends at whichever comes first"
        params.scope.normalised(params.at("duration"), ImportCode.DIFFERS, message)
    duration = None if seconds is None else round(seconds * building.MS_PER_S)
    return without_gaps(action="REPEAT", maxIterations=rounds, maxDurationMs=duration, steps=steps)


def _probability(step: Fields, params: Fields) -> int | None:
    """The chance in whole percent, from the step or its `params`."""
    holder = step if "probability" in step else params
    value = holder.raw("probability")
    if isinstance(value, str) and (percent := _PERCENT.fullmatch(value.strip())) and int(percent[1]) <= 100:
        return int(percent[1])
    chance = holder.number("probability", low=0, high=100, unit="percent")
    if chance is None:
        return None
    if chance == 1:
        message = "`probability` 1 may mean one percent or always"
        holder.refuse("probability", ImportCode.BAD_VALUE, message, 'Write "1%", or leave it out for always.')
        return None
    if 0 < chance < 1:
        message = f"`probability` {chance:g} is read as {chance * 100:g} percent"
        holder.scope.normalised(holder.at("probability"), ImportCode.ASSUMED, message)
        chance = round(chance * 100, 9)
    if chance != round(chance):
        message = f"`probability` must be whole percent here: {chance:g} is rounded to {round(chance)}"
        holder.scope.normalised(holder.at("probability"), ImportCode.DIFFERS, message)
    return round(chance)


def _lists(kind: str) -> tuple[str, ...]:
    return () if kind in LEAVES else ("then", "else") if kind == "if_el" else ("children",)


_ALL_PARAMS = {each: made.params for each, made in LEAVES.items()} | {
    each: (*params, *_lists(each)) for each, params in _CONTAINER_PARAMS.items()
}


def _telling(made: Step) -> str:
    """What tells a step from others of its kind: what it touches or names."""
    selector = made.get("selector") or made.get("until") or made.get("condition")
    while isinstance(selector, dict) and selector:
        selector = next(iter(selector.values()))
    words = [selector, made.get("packageName"), made.get("key"), made.get("direction")]
    return next((word for word in words if isinstance(word, str)), "")


def _own_ids(steps: Json) -> Iterator[str]:
    todo = [steps]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo.extend(value)
        elif isinstance(value, dict):
            if isinstance(value.get("id"), str | int):
                yield str(value["id"]).strip()
            todo.extend(value.get(each) for each in (*CHILDREN, "params"))
