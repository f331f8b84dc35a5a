"""EXTRACT: reads several values of one node, or of each row that matches, all on one look."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.messages import counted, cut, seen_on, selector_text
from droidfleet_agent.engine.outputs import MAX_OUTPUT, appended, bounded
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import ambiguous, find
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import OutputValue
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import ExtractStep
from droidfleet_shared.protocol.steps.reading import Attribute, ExtractField
from droidfleet_shared.screen.fields import held_text
from droidfleet_shared.screen.matching import Ambiguous, Matcher, NotFound
from droidfleet_shared.screen.node import Node

Row = list[str | None]
"""The values of one node, in the order of the step's fields; None where it has no such node."""


async def extract(run: StepRun, step: ExtractStep) -> StepDone:
    """Waits for the node, or with ``all`` for at least one row, and for every field of it where it is one node."""
    if step.all:
        rows = await wait_until(run, _rows(step))
    else:
        rows = [await wait_until(run, _one(run, step))]
    columns = {field.output_field: [row[place] for row in rows] for place, field in enumerate(step.fields)}
    # All of them, or none: lists that go together stay equally long.
    run.outputs.update({name: _written(run, name, values, step) for name, values in columns.items()})
    return StepDone(Detail.EXTRACTED, _summary(rows, columns) if step.all else "")


def _summary(rows: list[Row], columns: dict[str, Row]) -> str:
    """How many rows, and which outputs none of them has: probably their selector is wrong."""
    nowhere = [name for name, values in columns.items() if all(value is None for value in values)]
    return f"{counted(len(rows), 'row')}." + (f" No row has {', '.join(nowhere)}." if nowhere else "")


def _one(run: StepRun, step: ExtractStep) -> Callable[[Matcher], Row | Missing]:
    def decide(matcher: Matcher) -> Row | Missing:
        sight = find(run, matcher, step.selector, touch=False)
        if isinstance(sight, Missing):
            return sight
        row: Row = []
        for field in step.fields:
            value = _value(matcher, sight.node, field)
            if isinstance(value, Missing):
                return value
            row.append(value)
        return row

    return decide


def _rows(step: ExtractStep) -> Callable[[Matcher], list[Row] | Missing]:
    def decide(matcher: Matcher) -> list[Row] | Missing:
        nodes = matcher.all_visible(step.selector)
        if isinstance(nodes, Ambiguous):
            raise ambiguous(matcher, step.selector, nodes)
        if isinstance(nodes, NotFound) or not nodes:
            reason = nodes.reason if isinstance(nodes, NotFound) else "nothing matches"
            return Missing(
                StepCode.TARGET_NOT_FOUND,
                lambda: (
                    f"Looked for {selector_text(step.selector)}: {reason}. {seen_on(matcher.screen, step.selector)}"
                ),
            )
        rows: list[Row] = []
        for node in nodes[: step.max_items]:
            values = [_value(matcher, node, field) for field in step.fields]
            rows.append([None if isinstance(value, Missing) else value for value in values])
        return rows

    return decide


def _value(matcher: Matcher, node: Node, field: ExtractField) -> str | Missing:
    if field.selector is None:
        return _read(matcher, node, field.attribute)
    selector: Selector = field.selector
    nodes = matcher.inside(selector, node)
    if isinstance(nodes, Ambiguous):
        raise ambiguous(matcher, selector, nodes)
    if isinstance(nodes, NotFound) or not nodes:
        return Missing(
            StepCode.TARGET_NOT_FOUND,
            lambda: f"Looked for {selector_text(selector)} inside the step's node, and nothing there matches.",
        )
    if len(nodes) > 1:
        raise ambiguous(matcher, selector, Ambiguous(tuple(nodes), f"{len(nodes)} nodes match inside one node"))
    return _read(matcher, nodes[0], field.attribute)


def _read(matcher: Matcher, node: Node, attribute: Attribute) -> str:
    match attribute:
        case Attribute.LABEL:
            text = held_text(node) or node.description
        case Attribute.TEXT:
            text = held_text(node)
        case Attribute.DESCRIPTION:
            text = node.description
        case Attribute.HINT:
            text = node.hint
        case Attribute.RESOURCE_ID:
            text = node.resource_id
        case Attribute.CLASS_NAME:
            text = node.class_name
        case Attribute.PACKAGE_NAME:
            text = node.package
        case Attribute.CHECKED:
            text = _word(node.checked)
        case Attribute.ENABLED:
            text = _word(node.enabled)
        case Attribute.SELECTED:
            text = _word(node.selected)
        case Attribute.BOUNDS:
            seen = matcher.visible_bounds(node)
            text = f"[{seen.left},{seen.top}][{seen.right},{seen.bottom}]"
        case _:
            assert_never(attribute)
    return cut(text, MAX_OUTPUT)


def _word(flag: bool) -> str:
    return "true" if flag else "false"


def _written(run: StepRun, name: str, values: Row, step: ExtractStep) -> OutputValue:
    if step.append:
        return appended(run.outputs, name, values)
    return bounded(name, values) if step.all else values[0] or ""
