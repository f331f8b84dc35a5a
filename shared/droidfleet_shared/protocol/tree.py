"""The tree of a task's steps: which lists a step holds, and every step with its path."""

from __future__ import annotations

from collections.abc import Iterator

from droidfleet_shared.protocol.steps import GroupStep, IfStep, RepeatStep, Step


def lists_of(step: Step) -> tuple[tuple[str, tuple[Step, ...]], ...]:
    """The lists of steps in a container, each by the name of its field, in document order; empty for a leaf."""
    match step:
        case GroupStep() | RepeatStep():
            return (("steps", step.steps),)
        case IfStep():
            then = ("then", step.then)
            return (then,) if step.otherwise is None else (then, ("else", step.otherwise))
        case _:
            return ()


def walk(steps: tuple[Step, ...], path: str = "/steps") -> Iterator[tuple[str, Step]]:
    """Every step with its JSON Pointer, a container before what is in it; ``path`` is that of the list."""
    for position, step in enumerate(steps):
        here = f"{path}/{position}"
        yield here, step
        for field, inner in lists_of(step):
            yield from walk(inner, f"{here}/{field}")
