"""What is worth a look before a task runs, and stops nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from droidfleet_shared.protocol.bounds import TaskBound, task_bound
from droidfleet_shared.protocol.codes import WarningCode
from droidfleet_shared.protocol.effects import EffectWords, effect_words
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.rules import raw_steps
from droidfleet_shared.protocol.steps import RepeatStep
from droidfleet_shared.protocol.steps.base import STEP_LISTS
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.tree import walk
from droidfleet_shared.protocol.wording import name, shown

LONG_BOUND_MS = 24 * 3_600_000
"""A day: a task that may hold a phone for longer has nearly always a loop without a thought for its end."""

MAX_WARNINGS = 200
"""In one answer; a longer list helps nobody."""

_TOUCHED = {
    "CLICK": ("selector", "taps"),
    "LONG_CLICK": ("selector", "presses"),
    "SELECT_OPTION": ("option", "chooses"),
    "DRAG": ("to", "drags something to"),
    "INPUT": ("selector", "presses Enter in"),
}
"""By action: the field that names what is touched last, and a verb for it. INPUT counts only with `submit`."""

_LABELS = (
    "text",
    "textContains",
    "textStartsWith",
    "textMatches",
    "description",
    "descriptionContains",
    "descriptionStartsWith",
    "descriptionMatches",
    "hint",
    "resourceId",
    "ocrText",
    "xpath",
)
_XPATH_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"")
_REFERENCE = re.compile(r"\$\$\{|\$\{(?:(inputs)\.)?([^{}]*)\}")


def warnings(
    document: Json, task: TaskTemplate | None = None, *, words: EffectWords | None = None
) -> Iterator[Finding]:
    """Everything worth a look in a raw document, valid or not; ``task`` is its model where it is valid.

    ``words``: those that speak of an effect that cannot be undone, by default the list of this package.
    """
    if not isinstance(document, dict):
        return
    values = _known_texts(document)
    for place, step in raw_steps(document):
        yield from _irreversible(place, step, values, words or effect_words())
        yield from _points(place, step)
    yield from _secrets(document)
    if task is not None:
        yield from _long_bound(task, task_bound(task))


def _irreversible(place: Place, step: dict[str, Json], values: dict[str, str], words: EffectWords) -> Iterator[Finding]:
    action = step.get("action")
    if not isinstance(action, str) or action not in _TOUCHED or (action == "INPUT" and step.get("submit") is not True):
        return
    field, verb = _TOUCHED[action]
    for where, written in _labels((*place, field), step.get(field)):
        label = _REFERENCE.sub(lambda found: _meant(found, values), written)
        texts = " ".join(_XPATH_TEXT.findall(label)) if where[-1] == "xpath" else label
        if word := words.found_in(texts):
            yield Finding(
                where,
                WarningCode.IRREVERSIBLE_EFFECT,
                f"the step {verb} {shown(label)}; {name(word)} suggests an effect that cannot be undone",
                "Make sure that the selector can mean nothing else, and try the task on a phone where it does no harm.",
            )
            return


def _labels(place: Place, selector: Json) -> Iterator[tuple[Place, str]]:
    """The texts by which a selector names its node, those of a descendant (`has`) included."""
    while isinstance(selector, dict):
        for field in _LABELS:
            if isinstance(label := selector.get(field), str):
                yield (*place, field), label
        image = selector.get("image")
        if isinstance(image, dict) and isinstance(artifact := image.get("artifact"), str):
            yield (*place, "image", "artifact"), artifact
        place, selector = (*place, "has"), selector.get("has")


def _meant(found: re.Match[str], values: dict[str, str]) -> str:
    """What stands for a reference: the value where it is known, and nothing where it comes with the run."""
    if found[0] == "$${":
        return "${"
    return values.get(found[2], " ") if found[1] else " "


def _known_texts(document: dict[str, Json]) -> dict[str, str]:
    """The texts among the inputs' values; never a secret."""
    declared, given = document.get("inputs"), document.get("inputValues")
    texts: dict[str, str] = {}
    for key, declaration in declared.items() if isinstance(declared, dict) else ():
        if isinstance(declaration, dict) and declaration.get("type") == "string":
            value = given[key] if isinstance(given, dict) and key in given else declaration.get("default")
            if isinstance(value, str):
                texts[key] = value
    return texts


def _points(place: Place, step: dict[str, Json]) -> Iterator[Finding]:
    todo: list[tuple[Place, Json]] = [((*place, key), value) for key, value in step.items() if key not in STEP_LISTS]
    while todo:
        where, value = todo.pop(0)
        if isinstance(value, list):
            todo += [((*where, position), each) for position, each in enumerate(value)]
        elif isinstance(value, dict):
            if where[-1] == "point":
                yield Finding(
                    where,
                    WarningCode.POINT_SELECTOR,
                    "the step touches a point of the display, whatever is there",
                    "Name the node by what is seen of it (`text`, `description`, `resourceId`, `ocrText`, `image`); "
                    "`droidfleet device pick` suggests a selector.",
                )
            else:
                todo += [((*where, key), each) for key, each in value.items()]


def _secrets(document: dict[str, Json]) -> Iterator[Finding]:
    declared, given = document.get("inputs"), document.get("inputValues")
    for key, declaration in declared.items() if isinstance(declared, dict) else ():
        if not isinstance(declaration, dict) or declaration.get("type") != "secret":
            continue
        places: list[Place] = [("inputs", key, "default")] if "default" in declaration else []
        places += [("inputValues", key)] if isinstance(given, dict) and key in given else []
        for place in places:
            yield Finding(
                place,
                WarningCode.SECRET_IN_DOCUMENT,
                f"the value of the secret {name(key)} stands in the document, where everybody who reads it sees it",
                "Leave it out and give it with each run.",
            )


def _long_bound(task: TaskTemplate, bound: TaskBound) -> Iterator[Finding]:
    if bound.total.time_ms <= LONG_BOUND_MS:
        return
    hours = bound.total.time_ms // 3_600_000
    longest = max(
        ((path, step) for path, step in walk(task.steps) if isinstance(step, RepeatStep)),
        key=lambda found: bound.steps[found[0]].once.time_ms if bound.steps[found[0]].runs else 0,
        default=None,
    )
    if longest is None:
        place: Place = ("steps",)
        what = "its steps may take that long together"
    else:
        path, step = longest
        place = tuple(int(token) if token.isdecimal() else token for token in path.split("/")[1:])
        what = f"the REPEAT {name(step.id)} alone may take {bound.steps[path].once.time_ms // 3_600_000:,} hours"
    yield Finding(
        place,
        WarningCode.LONG_BOUND,
        f"the task may run for {hours:,} hours: {what}",
        "Give the REPEAT or the task a `maxDurationMs`, fewer `maxIterations`, or its steps a shorter `timeoutMs`."
        if longest is not None
        else "Give the task a `maxDurationMs`.",
    )
