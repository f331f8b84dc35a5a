"""The JSON-RPC methods that are about the whole phone: looking, touching by coordinates, keys, clipboard, display."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, cast, get_args

from droidfleet_agent.virtual_phone.phone import Orientation, Point, VirtualPhone
from droidfleet_agent.virtual_phone.wire.rpc import Params, Wait

DEFAULT_TAP_MS = 100
"""How long the real server presses when no time is given."""

DEFAULT_MAX_DEPTH = 50
DEFAULT_JPEG_QUALITY = 80
_DOWN, _UP, _MOVE = 0, 1, 2
_TOUCH_SLOP_PX = 24
"""A finger that moved less than this between down and up has tapped (Android's touch slop, 8 dp)."""

_GESTURE_STEPS = 20
MAX_TOUCH_POINTS = 1_000
"""Moves remembered of one gesture; a longer one goes on from its last."""


class Touches:
    """A finger that is put down, moved and lifted by separate calls."""

    def __init__(self, phone: VirtualPhone) -> None:
        self._phone = phone
        self._points: list[Point] = []
        self._down_at = 0.0

    def inject(self, action: int, x: float, y: float) -> bool:
        """One event. The gesture reaches the phone when the finger is lifted."""
        if action == _DOWN:
            self._points = [(x, y)]
            self._down_at = self._phone.clock.monotonic()
            return True
        if not self._points:
            return False
        if action == _MOVE:
            del self._points[MAX_TOUCH_POINTS:]
            self._points.append((x, y))
            return True
        if action != _UP:
            return False
        points, self._points = [*self._points, (x, y)], []
        held_ms = int((self._phone.clock.monotonic() - self._down_at) * 1_000)
        (left, top), moved = points[0], points[1:]
        if all(abs(px - left) <= _TOUCH_SLOP_PX and abs(py - top) <= _TOUCH_SLOP_PX for px, py in moved):
            return self._phone.tap(x, y, duration_ms=held_ms)
        return self._phone.swipe(points, _GESTURE_STEPS)


@dataclass(frozen=True, slots=True)
class DeviceMethods:
    """What the methods below work on."""

    phone: VirtualPhone
    touches: Touches
    configurator: dict[str, object]


def _click(device: DeviceMethods, params: Params) -> object:
    x, y = params.number(0), params.number(1)
    if x < 0 or y < 0:
        return False
    return device.phone.tap(x, y, duration_ms=params.integer(2, DEFAULT_TAP_MS))


def _dump(device: DeviceMethods, params: Params) -> object:
    return device.phone.dump(
        compressed=params.boolean(0, False),
        max_depth=params.integer(1, DEFAULT_MAX_DEPTH),
        active_only=params.boolean(2, False),
    )


def _screenshot(device: DeviceMethods, params: Params) -> object:
    scale, quality = params.number(0, 1.0), params.integer(1, DEFAULT_JPEG_QUALITY)
    # Broken into lines, as Android's Base64.DEFAULT does.
    return base64.encodebytes(device.phone.screenshot(media="JPEG", quality=quality, scale=scale)).decode()


def _swipe_points(device: DeviceMethods, params: Params) -> object:
    numbers = params.numbers(0)
    return device.phone.swipe(list(zip(numbers[::2], numbers[1::2], strict=False)), params.integer(1))


def _set_orientation(device: DeviceMethods, params: Params) -> object:
    wanted = params.text(0)
    # "upsidedown" is accepted and ignored by the real server.
    if wanted in get_args(Orientation) and wanted != "upsidedown":
        device.phone.set_orientation(cast("Orientation", wanted))
    return None


def _set_clipboard(device: DeviceMethods, params: Params) -> object:
    device.phone.set_clipboard(params.text(1))
    return None


def _wait_for_window_update(device: DeviceMethods, params: Params) -> object:
    before = device.phone.window_changes
    return Wait(lambda: device.phone.window_changes != before, params.seconds(1, 0))


def _set_configurator(device: DeviceMethods, params: Params) -> object:
    value = params.value(0)
    if isinstance(value, dict):
        device.configurator.update({name: value[name] for name in device.configurator.keys() & value.keys()})
    return dict(device.configurator)


_Method = Callable[[DeviceMethods, Params], object]


def _void(act: _Method) -> _Method:
    """A Java void method: its result is null, whatever the phone said."""

    def method(device: DeviceMethods, params: Params) -> object:
        act(device, params)
        return None

    return method


DEVICE_METHODS: Mapping[str, _Method] = MappingProxyType(
    {
        "ping": lambda _device, _params: "pong",
        "deviceInfo": lambda device, _: device.phone.device_info(),
        "dumpWindowHierarchy": _dump,
        "takeScreenshot": _screenshot,
        "click": _click,
        "injectInputEvent": lambda device, p: device.touches.inject(p.integer(0), p.number(1), p.number(2)),
        "swipe": lambda device, p: device.phone.swipe(
            [(p.number(0), p.number(1)), (p.number(2), p.number(3))], p.integer(4)
        ),
        "swipePoints": _swipe_points,
        "drag": lambda device, p: device.phone.drag(
            (p.number(0), p.number(1)), (p.number(2), p.number(3)), p.integer(4)
        ),
        "pressKey": lambda device, p: device.phone.press_key(p.text(0)),
        "pressKeyCode": lambda device, p: device.phone.press_key_code(p.integer(0), p.integer(1, 0)),
        "wakeUp": _void(lambda device, _: device.phone.wake()),
        "sleep": _void(lambda device, _: device.phone.sleep()),
        "isScreenOn": lambda device, _: device.phone.screen_on,
        "freezeRotation": _void(lambda device, p: device.phone.freeze_rotation(p.boolean(0))),
        "setOrientation": _set_orientation,
        "openNotification": lambda device, _: device.phone.open_notification(),
        "openQuickSettings": lambda device, _: device.phone.open_quick_settings(),
        "waitForIdle": lambda _device, _params: None,
        "waitForWindowUpdate": _wait_for_window_update,
        "setClipboard": _set_clipboard,
        "getClipboard": lambda device, _: device.phone.clipboard,
        "pasteClipboard": _void(lambda device, _: device.phone.paste()),
        "clearInputText": _void(lambda device, _: device.phone.clear_focused_text()),
        "getLastToast": lambda device, _: device.phone.last_toast,
        "clearLastToast": _void(lambda device, _: device.phone.clear_toast()),
        "getLastTraversedText": lambda _device, _params: None,
        "clearLastTraversedText": lambda _device, _params: None,
        "getConfigurator": lambda device, _: dict(device.configurator),
        "setConfigurator": _set_configurator,
        "launchApp": lambda device, p: device.phone.start_app(p.text(0)),
    }
)
"""Methods whose parameters are plain values."""

DEFAULT_CONFIGURATOR: Mapping[str, Literal[0] | int] = MappingProxyType(
    {
        "actionAcknowledgmentTimeout": 3_000,
        "keyInjectionDelay": 0,
        "scrollAcknowledgmentTimeout": 200,
        "waitForIdleTimeout": 0,
        "waitForSelectorTimeout": 0,
    }
)
"""UiAutomator's Configurator as the server sets it up, milliseconds."""
