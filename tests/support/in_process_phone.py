"""The virtual phone's model behind the agent's port, without adb and HTTP: for many runs that need no wire.

What a call does to the model is what the automation server and the shell make of it (`virtual_phone.wire`).
"""

from __future__ import annotations

from droidfleet_agent.driver.gestures import ESCAPE_KEY_CODE, KEY_CODES, STEP_MS, steps_of, swipe_call
from droidfleet_agent.driver.port import (
    ActionRefusedError,
    Display,
    Focus,
    Key,
    Phone,
    PhoneInfo,
    ScreenState,
)
from droidfleet_agent.virtual_phone.effects import Effect, EffectLog
from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_shared.clock import Deadline, VirtualClock

CALL_S = 0.02
"""What a call takes, about as on a real phone."""

TAP_MS = 100


class InProcessPhone(Phone):
    """One phone with a scenario's apps. Never fails: faults are tested elsewhere."""

    def __init__(self, scenario: Scenario, clock: VirtualClock) -> None:
        self.identity = PhoneIdentity()
        self.effects = EffectLog(clock, serial=self.identity.serial)
        self.model = VirtualPhone(scenario, identity=self.identity, effects=self.effects, clock=clock)
        self._clock = clock

    @property
    def happened(self) -> list[Effect]:
        """What the apps made of it."""
        return [effect for effect in self.effects.all() if effect.origin == "app"]

    def _phone(self, takes_s: float = 0.0) -> VirtualPhone:
        self._clock.advance(CALL_S + takes_s)
        self.model.tick()
        return self.model

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        return self._phone().dump(active_only=active_only)

    async def focus(self, *, deadline: Deadline) -> Focus:
        focus = self._phone().focus()
        return Focus(focus.package, focus.activity)

    async def display(self, *, deadline: Deadline) -> Display:
        return Display(self.identity.width, self.identity.height)

    async def input_methods(self, *, deadline: Deadline) -> frozenset[str]:
        return frozenset(method.partition("/")[0] for method in self.model.input_methods)

    async def keyboard_shown(self, *, deadline: Deadline) -> bool:
        return self._phone().keyboard_shown

    async def screenshot(self, *, deadline: Deadline) -> bytes:
        return self._phone().screenshot()

    async def info(self, *, deadline: Deadline) -> PhoneInfo:
        return PhoneInfo(
            serial=self.identity.serial,
            model=self.identity.model,
            android=self.identity.android,
            sdk=self.identity.sdk,
            display=Display(self.identity.width, self.identity.height),
            battery_percent=self.identity.battery_percent,
            foreground_package=self.model.focus().package,
        )

    async def screen_state(self, *, deadline: Deadline) -> ScreenState:
        phone = self._phone()
        return ScreenState(on=phone.screen_on, locked=phone.locked, secure=phone.secure_lock)

    async def tap(self, x: int, y: int, *, deadline: Deadline, hold_ms: int | None = None) -> bool:
        duration_ms = TAP_MS if hold_ms is None else hold_ms
        return self._phone(duration_ms / 1_000).tap(x, y, duration_ms=duration_ms)

    async def swipe(
        self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int = 0, deadline: Deadline
    ) -> bool:
        method, given = swipe_call(start, end, duration_ms=duration_ms, hold_ms=hold_ms)
        phone = self._phone((duration_ms + hold_ms) / 1_000)
        if method == "swipe":
            return phone.swipe([start, end], steps_of(duration_ms))
        numbers, steps = given
        assert isinstance(numbers, list)
        assert isinstance(steps, int)
        along = [float(str(number)) for number in numbers]
        return phone.swipe(list(zip(along[::2], along[1::2], strict=True)), steps)

    async def drag(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, deadline: Deadline) -> bool:
        return self._phone(duration_ms / 1_000).drag(start, end, max(2, duration_ms // STEP_MS))

    async def start_app(self, package: str, *, activity: str | None = None, deadline: Deadline) -> bool:
        if not self._phone().start_app(package, activity):
            raise ActionRefusedError("APP_NOT_FOUND", f"{package} is not installed.")
        return True

    async def stop_app(self, package: str, *, deadline: Deadline) -> bool:
        self._phone().stop_app(package)
        return True

    async def wake(self, *, deadline: Deadline) -> bool:
        return self._phone().wake()

    async def dismiss_lock(self, *, deadline: Deadline) -> bool:
        return self._phone().dismiss_keyguard()

    async def set_focused_text(self, text: str, *, deadline: Deadline) -> bool:
        phone = self._phone()
        node = phone.focused_node()
        if node is None:
            raise ActionRefusedError("ACTION_REFUSED", "no field has the input focus.")
        return phone.set_text(node, text)

    async def press(self, key: Key, *, deadline: Deadline) -> bool:
        phone = self._phone()
        match key:
            case Key.NOTIFICATIONS:
                return phone.open_notification()
            case Key.QUICK_SETTINGS:
                return phone.open_quick_settings()
            case _:
                return phone.press_key_code(KEY_CODES[key])

    async def hide_keyboard(self, *, deadline: Deadline) -> bool:
        return self._phone().press_key_code(ESCAPE_KEY_CODE)

    async def close(self) -> None:
        pass
