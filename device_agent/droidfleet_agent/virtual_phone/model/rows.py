"""Lists that recycle: every row is measured, only those in sight are built into the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from droidfleet_agent.virtual_phone.model.spec import INFINITE, Flow
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.scenario import widgets as wid

if TYPE_CHECKING:
    from droidfleet_agent.virtual_phone.model.layout import Layout, Rect


def measure_rows(layout: Layout, node: ViewNode, width: int, height: int) -> tuple[int, int]:
    """The content's width and height. Sizes of rows are kept with the page until its state or the width changes."""
    down = node.spec.flow is Flow.SCROLL_DOWN
    lines = _sizes(layout, node, width if down else height, down=down)
    total = sum(lines) + node.spec.gap * max(0, len(lines) - 1)
    if down:
        return (width if width < INFINITE else 0), total
    tallest = 0
    for at in range(min(node.row_count, len(lines))):
        row = _row(node, at)
        if row is not None:
            layout.measure(row, INFINITE, height)
            tallest = max(tallest, row.h + row.spec.margin[1] + row.spec.margin[3])
    return total, tallest


def rows_in_sight(layout: Layout, node: ViewNode, area: Rect, clip: Rect, offset: int, *, shown: bool) -> None:
    """Builds, measures and places the rows that overlap the viewport; their index counts from the first of them.

    Rows in the viewport of a list that itself is scrolled out of sight are counted and not built: nobody sees them.
    """
    left, top, width, height = area
    down = node.spec.flow is Flow.SCROLL_DOWN
    columns = node.spec.columns if down else 1
    length = height if down else width
    start, clip_start, clip_end = (top, clip[1], clip[3]) if down else (left, clip[0], clip[2])
    at, index = -offset, 0
    for line, size in enumerate(_sizes(layout, node, width if down else height, down=down)):
        if at >= length:
            break
        if at + size > 0:
            first = line * columns
            count = min(columns, node.row_count - first)
            if start + at < clip_end and start + at + size > clip_start:
                _place_line(
                    layout,
                    node,
                    (first, count, index),
                    (left, top, width, height),
                    at=at,
                    size=size,
                    clip=clip,
                    shown=shown,
                )
            index += count
        at += size + node.spec.gap


def _place_line(
    layout: Layout,
    node: ViewNode,
    line: tuple[int, int, int],
    area: Rect,
    *,
    at: int,
    size: int,
    clip: Rect,
    shown: bool,
) -> None:
    left, top, width, height = area
    down = node.spec.flow is Flow.SCROLL_DOWN
    cell = _cell(node, width) if down else 0
    first, count, index = line
    for column in range(count):
        row = _row(node, first + column)
        if row is None:
            continue
        node.add(row, index=index + column)
        margin = row.spec.margin
        if down:
            layout.measure(row, max(0, cell - margin[0] - margin[2]), max(0, size - margin[1] - margin[3]))
            x = left + column * (cell + node.spec.gap) + margin[0]
            layout.place(row, x, top + at + margin[1], clip, shown=shown)
        else:
            layout.measure(row, max(0, size - margin[0] - margin[2]), max(0, height - margin[1] - margin[3]))
            layout.place(row, left + at + margin[0], top + margin[1], clip, shown=shown)


def _cell(node: ViewNode, width: int) -> int:
    columns = node.spec.columns
    return max(0, (width - node.spec.gap * (columns - 1)) // columns)


def _sizes(layout: Layout, node: ViewNode, across: int, *, down: bool) -> list[int]:
    """Heights of the lines (widths, when it scrolls sideways), margins included."""
    known = layout.page.row_heights.get(node.key)
    if known is not None and known[0] == layout.version and known[1] == across:
        return known[2]
    columns = node.spec.columns if down else 1
    widget = node.widget
    uniform = isinstance(widget, wid.ListWidget) and widget.row is not None and isinstance(widget.row.height, float)
    if uniform and down and isinstance(widget, wid.ListWidget) and widget.row is not None and node.row_count:
        sizes = [_measured(layout, node, 0, across, down=down)] * -(-node.row_count // columns)
    else:
        each = [_measured(layout, node, at, across, down=down) for at in range(node.row_count)]
        sizes = [max(each[at : at + columns]) for at in range(0, len(each), columns)]
    layout.page.row_heights[node.key] = (layout.version, across, sizes)
    return sizes


def _measured(layout: Layout, node: ViewNode, at: int, across: int, *, down: bool) -> int:
    row = _row(node, at)
    if row is None:
        return 0
    margin = row.spec.margin
    if down:
        layout.measure(row, max(0, _cell(node, across) - margin[0] - margin[2]), INFINITE)
        return row.h + margin[1] + margin[3]
    layout.measure(row, INFINITE, across)
    return row.w + margin[0] + margin[2]


def _row(node: ViewNode, at: int) -> ViewNode | None:
    return node.make_row(at) if node.make_row is not None else None
