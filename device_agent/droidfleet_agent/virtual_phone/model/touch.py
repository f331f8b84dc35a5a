"""Fingers on the display: what a tap, a long press, a swipe or a drag hits and does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from droidfleet_agent.virtual_phone.facts import Point
from droidfleet_agent.virtual_phone.model.assign import assign
from droidfleet_agent.virtual_phone.model.fling import runs_on, speed_at_end
from droidfleet_agent.virtual_phone.model.pages import Pages
from droidfleet_agent.virtual_phone.model.performer import Performer, with_value
from droidfleet_agent.virtual_phone.model.spec import NAVIGATION_BAR_DP, STATUS_BAR_DP, Flow
from droidfleet_agent.virtual_phone.model.state import PageState, PhoneState
from droidfleet_agent.virtual_phone.model.system import (
    KEY_DELETE,
    KEY_ENTER,
    KEY_SHIFT,
    KEY_SPACE,
    KEY_SYMBOLS,
)
from droidfleet_agent.virtual_phone.model.texts import Texts
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.model.windows import Window, Windows
from droidfleet_agent.virtual_phone.scenario.template import Scope, lookup
from droidfleet_agent.virtual_phone.scenario.widgets import Check, Slider

LONG_PRESS_MS: Final = 500
"""Android's default long-press time (`ViewConfiguration`)."""
STEP_MS: Final = 5
"""One uiautomator swipe step."""
SLOP_DP: Final = 8
"""A finger that moves less than this has not moved (`ViewConfiguration.getScaledTouchSlop`)."""
UNLOCK_FRACTION: Final = 0.2
"""Part of the display's height that a swipe up must cover to open the lock screen."""
PAGE_FRACTION: Final = 0.8
"""Part of a scrollable's length that one scroll moves it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What is under a point: the window, the node that takes the touch (None: nothing does), the deepest node there."""

    window: Window
    taker: ViewNode | None
    deepest: ViewNode

    @property
    def outcome(self) -> str:
        """What a touch comes to: ``taken``, ``disabled`` (swallowed by a disabled node) or ``nothing``."""
        if self.taker is None:
            return "nothing"
        return "taken" if self.taker.enabled else "disabled"


