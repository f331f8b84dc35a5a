"""Writes into variables along a path. A write goes to the innermost scope that has the path's first name."""

from __future__ import annotations

from pydantic import JsonValue

from droidfleet_agent.virtual_phone.scenario.template import Scope, as_number, lookup, walk_into

MAX_ELEMENTS = 2_000
"""Elements of one list variable; further ones are not added."""


def assign(scope: Scope, path: str, value: JsonValue) -> None:
    """Sets the value at ``path``. A path through something that is no mapping or list changes nothing."""
    parts = tuple(path.split("."))
    names = next((names for names in scope if parts[0] in names), None)
    if not isinstance(names, dict):
        return
    holder: JsonValue = names if len(parts) == 1 else walk_into(names[parts[0]], parts[1:-1])
    last = parts[-1]
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list) and last.isdigit() and int(last) < len(holder):
        holder[int(last)] = value


def add_to(scope: Scope, path: str, amount: JsonValue) -> None:
    """Adds a number to the number at ``path``."""
    assign(scope, path, as_number(lookup(scope, tuple(path.split(".")))) + as_number(amount))


def append_to(scope: Scope, path: str, element: JsonValue) -> None:
    """Adds an element to the list at ``path``."""
    elements = lookup(scope, tuple(path.split(".")))
    if isinstance(elements, list) and len(elements) < MAX_ELEMENTS:
        elements.append(element)


def move_in(scope: Scope, path: str, at: JsonValue, to: JsonValue) -> None:
    """Moves the element at one position of the list at ``path`` to another."""
    elements = lookup(scope, tuple(path.split(".")))
    here, there = int(as_number(at)), int(as_number(to))
    if isinstance(elements, list) and 0 <= here < len(elements) and 0 <= there < len(elements):
        elements.insert(there, elements.pop(here))


def remove_from(scope: Scope, path: str, at: JsonValue) -> None:
    """Takes the element at a position out of the list at ``path``."""
    elements = lookup(scope, tuple(path.split(".")))
    position = int(as_number(at))
    if isinstance(elements, list) and 0 <= position < len(elements):
        del elements[position]
