"""The virtual phone's face: what the wire asks of it and does to it. Delegates; owns no rule of its own.

Synchronous and single-threaded: one caller at a time. No I/O. Time comes from the clock, chance from the seed, so that
the same calls give the same phone. Coordinates are pixels in the frame of the current rotation. Everything that comes
in from outside is written to the effect log, with what it hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from droidfleet_agent.screen.node import Bounds
from droidfleet_agent.virtual_phone.effects import EffectLog
from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_shared.clock import Clock

Media = Literal["JPEG", "PNG"]
Orientation = Literal["natural", "left", "right", "upsidedown"]
Point = tuple[float, float]


@dataclass(slots=True)
class Knobs:
    """Faults of the phone itself (those of the connection are the wire's). Set them at any time.

    ``swallow_taps``: that many of the next taps reach the phone and do nothing. ``moving_looks``: during that many of the next
    dumps the app's content moves down by ``moving_px`` after each. ``lossy_set_texts``: that many of the next texts set lose
    one character.
    """

    swallow_taps: int = 0
    moving_looks: int = 0
    moving_px: int = 90
    lossy_set_texts: int = 0


@dataclass(frozen=True, slots=True)
class PhoneFocus:
    """What has the window focus. ``activity`` is the full class name; empty for system windows."""

    package: str
    activity: str


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """One package as the package manager knows it."""

    package: str
    label: str
    version_name: str
    version_code: int
    system: bool
    main_activity: str
    path: str


@dataclass(slots=True)
class VirtualPhone:
    """One simulated phone running the apps of one scenario. See the module docstring for the rules."""

    scenario: Scenario
    identity: PhoneIdentity = field(kw_only=True)
    effects: EffectLog = field(kw_only=True)
    clock: Clock = field(kw_only=True)
    seed: int = field(default=0, kw_only=True)
    knobs: Knobs = field(default_factory=Knobs, kw_only=True)

    # -- facts ---------------------------------------------------------------------------------------------------

    @property
    def rotation(self) -> int:
        """0 natural, 1 left (90 degrees counter-clockwise), 2 upside down, 3 right."""
        raise NotImplementedError

    @property
    def display_size(self) -> tuple[int, int]:
        """Width and height in pixels of the current rotation (natural size: ``identity.width``, ``identity.height``)."""
        raise NotImplementedError

    @property
    def screen_on(self) -> bool:
        """Whether the display is on."""
        raise NotImplementedError

    @property
    def locked(self) -> bool:
        """Whether the lock screen (swipe up, no secret) is in front."""
        raise NotImplementedError

    @property
    def battery_percent(self) -> int:
        """Charge, 0 to 100."""
        raise NotImplementedError

    @property
    def window_changes(self) -> int:
        """Grows with every change of what window or page is in front; never goes back."""
        raise NotImplementedError

    def focus(self) -> PhoneFocus:
        """The focused package and activity (`mCurrentFocus`)."""
        raise NotImplementedError

    def device_info(self) -> dict[str, object]:
        """The dict that the RPC `deviceInfo` answers."""
        raise NotImplementedError

    def packages(self, *, third_party_only: bool = False) -> tuple[InstalledPackage, ...]:
        """Installed packages, by name."""
        raise NotImplementedError

    def running_packages(self) -> tuple[str, ...]:
        """Packages with a process (for `ps -A`), by name."""
        raise NotImplementedError

    # -- looking -------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Runs the timers that are due. Call it before each request."""
        raise NotImplementedError

    def dump(self, *, compressed: bool = False, max_depth: int = 50, active_only: bool = False) -> str:
        """`dumpWindowHierarchy`: the XML text of all windows, or of the active one."""
        raise NotImplementedError

    def dump_stock(self) -> str:
        """`uiautomator dump`: the active window on one line, without the attributes that uiautomator2 adds."""
        raise NotImplementedError

    def screenshot(self, *, media: Media = "JPEG", quality: int = 80, scale: float = 1.0) -> bytes:
        """The screen as an encoded picture in the current rotation; black while the display is off."""
        raise NotImplementedError

    def find(self, selector: Mapping[str, object]) -> list[ViewNode]:
        """Visible nodes that match a uiautomator2 selector, in document order; the active window's come first.

        ``instance``, ``index`` and child/sibling chains are honoured. Raises `SelectorError` for a broken selector.
        """
        raise NotImplementedError

    def exists(self, selector: Mapping[str, object]) -> bool:
        """`exist`: like `find`, with the real server's quirk that ``instance`` is ignored without child or sibling."""
        raise NotImplementedError

    def info(self, node: ViewNode, selector: Mapping[str, object] | None = None) -> dict[str, object]:
        """The ObjInfo dict. ``resourceName`` is null when ``selector`` used index, instance, child or sibling, as on a phone."""
        raise NotImplementedError

    def current(self, node: ViewNode) -> ViewNode | None:
        """The same node in the present tree, found by its key; None when it is gone (a stale object)."""
        raise NotImplementedError

    def focused_node(self) -> ViewNode | None:
        """The field that has the input focus."""
        raise NotImplementedError

    @property
    def keyboard_shown(self) -> bool:
        """Whether the on-screen keyboard is shown (`mInputShown`)."""
        raise NotImplementedError

    @property
    def keyboard_bounds(self) -> Bounds | None:
        """The keyboard window's rectangle while it is shown."""
        raise NotImplementedError

    @property
    def last_toast(self) -> str | None:
        """The last toast's text; it stays until `clear_toast`, as the real server keeps it."""
        raise NotImplementedError

    def clear_toast(self) -> None:
        """Forgets the last toast."""
        raise NotImplementedError

    # -- touching ------------------------------------------------------------------------------------------------

    def tap(self, x: float, y: float, *, duration_ms: int = 100) -> bool:
        """Presses and releases at a point; 500 ms or more is a long press. False for points off the display."""
        raise NotImplementedError

    def swipe(self, points: Sequence[Point], steps: int) -> bool:
        """Moves a finger along the points (two or more), ``steps`` times 5 ms for each leg."""
        raise NotImplementedError

    def drag(self, start: Point, end: Point, steps: int) -> bool:
        """Long-presses at ``start``, moves to ``end``, releases."""
        raise NotImplementedError

    def scroll(self, node: ViewNode, *, forward: bool, vertical: bool = True, to_end: bool = False) -> bool:
        """Scrolls the scrollable node by about its own length. True when it could move on (more content may follow)."""
        raise NotImplementedError

    # -- keys and text -------------------------------------------------------------------------------------------

    def press_key(self, name: str) -> bool:
        """`pressKey` by its uiautomator2 name; False for unknown names."""
        raise NotImplementedError

    def press_key_code(self, code: int, meta: int = 0) -> bool:
        """`pressKeyCode` by Android key code (111 is Escape: hides the keyboard only)."""
        raise NotImplementedError

    def set_text(self, node: ViewNode, text: str) -> bool:
        """ACTION_SET_TEXT: replaces the field's text. False when the node is gone, disabled or no text field."""
        raise NotImplementedError

    def clear_text(self, node: ViewNode) -> bool:
        """`set_text` with nothing."""
        raise NotImplementedError

    def type_text(self, text: str) -> bool:
        """Commits text at the cursor of the focused field, as a keyboard does. False without a focused field."""
        raise NotImplementedError

    def clear_focused_text(self) -> bool:
        """Empties the focused field (Ctrl+A, DEL). False without one."""
        raise NotImplementedError

    @property
    def clipboard(self) -> str | None:
        """The clipboard's text."""
        raise NotImplementedError

    def set_clipboard(self, text: str) -> None:
        """Replaces the clipboard."""
        raise NotImplementedError

    def paste(self) -> bool:
        """Commits the clipboard at the cursor (Ctrl+V)."""
        raise NotImplementedError

    # -- keyboards -----------------------------------------------------------------------------------------------

    @property
    def input_methods(self) -> tuple[str, ...]:
        """Ids of the enabled input methods (`ime list -s`)."""
        raise NotImplementedError

    @property
    def installed_input_methods(self) -> tuple[str, ...]:
        """Ids of all installed input methods (`ime list -s -a`)."""
        raise NotImplementedError

    @property
    def default_input_method(self) -> str:
        """Id of the selected input method."""
        raise NotImplementedError

    def install_input_method(self, method_id: str) -> None:
        """Adds an input method and its package (what `pm install` of a keyboard apk does)."""
        raise NotImplementedError

    def enable_input_method(self, method_id: str) -> bool:
        """`ime enable`. False when it is not installed."""
        raise NotImplementedError

    def set_default_input_method(self, method_id: str) -> bool:
        """`ime set`. False when it is not enabled."""
        raise NotImplementedError

    # -- apps and device -----------------------------------------------------------------------------------------

    def start_app(self, package: str, activity: str | None = None) -> bool:
        """Brings an app to the front, starting it when needed. False for an unknown package or activity."""
        raise NotImplementedError

    def stop_app(self, package: str) -> bool:
        """Force-stops an app. False for an unknown package."""
        raise NotImplementedError

    def clear_app(self, package: str) -> bool:
        """Stops an app and gives it its first state again. False for an unknown package."""
        raise NotImplementedError

    def set_orientation(self, orientation: Orientation) -> None:
        """Rotates the phone and lays out again."""
        raise NotImplementedError

    def freeze_rotation(self, frozen: bool) -> None:
        """Records the request; the phone never rotates by itself."""
        raise NotImplementedError

    def wake(self) -> bool:
        """Turns the display on. The lock screen is in front after a sleep."""
        raise NotImplementedError

    def sleep(self) -> bool:
        """Turns the display off and locks."""
        raise NotImplementedError

    def dismiss_keyguard(self) -> bool:
        """`wm dismiss-keyguard`: removes the lock screen while the display is on."""
        raise NotImplementedError

    def open_notification(self) -> bool:
        """Pulls down the notification shade."""
        raise NotImplementedError

    def open_quick_settings(self) -> bool:
        """Pulls down the quick settings."""
        raise NotImplementedError