class Touch:
    """The touch screen of one phone."""

    def __init__(self, state: PhoneState, windows: Windows, pages: Pages, performer: Performer, texts: Texts) -> None:
        self._state = state
        self._windows = windows
        self._pages = pages
        self._performer = performer
        self._texts = texts
        self._px = windows.px

    def on_display(self, x: float, y: float) -> bool:
        """Whether the point lies on the display."""
        _, _, width, height = self._windows.display
        return 0 <= x < width and 0 <= y < height

    def hit(self, x: float, y: float) -> Hit | None:
        """What is under a point; None when a modal window keeps the touch from reaching anything."""
        for window in self._windows.top_down():
            left, top, right, bottom = window.frame
            inside = left <= x < right and top <= y < bottom
            if inside and window.name != "screen_decor":
                return Hit(window, _taker(window.root, x, y), _deepest(window.root, x, y))
            if window.modal:
                return None
        return None

    # -- tapping -------------------------------------------------------------------------------------------------

    def tap(self, x: float, y: float, hit: Hit | None, *, long: bool) -> None:
        """Presses and releases on what is under the point."""
        if not self._state.screen_on:
            return
        if hit is None:
            self._outside()
            return
        node = hit.taker
        if node is None or not node.enabled or node.widget is None:
            return
        if hit.window.name == "keyboard":
            self._press_key(node)
        elif hit.window.name == "navigation_bar":
            self._press_bar(node)
        else:
            self._press(node, hit.window.page, x, long=long)

    def _outside(self) -> None:
        dialog = self._state.active.dialog
        if dialog is not None and dialog.cancelable:
            self._pages.close_dialog()

    def _press(self, node: ViewNode, page: PageState, x: float, *, long: bool) -> None:
        widget = node.widget
        assert widget is not None  # the caller has looked
        if long and widget.on_long_click:
            self._performer.run(widget.on_long_click, node.scope, page)
            return
        if node.editable:
            self._texts.focus(node)
        elif isinstance(widget, Slider):
            self._slide(node, widget, x, page)
        elif isinstance(widget, Check):
            self._toggle(node, widget, page)
        self._performer.run(widget.on_click, node.scope, page)

    def _toggle(self, node: ViewNode, widget: Check, page: PageState) -> None:
        if widget.checked_when is not None:
            return
        checked = not node.checked
        if widget.bind is not None:
            assign(node.scope, widget.bind, checked)
        else:
            page.checks[node.key] = checked
        self._state.touched()
        self._performer.run(widget.on_change, with_value(node.scope, checked), page)

    def _slide(self, node: ViewNode, widget: Slider, x: float, page: PageState) -> None:
        part = min(max((x - node.left) / max(1, node.right - node.left), 0.0), 1.0)
        value = round(widget.minimum + part * (widget.maximum - widget.minimum), 1)
        assign(node.scope, widget.bind, value)
        self._state.touched()

    def _press_bar(self, node: ViewNode) -> None:
        name = None if node.widget is None else node.widget.name
        if name == "nav_back":
            self.back()
        elif name == "nav_home":
            self._pages.go_home()
        elif name == "nav_recents":
            self._pages.show_recents()

    def back(self) -> None:
        """What Back does: closes the shade, else the keyboard, else a dialog, else the page, else leaves the app."""
        state = self._state
        if state.locked or not state.screen_on:
            return
        dialog = state.page.top.dialog
        if state.shade is not None:
            state.shade = None
            state.window_changed()
        elif state.keyboard:
            self._pages.hide_keyboard()
        elif dialog is None or dialog.cancelable:
            self._pages.close_page()

    def _press_key(self, node: ViewNode) -> None:
        state = self._state
        key = node.description
        if key == KEY_DELETE:
            self._texts.delete()
        elif key == KEY_ENTER:
            self._texts.submit()
        elif key == KEY_SHIFT:
            state.capitals = not state.capitals
            state.touched()
        elif key == KEY_SYMBOLS:
            state.symbols = not state.symbols
            state.touched()
        else:
            self._texts.insert(" " if key == KEY_SPACE else node.text)
            if state.capitals:
                state.capitals = False
                state.touched()

    # -- moving --------------------------------------------------------------------------------------------------

    def move(self, points: Sequence[Point], leg_ms: float, *, held: bool = False) -> None:
        """Moves a finger along the points; ``held`` after a long press, which takes along what lets itself be moved.

        What scrolls follows the finger, and runs on when the finger is lifted in motion.
        """
        if not self._state.screen_on:
            return
        start, end = points[0], points[-1]
        if self._moves_system(start, end):
            return
        hit = self.hit(*start)
        if hit is None or hit.window.name == "keyboard":
            return
        reach = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
        if reach < SLOP_DP * self._px and len(points) == 2:
            self.tap(*start, hit, long=held or leg_ms >= LONG_PRESS_MS)
            return
        if held and self._drop(hit, end):
            return
        slider = hit.deepest
        if isinstance(slider.widget, Slider) and slider.enabled:
            self._slide(slider, slider.widget, end[0], hit.window.page)
            return
        for (x1, y1), (x2, y2) in itertools.pairwise(points):
            self._pull(hit, x2 - x1, y2 - y1)
        across, down = speed_at_end(points, leg_ms)
        self._pull(hit, runs_on(across, self._px), runs_on(down, self._px))

    def _pull(self, hit: Hit, across: float, down: float) -> None:
        node = self._scrollable(hit.deepest, across, down)
        if node is not None:
            self._scroll(node, round(-(down if node.spec.flow is Flow.SCROLL_DOWN else across)), hit.window.page)

    def _drop(self, hit: Hit, end: Point) -> bool:
        """Lets go of what was held, where that does something."""
        node: ViewNode | None = hit.deepest
        while node is not None and not (node.widget is not None and node.widget.on_drag):
            node = node.parent
        if node is None or node.widget is None or not node.enabled:
            return False
        there = self.hit(*end)
        label = there.deepest.label() if there is not None else ""
        position = lookup(there.deepest.scope, ("index",)) if there is not None else None
        dropped: Scope = ({"value": label, "position": -1 if position is None else position}, *node.scope)
        self._performer.run(node.widget.on_drag, dropped, hit.window.page)
        return True

    def _moves_system(self, start: Point, end: Point) -> bool:
        state = self._state
        _, _, _, height = self._windows.display
        rise = start[1] - end[1]
        if state.locked:
            if rise >= height * UNLOCK_FRACTION and not state.secure_lock:
                state.locked = False
                state.window_changed()
            return True
        if state.shade is not None:
            if rise >= height * UNLOCK_FRACTION:
                state.shade = None
                state.window_changed()
                return True
            return False
        if start[1] < STATUS_BAR_DP * self._px and -rise >= height * UNLOCK_FRACTION:
            state.shade = "notifications"
            state.window_changed()
            return True
        # The gesture that leaves an app starts on the navigation bar; with three buttons it does nothing.
        return start[1] >= height - NAVIGATION_BAR_DP * self._px

    def _scrollable(self, node: ViewNode, across: float, down: float) -> ViewNode | None:
        wanted = Flow.SCROLL_DOWN if abs(down) >= abs(across) else Flow.SCROLL_ACROSS
        at: ViewNode | None = node
        while at is not None:
            if at.spec.flow is wanted and at.scrollable:
                return at
            at = at.parent
        return None

    def scroll_page(self, node: ViewNode, *, forward: bool, to_end: bool) -> bool:
        """Scrolls by most of the node's length, or to its end. True when it can go on in that direction."""
        page = self._texts.page_of(node)
        if page is None or not node.scrollable:
            return False
        down = node.spec.flow is Flow.SCROLL_DOWN
        length = node.content if to_end else round((node.h if down else node.w) * PAGE_FRACTION)
        self._scroll(node, length if forward else -length, page)
        offset = page.scroll.get(node.key, 0)
        return offset < self._furthest(node) if forward else offset > 0

    def _scroll(self, node: ViewNode, distance: int, page: PageState) -> None:
        offset = page.scroll.get(node.key, self._first_offset(node))
        page.scroll[node.key] = min(max(0, offset + distance), self._furthest(node))
        self._state.scrolled()

    def _furthest(self, node: ViewNode) -> int:
        pad = node.spec.pad
        inside = node.h - pad[1] - pad[3] if node.spec.flow is Flow.SCROLL_DOWN else node.w - pad[0] - pad[2]
        return max(0, node.content - inside)

    def _first_offset(self, node: ViewNode) -> int:
        return self._furthest(node) if getattr(node.widget, "start_at", "start") == "end" else 0


def _taker(node: ViewNode, x: float, y: float) -> ViewNode | None:
    """The node that takes the touch: the topmost child that wants it, else the node itself when it can be clicked."""
    if not node.shown or not node.contains(x, y):
        return None
    for child in reversed(node.children):
        taker = _taker(child, x, y)
        if taker is not None:
            return taker
    return node if node.clickable or node.long_clickable else None


def _deepest(node: ViewNode, x: float, y: float) -> ViewNode:
    for child in reversed(node.children):
        if child.shown and child.contains(x, y):
            return _deepest(child, x, y)
    return node
