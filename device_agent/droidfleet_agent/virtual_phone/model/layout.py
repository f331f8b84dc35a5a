"""Gives nodes their rectangles: measures bottom-up, places top-down, clips. Pure but for the scroll offsets it clamps.

Lengths are pixels. A child is never larger than what its container has left, so children lie inside their containers
except in the direction in which a container scrolls.
"""

from __future__ import annotations

from droidfleet_agent.virtual_phone.model.rows import measure_rows, rows_in_sight
from droidfleet_agent.virtual_phone.model.spec import FILL, INFINITE, Flow
from droidfleet_agent.virtual_phone.model.state import PageState
from droidfleet_agent.virtual_phone.model.text import text_size
from droidfleet_agent.virtual_phone.model.view import ViewNode

Rect = tuple[int, int, int, int]

_CHECK_WIDTH_DP = {"switch": 52.0, "checkbox": 32.0, "radio": 32.0}


class Layout:
    """Lays out one page's tree. ``version`` tells measured rows of one state from those of the next."""

    def __init__(self, page: PageState, version: int, px: float) -> None:
        self.page = page
        self.version = version
        self.px = px

    def run(self, root: ViewNode, frame: Rect, display: Rect) -> None:
        """Places ``root`` into ``frame``; nothing is visible outside ``display``."""
        left, top, right, bottom = frame
        self.measure(root, right - left, bottom - top, exact_width=True, exact_height=True)
        self.place(root, left, top, display, shown=True)

    # -- measuring -----------------------------------------------------------------------------------------------

    def measure(
        self,
        node: ViewNode,
        max_width: int,
        max_height: int,
        *,
        exact_width: bool = False,
        exact_height: bool = False,
    ) -> None:
        """Sets ``node.w`` and ``node.h``, at most the given lengths; exactly those where ``exact``."""
        spec = node.spec
        width, height = max_width, max_height
        if not exact_width and spec.width is not None:
            exact_width = width < INFINITE or spec.width >= 0
            width = width if spec.width == FILL else min(spec.width, width)
        if not exact_height and spec.height is not None:
            exact_height = height < INFINITE or spec.height >= 0
            height = height if spec.height == FILL else min(spec.height, height)
        left, top, right, bottom = spec.pad
        need_width, need_height = self._content(
            node, _less(width, left + right), _less(height, top + bottom), tall=exact_height
        )
        node.w = width if exact_width else min(need_width + left + right, width)
        node.h = height if exact_height else min(need_height + top + bottom, height)

    def _content(self, node: ViewNode, width: int, height: int, *, tall: bool) -> tuple[int, int]:
        """What the content needs. ``tall``: the node takes all of ``height`` whatever that is."""
        flow = node.spec.flow
        if flow is Flow.LEAF:
            return self._leaf(node, width)
        if flow is Flow.COLUMN:
            return self._column(node, width, height)
        if flow is Flow.ROW:
            return self._row(node, width, height, tall=tall)
        if flow is Flow.STACK:
            return (
                self._field(node, width)
                if node.editable and not node.children
                else self._stack(node, width, height, tall=tall)
            )
        if node.make_row is not None:
            need_width, need_height = measure_rows(self, node, width, height)
        elif flow is Flow.SCROLL_DOWN:
            need_width, need_height = self._column(node, width, INFINITE)
        else:
            need_width, need_height = self._row(node, INFINITE, height, tall=tall)
        node.content = need_height if flow is Flow.SCROLL_DOWN else need_width
        return need_width, need_height

    def _leaf(self, node: ViewNode, width: int) -> tuple[int, int]:
        spec = node.spec
        extra = 0
        if node.checkable:
            extra = round(_CHECK_WIDTH_DP.get(getattr(node.widget, "type", ""), 0.0) * self.px)
        text_width, text_height = text_size(node.text, spec.font, max(1, width - extra), spec.lines)
        return min(width, text_width + extra), text_height

    def _field(self, node: ViewNode, width: int) -> tuple[int, int]:
        lines = node.spec.lines if getattr(node.widget, "multiline", False) else 1
        return text_size(node.text, node.spec.font, width, lines)

    def _column(self, node: ViewNode, width: int, height: int) -> tuple[int, int]:
        gap = node.spec.gap
        used = widest = 0
        weights = 0.0
        flexible: list[ViewNode] = []
        first = True
        for child in node.children:
            if child.ghost:
                self.measure(child, width, height)
                continue
            spec = child.spec
            used += (0 if first else gap) + spec.margin[1] + spec.margin[3]
            first = False
            if height < INFINITE and (spec.weight or spec.height == FILL):
                flexible.append(child)
                weights += spec.weight or 1.0
                continue
            self.measure(child, _less(width, spec.margin[0] + spec.margin[2]), _less(height, used))
            used += child.h
            widest = max(widest, child.w + spec.margin[0] + spec.margin[2])
        free = _less(height, used)
        for child in flexible:
            spec = child.spec
            share = int(free * (spec.weight or 1.0) / weights)
            self.measure(child, _less(width, spec.margin[0] + spec.margin[2]), share, exact_height=True)
            used += child.h
            widest = max(widest, child.w + spec.margin[0] + spec.margin[2])
        return min(widest, width), used

    def _row(self, node: ViewNode, width: int, height: int, *, tall: bool) -> tuple[int, int]:
        gap = node.spec.gap
        used = tallest = 0
        weights = 0.0
        flexible: list[ViewNode] = []
        stretched: list[ViewNode] = []
        first = True
        for child in node.children:
            if child.ghost:
                self.measure(child, width, height)
                continue
            spec = child.spec
            used += (0 if first else gap) + spec.margin[0] + spec.margin[2]
            first = False
            if width < INFINITE and (spec.weight or spec.width == FILL):
                flexible.append(child)
                weights += spec.weight or 1.0
                continue
            inner = _less(height, spec.margin[1] + spec.margin[3])
            self.measure(child, _less(width, used), inner)
            used += child.w
            if spec.height == FILL:
                stretched.append(child)
            else:
                tallest = max(tallest, child.h + spec.margin[1] + spec.margin[3])
        free = _less(width, used)
        for child in flexible:
            spec = child.spec
            share = int(free * (spec.weight or 1.0) / weights)
            inner = _less(height, spec.margin[1] + spec.margin[3])
            self.measure(child, share, inner, exact_width=True)
            used += child.w
            if spec.height == FILL:
                stretched.append(child)
            else:
                tallest = max(tallest, child.h + spec.margin[1] + spec.margin[3])
        if stretched and not tall and tallest:
            # match_parent inside wrap_content: as tall as the tallest of the others.
            for child in stretched:
                inner = max(0, min(tallest, height) - child.spec.margin[1] - child.spec.margin[3])
                self.measure(child, child.w, inner, exact_width=True, exact_height=True)
        tallest = max([tallest, *(child.h + child.spec.margin[1] + child.spec.margin[3] for child in stretched)])
        return used, min(tallest, height)

    def _stack(self, node: ViewNode, width: int, height: int, *, tall: bool) -> tuple[int, int]:
        widest = tallest = 0
        stretched: list[ViewNode] = []
        for child in node.children:
            spec = child.spec
            if not child.ghost and spec.height == FILL and not tall:
                stretched.append(child)
                continue
            across, down = spec.margin[0] + spec.margin[2], spec.margin[1] + spec.margin[3]
            self.measure(child, _less(width, across), _less(height, down))
            if not child.ghost:
                widest = max(widest, child.w + across)
                tallest = max(tallest, child.h + down)
        if node.children and len(stretched) == len(node.children) and height < INFINITE:
            tallest = height
        wanted = node.spec.width
        for child in stretched:
            spec = child.spec
            across, down = spec.margin[0] + spec.margin[2], spec.margin[1] + spec.margin[3]
            inner = widest if wanted is None and widest else width
            self.measure(child, _less(inner, across), max(0, min(tallest, height) - down), exact_height=True)
            widest = max(widest, child.w + across)
        return min(widest, width), min(tallest, height)

    # -- placing -------------------------------------------------------------------------------------------------

    def place(self, node: ViewNode, left: int, top: int, clip: Rect, *, shown: bool) -> None:
        """Sets the rectangles of a measured node and of everything below it."""
        if node.ghost == "zero":
            node.shown = shown
            return
        if node.ghost == "off_screen":
            left = -node.w - left
            clip = (left, top, left + node.w, top + node.h)
        node.left, node.top, node.right, node.bottom = left, top, left + node.w, top + node.h
        seen = (
            max(left, clip[0]),
            max(top, clip[1]),
            min(node.right, clip[2]),
            min(node.bottom, clip[3]),
        )
        visible = seen[2] > seen[0] and seen[3] > seen[1]
        node.shown = shown and visible
        node.seen_left, node.seen_top, node.seen_right, node.seen_bottom = seen if visible else (left, top, left, top)
        if node.make_row is not None or node.children:
            self._place_children(node, seen, shown=node.shown)

    def _place_children(self, node: ViewNode, clip: Rect, *, shown: bool) -> None:
        flow = node.spec.flow
        left, top = node.left + node.spec.pad[0], node.top + node.spec.pad[1]
        width = node.w - node.spec.pad[0] - node.spec.pad[2]
        height = node.h - node.spec.pad[1] - node.spec.pad[3]
        if flow is Flow.STACK or flow is Flow.LEAF:
            self._place_stack(node, (left, top, width, height), clip, shown=shown)
            return
        if flow is Flow.SCROLL_DOWN or flow is Flow.SCROLL_ACROSS:
            length = height if flow is Flow.SCROLL_DOWN else width
            offset = self._offset(node, length)
            if node.make_row is not None:
                rows_in_sight(self, node, (left, top, width, height), clip, offset, shown=shown)
                return
            if flow is Flow.SCROLL_DOWN:
                self._place_line(node, (left, top - offset, width, INFINITE), clip, down=True, shown=shown)
            else:
                self._place_line(node, (left - offset, top, INFINITE, height), clip, down=False, shown=shown)
            return
        self._place_line(node, (left, top, width, height), clip, down=flow is Flow.COLUMN, shown=shown)

    def _offset(self, node: ViewNode, length: int) -> int:
        """The scroll offset, clamped to what there is; also says whether the node can scroll at all."""
        furthest = max(0, node.content - length)
        node.scrollable = furthest > 0
        start = furthest if getattr(node.widget, "start_at", "start") == "end" else 0
        wanted = self.page.scroll.get(node.key, start)
        offset = min(max(0, wanted), furthest)
        if wanted != offset:
            self.page.scroll[node.key] = offset
        return offset

    def _place_line(self, node: ViewNode, area: Rect, clip: Rect, *, down: bool, shown: bool) -> None:
        left, top, width, height = area
        spec = node.spec
        children = [child for child in node.children if not child.ghost]
        length = height if down else width
        used = spec.gap * max(0, len(children) - 1)
        for child in children:
            margin = child.spec.margin
            used += child.h + margin[1] + margin[3] if down else child.w + margin[0] + margin[2]
        free = max(0, length - used) if length < INFINITE else 0
        at = {"center": free // 2, "end": free}.get(spec.justify, 0)
        between = free // (len(children) - 1) if spec.justify == "between" and len(children) > 1 else 0
        for child in node.children:
            if child.ghost:
                self.place(child, left, top, clip, shown=shown)
                continue
            margin = child.spec.margin
            align = child.spec.align or spec.align_items
            if down:
                x = left + margin[0] + _aligned(align, width - child.w - margin[0] - margin[2])
                self.place(child, x, top + at + margin[1], clip, shown=shown)
                at += child.h + margin[1] + margin[3]
            else:
                y = top + margin[1] + _aligned(align, height - child.h - margin[1] - margin[3])
                self.place(child, left + at + margin[0], y, clip, shown=shown)
                at += child.w + margin[0] + margin[2]
            at += spec.gap + between

    def _place_stack(self, node: ViewNode, area: Rect, clip: Rect, *, shown: bool) -> None:
        left, top, width, height = area
        for child in node.children:
            margin = child.spec.margin
            align = child.spec.align or node.spec.align_items
            x = left + margin[0] + _aligned(align, width - child.w - margin[0] - margin[2])
            y = top + margin[1] + _aligned(align, height - child.h - margin[1] - margin[3])
            self.place(child, x, y, clip, shown=shown)


def _less(length: int, by: int) -> int:
    """What is left of a length, never negative; an infinite one stays infinite."""
    return INFINITE if length >= INFINITE else max(0, length - by)


def _aligned(align: str | None, free: int) -> int:
    if free <= 0 or align is None or align == "start":
        return 0
    return free // 2 if align == "center" else free
