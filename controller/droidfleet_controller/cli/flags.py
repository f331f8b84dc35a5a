"""Sets of options that several commands share: declared once, as a dataclass whose fields are annotated for Typer."""

from __future__ import annotations

import functools
import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F")


def with_flags(**sets: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The command gets an option for each field of each set, and the sets themselves as its arguments of these names.

    Typer reads a command's options off its signature, so this writes one.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters.values()
        parameters = [each.replace(annotation=hints[each.name]) for each in own if each.name not in sets]
        for flags in sets.values():
            parameters += _parameters(flags)

        @functools.wraps(command)
        def called(**given: object) -> None:
            for name, flags in sets.items():
                given[name] = flags(**{each.name: given.pop(each.name) for each in fields(flags)})
            command(**given)

        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where inspect looks first
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        return called

    return decorate


def _parameters(flags: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(flags, include_extras=True)
    return [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in fields(flags)
    ]
