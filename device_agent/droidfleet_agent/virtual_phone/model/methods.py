"""The phone's input methods: installed, enabled, selected."""

from __future__ import annotations

from droidfleet_agent.virtual_phone.model.state import PhoneState
from droidfleet_agent.virtual_phone.model.system import KEYBOARD_ID


class InputMethods:
    """Input methods by id (``package/class``). The phone comes with Gboard, enabled and selected."""

    def __init__(self, state: PhoneState) -> None:
        self._state = state
        self.installed: tuple[str, ...] = (KEYBOARD_ID,)
        self.enabled: tuple[str, ...] = (KEYBOARD_ID,)
        self.selected = KEYBOARD_ID

    def install(self, method_id: str) -> None:
        """Adds an input method; it is neither enabled nor selected yet."""
        if method_id not in self.installed:
            self.installed = (*self.installed, method_id)

    def enable(self, method_id: str) -> bool:
        """False when it is not installed."""
        if method_id not in self.installed:
            return False
        if method_id not in self.enabled:
            self.enabled = (*self.enabled, method_id)
        return True

    def select(self, method_id: str) -> bool:
        """False when it is not enabled. Only Gboard has a window; another one takes it away."""
        if method_id not in self.enabled:
            return False
        self.selected = method_id
        self._state.has_keyboard = method_id == KEYBOARD_ID
        self._state.keyboard = self._state.keyboard and self._state.has_keyboard
        self._state.touched()
        return True

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages of the installed input methods."""
        return tuple(method.partition("/")[0] for method in self.installed)
