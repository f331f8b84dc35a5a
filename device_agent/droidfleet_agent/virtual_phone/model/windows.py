"""The windows on the display, as the phone reports them: system bars first, then the keyboard, the app's window last.

A window is built again only when what it shows has changed; its XML is kept with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.model.build import Builder, WidgetCache
from droidfleet_agent.virtual_phone.model.layout import Layout, Rect
from droidfleet_agent.virtual_phone.model.spec import NAVIGATION_BAR_DP, STATUS_BAR_DP, Flow, Spec
from droidfleet_agent.virtual_phone.model.state import AppState, PageState, PhoneState
from droidfleet_agent.virtual_phone.model.system import KEYBOARD, KEYBOARD_HEIGHT_DP, SYSTEM_UI
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.scenario.widgets import FieldWidget

_FRAME = "android.widget.FrameLayout"
_LINEAR = "android.widget.LinearLayout"
_VIEW = "android.view.View"

_DECOR = Spec(flow=Flow.LEAF, class_name="", compose_class="", width=None, height=None)
"""The frames around an app's content are placed by hand and need no layout."""


@dataclass(slots=True, eq=False)
class Window:
    """One window. ``frame`` is its rectangle; a ``modal`` one takes every touch; ``xml`` keeps its dumps by options."""

    name: str
    page: PageState
    root: ViewNode
    frame: Rect
    modal: bool = False
    active: bool = False
    xml: dict[tuple[bool, int], str] = field(default_factory=dict)


