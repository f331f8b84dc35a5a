"""Explains a valid task to people: what each step does, what all of it can take, what is worth a look, and what each
`${...}` stands for.

Pure. The values of secrets never get in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from droidfleet_shared.protocol.bounds import Bound, StepBound, TaskBound, task_bound
from droidfleet_shared.protocol.explain_phrases import Language
from droidfleet_shared.protocol.explain_words import Words, shown
from droidfleet_shared.protocol.pointers import Json, pointer
from droidfleet_shared.protocol.steps import ExtractStep, ExtractTextStep, Step
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.tree import lists_of, walk
from droidfleet_shared.protocol.values import REFERENCE, as_text
from droidfleet_shared.secrets import HIDDEN


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """One step. ``does`` and ``notes`` are words; ``bound`` is one run's; ``lists`` are the steps inside, by field."""

    path: str
    id: str
    action: str
    label: str
    does: str
    notes: tuple[str, ...]
    bound: Bound
    runs: int
    lists: tuple[tuple[str, tuple[StepExplanation, ...]], ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A `${...}` of the document: what it stands for, in words, and where it stands, as JSON Pointers."""

    name: str
    resolves: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A whole task."""

    task_id: str
    bound: Bound
    steps: tuple[StepExplanation, ...]
    references: tuple[Reference, ...]


def explain(task: TaskTemplate, document: Json, *, language: Language = "en") -> Explanation:
    """Explains a task; ``document`` is the raw tree that it was made from."""
    words = Words(language)
    bound = task_bound(task)
    return Explanation(
        task.task_id,
        bound.total,
        _steps(task.steps, "/steps", bound, words),
        tuple(
            Reference(name, _resolved(task, name, words), tuple(places)) for name, places in _found(document).items()
        ),
    )


def _steps(steps: tuple[Step, ...], path: str, bound: TaskBound, words: Words) -> tuple[StepExplanation, ...]:
    return tuple(_step(step, f"{path}/{position}", bound, words) for position, step in enumerate(steps))


def _step(step: Step, path: str, bound: TaskBound, words: Words) -> StepExplanation:
    mine: StepBound = bound.steps[path]
    return StepExplanation(
        path=path,
        id=step.id,
        action=step.action,
        label=step.label or "",
        does=words.action(step),
        notes=tuple(words.notes(step)),
        bound=mine.once,
        runs=mine.runs,
        lists=tuple((field, _steps(inner, f"{path}/{field}", bound, words)) for field, inner in lists_of(step)),
    )


def _found(document: Json) -> Mapping[str, list[str]]:
    """The references in the texts of a document's steps, in document order, each with its places."""
    found: dict[str, list[str]] = {}

    def visit(value: Json, place: tuple[str | int, ...]) -> None:
        if isinstance(value, str):
            for match in REFERENCE.finditer(value):
                if match[1]:
                    places = found.setdefault(match[0], [])
                    if pointer(place) not in places:
                        places.append(pointer(place))
        elif isinstance(value, dict):
            for key, each in value.items():
                visit(each, (*place, key))
        elif isinstance(value, list):
            for position, each in enumerate(value):
                visit(each, (*place, position))

    if isinstance(document, dict):
        visit(document.get("steps"), ("steps",))
    return found


def _resolved(task: TaskTemplate, name: str, words: Words) -> str:
    kind, _, field = name.removeprefix("${").removesuffix("}").partition(".")
    if kind == "outputs":
        writers = [shown(step.id) for _, step in walk(task.steps) if field in _outputs(step)]
        return words.phrase("from output" if len(writers) == 1 else "from outputs", steps=words.joined(writers))
    declaration = task.inputs[field]
    given = task.input_values.get(field)
    value = declaration.default if given is None else given
    if value is None:
        return words.phrase("to be given", type=declaration.type)
    text = shown(value) if isinstance(value, str) else as_text(value)
    key = "from default" if given is None else "from value"
    return words.phrase(key, value=HIDDEN if declaration.type == "secret" else text)


def _outputs(step: Step) -> set[str]:
    match step:
        case ExtractTextStep():
            return {step.output_field}
        case ExtractStep():
            return {field.output_field for field in step.fields}
        case _:
            return set()
