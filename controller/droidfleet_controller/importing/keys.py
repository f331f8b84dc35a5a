"""Keys by the names and codes that Android has for them, as steps of protocol v1.

Names and numbers are those of `android.view.KeyEvent`, whose names begin with KEYCODE_.
"""

from __future__ import annotations

from collections.abc import Mapping

from droidfleet_controller.importing.building import Step
from droidfleet_shared.protocol.suggestions import folded

_BY_CODE: Mapping[int, tuple[str, Step]] = {
    3: ("HOME", {"action": "KEY", "key": "HOME"}),
    4: ("BACK", {"action": "BACK"}),
    24: ("VOLUME_UP", {"action": "KEY", "key": "VOLUME_UP"}),
    25: ("VOLUME_DOWN", {"action": "KEY", "key": "VOLUME_DOWN"}),
    26: ("POWER", {"action": "KEY", "key": "POWER"}),
    61: ("TAB", {"action": "KEY", "key": "TAB"}),
    66: ("ENTER", {"action": "KEY", "key": "ENTER"}),
    67: ("DEL", {"action": "KEY", "key": "DELETE"}),
    82: ("MENU", {"action": "KEY", "key": "MENU"}),
    83: ("NOTIFICATION", {"action": "KEY", "key": "NOTIFICATIONS"}),
    84: ("SEARCH", {"action": "KEY", "key": "SEARCH"}),
    187: ("APP_SWITCH", {"action": "KEY", "key": "RECENTS"}),
    224: ("WAKEUP", {"action": "WAKE"}),
}
"""Android's code, its name without KEYCODE_, and the step."""

_ALSO = {
    "DELETE": 67,
    "BACKSPACE": 67,
    "RECENT": 187,
    "RECENTS": 187,
    "RECENT_APPS": 187,
    "NOTIFICATIONS": 83,
    "RETURN": 66,
    "WAKE": 224,
    "MENU_KEY": 82,
}
"""Other names that are in use."""

_QUICK_SETTINGS: Step = {"action": "KEY", "key": "QUICK_SETTINGS"}

KEY_NAMES = (*sorted(label for label, _ in _BY_CODE.values()), "QUICK_SETTINGS")
"""What may be written, for hints."""

KEY_CODES = {code: label for code, (label, _) in _BY_CODE.items()}

_BY_NAME = {folded(label): step for label, step in _BY_CODE.values()} | {
    folded(label): _BY_CODE[code][1] for label, code in _ALSO.items()
}


def key_step(key: str) -> Step | None:
    """The fields of the step that presses the key; None when protocol v1 has none that does.

    ``key``: a name in any case and spelling (`home`, `KEYCODE_HOME`, `Volume Up`) or a code (`3`).
    """
    word = folded(key)
    if word.isascii() and word.isdecimal() and len(word) <= 4:
        return _BY_CODE[int(word)][1] if int(word) in _BY_CODE else None
    word = word.removeprefix("keycode")
    return _QUICK_SETTINGS if word == "quicksettings" else _BY_NAME.get(word)