class Windows:
    """Keeps the built windows of one phone."""

    def __init__(self, state: PhoneState, identity: PhoneIdentity, system: dict[str, AppState]) -> None:
        self._state = state
        self._identity = identity
        self._cache = WidgetCache(identity.pixels_per_dp)
        self.px = identity.pixels_per_dp
        self._system = {
            f"{package}/{name}": PageState(0, app, name, screen, {})
            for package, app in system.items()
            for name, screen in app.app.screens.items()
        }
        self._kept: dict[str, tuple[Hashable, Window]] = {}
        self._list: tuple[int, list[Window]] = (-1, [])

    @property
    def display(self) -> Rect:
        """The display in the current rotation."""
        width, height = self._identity.width, self._identity.height
        return (0, 0, width, height) if self._state.rotation % 2 == 0 else (0, 0, height, width)

    @property
    def keyboard_frame(self) -> Rect:
        """Where the keyboard lies when it is shown."""
        _, _, width, height = self.display
        bottom = height - round(NAVIGATION_BAR_DP * self.px)
        tall = min(round(KEYBOARD_HEIGHT_DP * self.px), bottom * 3 // 5)
        return 0, bottom - tall, width, bottom

    def current(self) -> list[Window]:
        """All windows in the order of the dump."""
        if self._list[0] != self._state.look:
            self._list = (self._state.look, list(self._build()))
        return self._list[1]

    def active(self) -> Window:
        """The window with the focus."""
        return next(window for window in self.current() if window.active)

    def top_down(self) -> list[Window]:
        """All windows, the topmost first, as touches meet them."""
        return sorted(self.current(), key=lambda window: _LAYERS.get(window.name, 0))

    def painted(self) -> list[Window]:
        """What a picture shows, the lowest first: also the screen below a modal dialog, which no dump has."""
        windows = self.top_down()[::-1]
        below = self._state.page
        active = self.active()
        if active.page.dialog is not None and active.page.dialog.modal:
            hidden = [self._screen(below), *(self._dialog(one) for one in below.dialogs if one is not active.page)]
            at = windows.index(active)
            windows[at:at] = hidden[: 1 + below.dialogs.index(active.page)]
        return windows

    def _build(self) -> Iterator[Window]:
        state = self._state
        _, _, width, height = self.display
        status = round(STATUS_BAR_DP * self.px)
        bar = round(NAVIGATION_BAR_DP * self.px)
        look = (state.rotation, repr(state.facts["phone"]))
        yield self._simple("status_bar", (0, 0, width, status), look)
        yield self._simple("navigation_bar", (0, height - bar, width, height), look)
        yield self._simple("screen_decor", (0, 0, width, status + bar // 2), state.rotation)
        if state.locked or not state.screen_on:
            yield self._over("lock")
            return
        if state.shade is not None:
            yield self._over(state.shade)
            return
        # Built first, because the keyboard's layout depends on the field in focus.
        app = list(self._app())
        if state.keyboard:
            yield self._keyboard(app[-1])
        yield from app

    def _simple(self, name: str, frame: Rect, key: Hashable) -> Window:
        return self._keep(name, key, lambda: self._plain(name, self._system[f"{SYSTEM_UI}/{name}"], frame))

    def _over(self, name: str) -> Window:
        page = self._system[f"{SYSTEM_UI}/{name}"]

        def make() -> Window:
            window = self._plain(name, page, self.display)
            window.modal = window.active = True
            return window

        return self._keep(name, self._state.look, make)

    def _keyboard(self, app: Window) -> Window:
        state = self._state
        focused = next((node.widget for node in app.root.walk() if node.focused), None)
        layout = "capitals" if state.capitals else "letters"
        if isinstance(focused, FieldWidget) and focused.kind == "number":
            layout = "numbers"
        elif state.symbols:
            layout = "symbols"
        page = self._system[f"{KEYBOARD}/{layout}"]
        key = (layout, state.rotation)
        return self._keep("keyboard", key, lambda: self._plain("keyboard", page, self.keyboard_frame))

    def _app(self) -> Iterator[Window]:
        state = self._state
        page = state.page
        active = state.active
        dialogs = page.dialogs
        first = dialogs.index(active) if active is not page else 0
        for dialog in reversed(dialogs[first:]):
            if dialog is not active:
                yield self._keep(f"popup{dialog.serial}", state.look, lambda dialog=dialog: self._dialog(dialog))  # type: ignore[misc]  # bound per turn
        self._kept = {
            name: kept for name, kept in self._kept.items() if not name.startswith("popup") or kept[0] == state.look
        }
        window = self._keep("app", state.look, lambda: self._screen(page) if active is page else self._dialog(active))
        window.active = True
        yield window

    def _keep(self, name: str, key: Hashable, make: Callable[[], Window]) -> Window:
        kept = self._kept.get(name)
        if kept is not None and kept[0] == key:
            return kept[1]
        window = make()
        window.name = name
        self._kept[name] = (key, window)
        return window

    # -- one window ----------------------------------------------------------------------------------------------

    def _root(self, page: PageState, *, compose: bool, active: bool) -> tuple[ViewNode | None, Layout]:
        builder = Builder(self._state, page, self._cache, compose=compose, active=active)
        root = builder.build(page.definition.root, self._state.scope(page), f"{page.serial}:{page.name}")
        return root, Layout(page, self._state.version, self.px)

    def _plain(self, name: str, page: PageState, frame: Rect) -> Window:
        root, layout = self._root(page, compose=False, active=False)
        outer = self._frame(_FRAME, page, "w", frame)
        if root is not None:
            layout.run(root, frame, frame)
            outer.add(root)
        return Window(name, page, outer, frame)

    def _screen(self, page: PageState) -> Window:
        state = self._state
        screen = page.screen
        assert screen is not None  # a page at the bottom of a stack is a screen
        _, _, width, height = self.display
        top = round(STATUS_BAR_DP * self.px)
        bottom = height - round(NAVIGATION_BAR_DP * self.px)
        if state.keyboard and screen.soft_input == "resize":
            bottom = self.keyboard_frame[1]
        outer = self._frame(_FRAME, page, "w", self.display)
        body = outer.add(self._frame(_LINEAR, page, "w0", (0, 0, width, bottom)))
        content = (0, top, width, bottom)
        compose = screen.toolkit == "compose"
        if compose:
            inner = body.add(self._frame(_FRAME, page, "w00", (0, 0, width, bottom)))
            inner.resource_id = "android:id/content"
            inner = inner.add(
                self._frame("androidx.compose.ui.platform.ComposeView", page, "w000", (0, 0, width, bottom))
            )
            inner = inner.add(self._frame(_VIEW, page, "w0000", (0, 0, width, bottom)))
        else:
            stub = body.add(self._frame(_FRAME, page, "w01", content), index=1)
            inner = stub.add(self._frame(_LINEAR, page, "w010", content))
            inner.resource_id = f"{page.app.app.package}:id/action_bar_root"
            inner = inner.add(self._frame(_FRAME, page, "w0100", content), index=1)
            inner.resource_id = "android:id/content"
        root, layout = self._root(page, compose=compose, active=True)
        if root is not None:
            moved = (0, top + state.shift, width, bottom + state.shift)
            layout.run(root, moved, content)
            inner.add(root)
        if not compose:
            bars = self._frame(_VIEW, page, "w1", (0, 0, width, top))
            outer.add(bars).resource_id = "android:id/statusBarBackground"
            bars = self._frame(_VIEW, page, "w2", (0, height - round(NAVIGATION_BAR_DP * self.px), width, height))
            outer.add(bars).resource_id = "android:id/navigationBarBackground"
        return Window("app", page, outer, self.display)

    def _dialog(self, page: PageState) -> Window:
        dialog = page.dialog
        assert dialog is not None  # only dialogs lie over a screen
        _, _, width, height = self.display
        top = round(STATUS_BAR_DP * self.px)
        bottom = height - round(NAVIGATION_BAR_DP * self.px)
        root, layout = self._root(page, compose=False, active=dialog.modal)
        frame = (0, top, 0, top)
        if root is not None:
            wide = width if dialog.position == "bottom" else min(round(dialog.width * self.px), width)
            layout.measure(root, wide, bottom - top, exact_width=True)
            left = (width - wide) // 2
            at = {"center": top + (bottom - top - root.h) // 2, "bottom": bottom - root.h, "top": top}[dialog.position]
            frame = (left, at, left + wide, at + root.h)
            layout.place(root, left, at, (0, top, width, bottom), shown=True)
        outer = self._frame(_FRAME, page, "w", frame)
        content = outer.add(self._frame(_FRAME, page, "w0", frame))
        content.resource_id = "android:id/content"
        if root is not None:
            content.add(root)
        return Window("dialog", page, outer, frame, modal=dialog.modal)

    def _frame(self, class_name: str, page: PageState, key: str, frame: Rect) -> ViewNode:
        node = ViewNode(f"{page.serial}:{page.name}:{key}", class_name, page.app.app.package, _DECOR, None)
        node.left, node.top, node.right, node.bottom = frame
        node.seen_left, node.seen_top, node.seen_right, node.seen_bottom = frame
        node.w, node.h = frame[2] - frame[0], frame[3] - frame[1]
        return node


_LAYERS = {"status_bar": -5, "navigation_bar": -5, "keyboard": -4, "screen_decor": 9, "app": 5}
"""Touch order, lowest first: bars, keyboard, shade and pop-ups (0), the app, and last the rounded corners."""
