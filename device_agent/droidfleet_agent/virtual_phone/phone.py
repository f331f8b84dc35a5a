"""The virtual phone's face: what the wire asks of it and does to it. Delegates; owns no rule of its own.

Synchronous and single-threaded: one caller at a time. No I/O. Time comes from the clock, chance from the seed, so that
the same calls give the same phone. Coordinates are pixels in the frame of the current rotation. Everything that comes
in from outside is written to the effect log, with what it hit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from droidfleet_agent.virtual_phone import selectors
from droidfleet_agent.virtual_phone.effects import EffectLog
from droidfleet_agent.virtual_phone.facts import InstalledPackage, Knobs, Media, Orientation, PhoneFocus, Point
from droidfleet_agent.virtual_phone.hierarchy import hierarchy, stock_hierarchy
from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.installed import installed_packages
from droidfleet_agent.virtual_phone.model.keys import KEY_NAMES, Keys
from droidfleet_agent.virtual_phone.model.methods import InputMethods
from droidfleet_agent.virtual_phone.model.pages import Pages
from droidfleet_agent.virtual_phone.model.performer import Performer
from droidfleet_agent.virtual_phone.model.recorder import Recorder
from droidfleet_agent.virtual_phone.model.state import AppState, PhoneState, Shade
from droidfleet_agent.virtual_phone.model.system import KEYBOARD, LAUNCHER, SYSTEM_UI, system_apps
from droidfleet_agent.virtual_phone.model.texts import Texts
from droidfleet_agent.virtual_phone.model.touch import LONG_PRESS_MS, STEP_MS, Touch
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.model.windows import Windows
from droidfleet_agent.virtual_phone.scenario.models import App, Scenario
from droidfleet_shared.clock import Clock
from droidfleet_shared.screen.node import Bounds

__all__ = ["InstalledPackage", "Knobs", "Media", "Orientation", "PhoneFocus", "Point", "VirtualPhone"]

_ROTATIONS: Mapping[Orientation, int] = {"natural": 0, "left": 1, "upsidedown": 2, "right": 3}
_KEY_V, _CTRL = 50, 0x1000


class VirtualPhone:
    """One simulated phone running the apps of one scenario. See the module docstring for the rules."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        identity: PhoneIdentity,
        effects: EffectLog,
        clock: Clock,
        seed: int = 0,
        knobs: Knobs | None = None,
    ) -> None:
        self.scenario = scenario
        self.identity = identity
        self.effects = effects
        self.clock = clock
        self.knobs = knobs or Knobs()
        self._random = random.Random(seed)  # noqa: S311  # reproducible chance, nothing secret
        phone_apps = {app.package: AppState.fresh(app) for app in system_apps()}
        apps = {app.package: AppState.fresh(app) for app in scenario.apps}
        self._state = PhoneState({**apps, LAUNCHER: phone_apps[LAUNCHER]}, LAUNCHER, LAUNCHER, self._facts())
        self._state.secure_lock = scenario.secure_lock
        self._windows = Windows(self._state, identity, {name: phone_apps[name] for name in (SYSTEM_UI, KEYBOARD)})
        self._pages = Pages(self._state)
        performer = Performer(self._state, self._pages, effects, clock)
        self._performer = performer
        self._texts = Texts(self._state, self._windows, self._pages, performer)
        self._touch = Touch(self._state, self._windows, self._pages, performer, self._texts)
        self._keys = Keys(self._state, self._pages, self._texts, self._touch)
        self._methods = InputMethods(self._state)
        self._recorder = Recorder(effects, self._windows, self._texts)
        self._dump: tuple[tuple[int, bool, int, bool], str] | None = None
        phone_apps[LAUNCHER].variables["apps"] = [
            {"package": app.package, "label": self._pages.label_of(app)} for app in scenario.apps
        ]
        self._pages.go_home()
        if scenario.start is not None:
            self._pages.start_app(scenario.start)

    def _facts(self) -> dict[str, JsonValue]:
        identity = self.identity
        return {
            "phone": {
                "serial": identity.serial,
                "model": identity.model,
                "battery": identity.battery_percent,
                "time": self.clock.now().strftime("%H:%M"),
            }
        }

    # -- facts ---------------------------------------------------------------------------------------------------

    @property
    def rotation(self) -> int:
        """0 natural, 1 left (90 degrees counter-clockwise), 2 upside down, 3 right."""
        return self._state.rotation

    @property
    def display_size(self) -> tuple[int, int]:
        """Width and height in pixels in the current rotation; the identity has the natural ones."""
        _, _, width, height = self._windows.display
        return width, height

    @property
    def screen_on(self) -> bool:
        """Whether the display is on."""
        return self._state.screen_on

    @property
    def locked(self) -> bool:
        """Whether the lock screen is in front."""
        return self._state.locked

    @property
    def secure_lock(self) -> bool:
        """Whether the lock screen asks for a secret; else a swipe up removes it."""
        return self._state.secure_lock

    @property
    def battery_percent(self) -> int:
        """Charge, 0 to 100."""
        return self.identity.battery_percent

    @property
    def window_changes(self) -> int:
        """Grows with every change of what window or page is in front; never goes back."""
        return self._state.window_changes

    def focus(self) -> PhoneFocus:
        """The focused package and activity (`mCurrentFocus`)."""
        state = self._state
        if state.locked or not state.screen_on or state.shade is not None:
            return PhoneFocus(SYSTEM_UI, "")
        return self.front_activity()

    def front_activity(self) -> PhoneFocus:
        """The topmost activity, also while a system window (lock screen, shade) has the focus over it."""
        state = self._state
        return PhoneFocus(state.front, state.app.app.activity_name(state.page.name))

    def device_info(self) -> dict[str, object]:
        """The dict that the RPC `deviceInfo` answers."""
        width, height = self.display_size
        px = self.identity.pixels_per_dp
        return {
            "currentPackageName": self.focus().package,
            "displayWidth": width,
            "displayHeight": height,
            "displayRotation": self.rotation,
            "displaySizeDpX": round(width / px),
            "displaySizeDpY": round(height / px),
            "productName": self.identity.product,
            "naturalOrientation": self.rotation == 0,
            "screenOn": self.screen_on,
            "sdkInt": self.identity.sdk,
        }

    def packages(self, *, third_party_only: bool = False) -> tuple[InstalledPackage, ...]:
        """Installed packages, by name."""
        label = self._pages.label_of
        found = installed_packages((*system_apps(), *self.scenario.apps), self._methods.packages, label)
        return tuple(one for one in found if not (third_party_only and one.system))

    def running_packages(self) -> tuple[str, ...]:
        """Packages with a process (for `ps -A`), by name."""
        running = {package for package, app in self._state.apps.items() if app.stack}
        return tuple(sorted({*running, SYSTEM_UI, LAUNCHER, KEYBOARD}))

    # -- looking -------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Runs the timers that are due. Call it before each request."""
        facts = self._facts()
        if facts != self._state.facts:
            self._state.facts.update(facts)
            self._state.scrolled()
        self._performer.run_timers()

    def dump(self, *, compressed: bool = False, max_depth: int = 50, active_only: bool = False) -> str:
        """`dumpWindowHierarchy`: the XML text of all windows, or of the active one."""
        key = (self._state.look, compressed, max_depth, active_only)
        if self._dump is None or self._dump[0] != key:
            windows = [self._windows.active()] if active_only else self._windows.current()
            document = hierarchy(windows, self.rotation, compressed=compressed, max_depth=max_depth)
            self._dump = (key, document)
        document = self._dump[1]
        if self.knobs.moving_looks > 0:
            self.knobs.moving_looks -= 1
            self._state.shift += self.knobs.moving_px
            self._state.scrolled()
        return document

    def dump_stock(self) -> str:
        """`uiautomator dump`: the active window on one line, without the attributes that uiautomator2 adds."""
        return stock_hierarchy(self._windows.active(), self.rotation)

    def screenshot(self, *, media: Media = "JPEG", quality: int = 80, scale: float = 1.0) -> bytes:
        """The screen as an encoded picture in the current rotation; black while the display is off."""
        # Pillow costs 10 MB and 0.1 s; a phone that is never photographed does without.
        from droidfleet_agent.virtual_phone.render import render  # noqa: PLC0415

        state = self._state
        toast = state.toast if self.clock.monotonic() < state.toast_until else None
        windows = [] if not state.screen_on else self._windows.painted()
        px = self.identity.pixels_per_dp
        return render(windows, self.display_size, px, toast=toast, media=media, quality=quality, scale=scale)

    def find(self, selector: Mapping[str, object]) -> list[ViewNode]:
        """Visible nodes that match a uiautomator2 selector, in document order; the active window's come first.

        ``instance``, ``index`` and child/sibling chains are honoured. Raises `SelectorError` for a broken selector.
        """
        return selectors.find(self._roots(), selector)

    def _roots(self) -> list[ViewNode]:
        return [window.root for window in sorted(self._windows.current(), key=lambda window: not window.active)]

    def exists(self, selector: Mapping[str, object]) -> bool:
        """`exist`: like `find`, with the real server's quirk that ``instance`` is ignored without child or sibling."""
        with_instance = bool(selector.get("childOrSibling"))
        return bool(selectors.find(self._roots(), selector, use_instance=with_instance))

    def info(self, node: ViewNode, selector: Mapping[str, object] | None = None) -> dict[str, object]:
        """The ObjInfo dict; ``resourceName`` is null for a selector with index, instance, child or sibling."""
        older = selector is not None and selectors.uses_ui_selector(selector)
        return selectors.object_info(node, with_resource_name=not older)

    def current(self, node: ViewNode) -> ViewNode | None:
        """The same node in the present tree, found by its key; None when it is gone (a stale object)."""
        return next((one for root in self._roots() for one in root.walk() if one.key == node.key and one.shown), None)

    def focused_node(self) -> ViewNode | None:
        """The field that has the input focus."""
        return self._texts.focused()

    @property
    def keyboard_shown(self) -> bool:
        """Whether the on-screen keyboard is shown (`mInputShown`)."""
        return any(window.name == "keyboard" for window in self._windows.current())

    @property
    def keyboard_bounds(self) -> Bounds | None:
        """The keyboard window's rectangle while it is shown."""
        return Bounds(*self._windows.keyboard_frame) if self.keyboard_shown else None

    @property
    def last_toast(self) -> str | None:
        """The last toast's text; it stays until `clear_toast`, as the real server keeps it."""
        return self._state.toast

    def clear_toast(self) -> None:
        """Forgets the last toast."""
        self._state.toast = None

    # -- touching ------------------------------------------------------------------------------------------------

    def tap(self, x: float, y: float, *, duration_ms: int = 100) -> bool:
        """Presses and releases at a point; 500 ms or more is a long press. False for points off the display."""
        touch = self._touch
        if not touch.on_display(x, y):
            return False
        hit = touch.hit(x, y)
        long = duration_ms >= LONG_PRESS_MS
        swallowed = self.knobs.swallow_taps > 0
        outcome = "nothing" if hit is None or not self.screen_on else hit.outcome
        kind = "long_press" if long else "tap"
        self._recorder.hit(kind, hit, x=x, y=y, outcome="swallowed" if swallowed else outcome)
        if swallowed:
            self.knobs.swallow_taps -= 1
        else:
            touch.tap(x, y, hit, long=long)
        return True

    def swipe(self, points: Sequence[Point], steps: int) -> bool:
        """Moves a finger along the points (two or more), ``steps`` times 5 ms for each leg."""
        if len(points) < 2 or not all(self._touch.on_display(*point) for point in points):
            return False
        hit = self._touch.hit(*points[0])
        self._recorder.hit("swipe", hit, start=list(points[0]), end=list(points[-1]), steps=steps)
        self._touch.move(points, max(1, steps) * STEP_MS)
        return True

    def drag(self, start: Point, end: Point, steps: int) -> bool:
        """Long-presses at ``start``, moves to ``end``, releases."""
        if not self._touch.on_display(*start) or not self._touch.on_display(*end):
            return False
        self._recorder.hit("drag", self._touch.hit(*start), start=list(start), end=list(end), steps=steps)
        self._touch.move([start, end], max(1, steps) * STEP_MS, held=True)
        return True

    def scroll(self, node: ViewNode, *, forward: bool, vertical: bool = True, to_end: bool = False) -> bool:
        """Scrolls the scrollable node by about its own length. True when it could move on (more content may follow)."""
        present = self.current(node)
        if present is None:
            return False
        self._recorder.on("scroll", present, forward=forward, vertical=vertical)
        return self._touch.scroll_page(present, forward=forward, to_end=to_end)

    # -- keys and text -------------------------------------------------------------------------------------------

    def press_key(self, name: str) -> bool:
        """`pressKey` by its uiautomator2 name; False for unknown names."""
        code = KEY_NAMES.get(name)
        if code is None:
            return False
        self._recorder.note("key", key=name, code=code)
        return self._keys.press(code, 0)

    def press_key_code(self, code: int, meta: int = 0) -> bool:
        """`pressKeyCode` by Android key code (111 is Escape: hides the keyboard only)."""
        self._recorder.key(code, meta)
        return self._keys.press(code, meta)

    def set_text(self, node: ViewNode, text: str) -> bool:
        """ACTION_SET_TEXT: replaces the field's text. False when the node is gone, disabled or no text field."""
        present = self.current(node)
        if present is None or not present.editable:
            return False
        self._recorder.text("set_text", present, text)
        if self.knobs.lossy_set_texts > 0 and text:
            self.knobs.lossy_set_texts -= 1
            lost = self._random.randrange(len(text))
            text = text[:lost] + text[lost + 1 :]
        return self._texts.put(present, text)

    def clear_text(self, node: ViewNode) -> bool:
        """`set_text` with nothing."""
        return self.set_text(node, "")

    def type_text(self, text: str) -> bool:
        """Commits text at the cursor of the focused field, as a keyboard does. False without a focused field."""
        self._recorder.text("type_text", self.focused_node(), text)
        return self._texts.insert(text)

    def clear_focused_text(self) -> bool:
        """Empties the focused field (Ctrl+A, DEL). False without one."""
        focused = self.focused_node()
        return focused is not None and self.set_text(focused, "")

    @property
    def clipboard(self) -> str | None:
        """The clipboard's text."""
        return self._state.clipboard

    def set_clipboard(self, text: str) -> None:
        """Replaces the clipboard."""
        self._recorder.note("set_clipboard", length=len(text))
        self._state.clipboard = text

    def paste(self) -> bool:
        """Commits the clipboard at the cursor (Ctrl+V)."""
        return self.press_key_code(_KEY_V, _CTRL) and self.focused_node() is not None

    # -- keyboards -----------------------------------------------------------------------------------------------

    @property
    def input_methods(self) -> tuple[str, ...]:
        """Ids of the enabled input methods (`ime list -s`)."""
        return self._methods.enabled

    @property
    def installed_input_methods(self) -> tuple[str, ...]:
        """Ids of all installed input methods (`ime list -s -a`)."""
        return self._methods.installed

    @property
    def default_input_method(self) -> str:
        """Id of the selected input method."""
        return self._methods.selected

    def install_input_method(self, method_id: str) -> None:
        """Adds an input method and its package (what `pm install` of a keyboard apk does)."""
        self._methods.install(method_id)

    def enable_input_method(self, method_id: str) -> bool:
        """`ime enable`. False when it is not installed."""
        return self._methods.enable(method_id)

    def set_default_input_method(self, method_id: str) -> bool:
        """`ime set`. False when it is not enabled."""
        self._recorder.note("select_input_method", id=method_id)
        return self._methods.select(method_id)

    # -- apps and device -----------------------------------------------------------------------------------------

    def start_app(self, package: str, activity: str | None = None) -> bool:
        """Brings an app to the front, starting it when needed. False for an unknown package or activity."""
        app = self._state.apps.get(package)
        screen = None if app is None or activity is None else _screen_of(app.app, activity)
        started = app is not None and (activity is None or screen is not None)
        started = started and self._pages.start_app(package, screen)
        self._recorder.note("start_app", package=package, activity=activity, started=started)
        return started

    def stop_app(self, package: str) -> bool:
        """Force-stops an app. False for an unknown package."""
        self._recorder.note("stop_app", package=package)
        return self._pages.stop_app(package)

    def clear_app(self, package: str) -> bool:
        """Stops an app and gives it its first state again. False for an unknown package."""
        self._recorder.note("clear_app", package=package)
        return self._pages.clear_app(package)

    def set_orientation(self, orientation: Orientation) -> None:
        """Rotates the phone, as a hand does, and lays out again."""
        rotation = _ROTATIONS[orientation]
        self._recorder.note("orientation", orientation=orientation)
        if rotation != self._state.rotation:
            self._state.rotation = rotation
            self._state.window_changed()

    def freeze_rotation(self, frozen: bool) -> None:
        """Records the request; the phone never rotates by itself."""
        self._recorder.note("freeze_rotation", frozen=frozen)

    def wake(self) -> bool:
        """Turns the display on. The lock screen is in front after a sleep."""
        self._recorder.note("wake")
        self._keys.wake()
        return True

    def sleep(self) -> bool:
        """Turns the display off and locks."""
        self._recorder.note("sleep")
        self._keys.sleep()
        return True

    def dismiss_keyguard(self) -> bool:
        """`wm dismiss-keyguard`: removes the lock screen while the display is on."""
        self._recorder.note("dismiss_keyguard")
        return self._keys.unlock()

    def open_notification(self) -> bool:
        """Pulls down the notification shade."""
        return self._open_shade("notifications")

    def open_quick_settings(self) -> bool:
        """Pulls down the quick settings."""
        return self._open_shade("quick_settings")

    def _open_shade(self, shade: Shade) -> bool:
        state = self._state
        self._recorder.note(f"open_{shade}")
        if state.locked or not state.screen_on:
            return False
        state.keyboard = False
        state.shade = shade
        state.window_changed()
        return True


def _screen_of(app: App, activity: str) -> str | None:
    """The screen of an activity's name, with or without the package in front."""
    full = app.package + activity if activity.startswith(".") else activity
    return next((name for name in app.screens if app.activity_name(name) == full), None)
