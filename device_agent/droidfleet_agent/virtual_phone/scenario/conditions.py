"""Conditions of a scenario: on variables only, pure, bounded by the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Discriminator, Field, StringConstraints, Tag
from typing_extensions import TypeAliasType

from droidfleet_agent.virtual_phone.scenario.base import Model, VariablePath
from droidfleet_agent.virtual_phone.scenario.template import (
    PATH_PATTERN,
    Path,
    Scope,
    Value,
    as_number,
    lookup,
    to_text,
)

Truth = Annotated[str, StringConstraints(pattern=f"^!?{PATH_PATTERN}$", max_length=200)]
"""``path``: holds when the variable is true, not zero, not empty. ``!path``: when it is not."""


class Compare(Model):
    """One variable against a value; every comparison given must hold."""

    var: VariablePath = Field(description="The variable to look at.")
    equals: Value | None = Field(None, description="Equal as text or as value.")
    not_equals: Value | None = Field(None, description="Not equal as text or as value.")
    contains: Value | None = Field(None, description="A text in a text, ignoring case, or an element of a list.")
    at_least: float | None = Field(
        None, description="The number in it, or the length of a text or list, is at least this."
    )
    at_most: float | None = Field(
        None, description="The number in it, or the length of a text or list, is at most this."
    )


class All(Model):
    """Every one holds."""

    all: tuple[Condition, ...] = Field(min_length=1, max_length=20)


class AnyOf(Model):
    """At least one holds."""

    any: tuple[Condition, ...] = Field(min_length=1, max_length=20)


class Not(Model):
    """It does not hold."""

    not_: Condition = Field(alias="not")


_KEYS = ("var", "all", "any", "not")


def _tag(value: Any) -> str | None:  # pydantic hands over whatever the document holds
    if isinstance(value, str):
        return "condition:truth"
    if isinstance(value, dict):
        return next((f"condition:{key}" for key in _KEYS if key in value), None)
    if isinstance(value, All):
        return "condition:all"
    if isinstance(value, AnyOf):
        return "condition:any"
    return "condition:not" if isinstance(value, Not) else "condition:var"


Condition = TypeAliasType(
    "Condition",
    Annotated[
        Annotated[Truth, Tag("condition:truth")]
        | Annotated[Compare, Tag("condition:var")]
        | Annotated[All, Tag("condition:all")]
        | Annotated[AnyOf, Tag("condition:any")]
        | Annotated[Not, Tag("condition:not")],
        Discriminator(_tag),
    ],
)


def holds(condition: Condition, scope: Scope) -> bool:
    """Whether the condition holds in the scope."""
    if isinstance(condition, str):
        negated = condition.startswith("!")
        return bool(lookup(scope, tuple(condition.lstrip("!").split(".")))) != negated
    if isinstance(condition, Compare):
        return _compare(condition, scope)
    if isinstance(condition, All):
        return all(holds(inner, scope) for inner in condition.all)
    if isinstance(condition, AnyOf):
        return any(holds(inner, scope) for inner in condition.any)
    return not holds(condition.not_, scope)


def condition_paths(condition: Condition) -> Iterator[Path]:
    """Every path it reads."""
    if isinstance(condition, str):
        yield tuple(condition.lstrip("!").split("."))
    elif isinstance(condition, Compare):
        yield tuple(condition.var.split("."))
        for value in (condition.equals, condition.not_equals, condition.contains):
            if value is not None:
                yield from value.paths()
    elif isinstance(condition, All):
        for inner in condition.all:
            yield from condition_paths(inner)
    elif isinstance(condition, AnyOf):
        for inner in condition.any:
            yield from condition_paths(inner)
    else:
        yield from condition_paths(condition.not_)


def _compare(condition: Compare, scope: Scope) -> bool:
    value = lookup(scope, tuple(condition.var.split(".")))
    size = len(value) if isinstance(value, str | list | dict) else as_number(value)
    if condition.equals is not None and not _equal(value, condition.equals.resolve(scope)):
        return False
    if condition.not_equals is not None and _equal(value, condition.not_equals.resolve(scope)):
        return False
    if condition.contains is not None:
        part = condition.contains.resolve(scope)
        if isinstance(value, list):
            if part not in value:
                return False
        elif to_text(part).casefold() not in to_text(value).casefold():
            return False
    if condition.at_least is not None and size < condition.at_least:
        return False
    return condition.at_most is None or size <= condition.at_most


def _equal(left: object, right: object) -> bool:
    if isinstance(left, dict | list) or isinstance(right, dict | list):
        return left == right
    return to_text(left) == to_text(right)  # type: ignore[arg-type]  # both are JSON scalars here


All.model_rebuild()
AnyOf.model_rebuild()
Not.model_rebuild()
