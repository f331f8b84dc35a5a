"""Keys by name and by Android key code, and what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from droidfleet_agent.virtual_phone.model.pages import Pages
from droidfleet_agent.virtual_phone.model.state import PhoneState
from droidfleet_agent.virtual_phone.model.texts import Texts
from droidfleet_agent.virtual_phone.model.touch import Touch

KEY_NAMES: Final[Mapping[str, int]] = {
    "home": 3,
    "back": 4,
    "up": 19,
    "down": 20,
    "left": 21,
    "right": 22,
    "center": 23,
    "volume_up": 24,
    "volume_down": 25,
    "power": 26,
    "camera": 27,
    "enter": 66,
    "delete": 67,
    "del": 67,
    "menu": 82,
    "search": 84,
    "volume_mute": 164,
    "recent": 187,
}
"""The names that the server's `pressKey` knows; any other is answered with false."""

ESCAPE: Final = 111
_CTRL_MASK: Final = 0x7000
_SHIFT_MASK: Final = 0xC1
_DIGIT_0, _LETTER_A, _LETTER_Z = 7, 29, 54
_CHARACTERS: Final[Mapping[int, str]] = {
    62: " ",
    55: ",",
    56: ".",
    69: "-",
    70: "=",
    74: ";",
    75: "'",
    76: "/",
    77: "@",
}
_MAX_CODE: Final = 320
"""Key codes that Android defines end about here; larger ones are refused."""


class Keys:
    """The keys of one phone."""

    def __init__(self, state: PhoneState, pages: Pages, texts: Texts, touch: Touch) -> None:
        self._state = state
        self._pages = pages
        self._texts = texts
        self._touch = touch

    def press(self, code: int, meta: int) -> bool:
        """Presses a key once. False for a code that Android does not know."""
        if not 0 < code <= _MAX_CODE:
            return False
        if code in (26, 223, 224):
            self._power(code)
        elif self._state.screen_on:
            self._press_awake(code, meta)
        return True

    def _power(self, code: int) -> None:
        if code == 224 or (code == 26 and not self._state.screen_on):
            self.wake()
        else:
            self.sleep()

    def wake(self) -> None:
        """Turns the display on; the lock screen is in front when it was off."""
        state = self._state
        if not state.screen_on:
            state.screen_on = True
            state.window_changed()

    def sleep(self) -> None:
        """Turns the display off and locks."""
        state = self._state
        if state.screen_on:
            state.screen_on = False
            state.locked = True
            state.keyboard = False
            state.shade = None
            state.window_changed()

    def unlock(self) -> bool:
        """Removes the lock screen. False while the display is off, and where it asks for a secret."""
        state = self._state
        if not state.screen_on or (state.locked and state.secure_lock):
            return False
        if state.locked:
            state.locked = False
            state.window_changed()
        return True

    def _press_awake(self, code: int, meta: int) -> None:
        if code == 4:
            self._touch.back()
        elif code == 82:
            self.unlock()
        elif self._state.locked:
            return
        elif code == 3:
            self._pages.go_home()
        elif code == 187:
            self._pages.show_recents()
        elif code == ESCAPE:
            self._pages.hide_keyboard()
        else:
            self._edit(code, meta)

    def _edit(self, code: int, meta: int) -> None:
        texts = self._texts
        if code == 66:
            texts.submit()
        elif code in (67, 112):
            texts.delete(forward=code == 112)
        elif code == 61:
            texts.next_field()
        elif code in (21, 22):
            texts.move_cursor(1 if code == 22 else -1)
        elif meta & _CTRL_MASK:
            self._control(code)
        elif character := _character(code, shift=bool(meta & _SHIFT_MASK)):
            texts.insert(character)

    def _control(self, code: int) -> None:
        focused = self._texts.focused()
        if focused is None:
            return
        letter = chr(ord("a") + code - _LETTER_A) if _LETTER_A <= code <= _LETTER_Z else ""
        if letter == "v" and self._state.clipboard is not None:
            self._texts.insert(self._state.clipboard)
        elif letter in ("c", "x") and not focused.secret:
            self._state.clipboard = focused.value
            if letter == "x":
                self._texts.put(focused, "")


def is_control(code: int) -> bool:
    """Whether the key types no character."""
    return not _character(code, shift=False)


def _character(code: int, *, shift: bool) -> str:
    if _DIGIT_0 <= code < _DIGIT_0 + 10:
        return chr(ord("0") + code - _DIGIT_0)
    if _LETTER_A <= code <= _LETTER_Z:
        return chr(ord("A" if shift else "a") + code - _LETTER_A)
    return _CHARACTERS.get(code, "")
