"""The phone's own apps (system bars, shade, lock screen, launcher) and its keyboard, described like any other app."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.scenario.models import App

SYSTEM_UI = "com.android.systemui"
LAUNCHER = "com.google.android.apps.nexuslauncher"
KEYBOARD = "com.google.android.inputmethod.latin"
KEYBOARD_ID = f"{KEYBOARD}/com.android.inputmethod.latin.LatinIME"

KEYBOARD_HEIGHT_DP = 260
"""Height of Gboard with its row of digits, about 30 % of a phone's screen."""

KEY_DELETE, KEY_SHIFT, KEY_ENTER, KEY_SYMBOLS, KEY_SPACE = "Delete", "Shift", "Enter", "Symbol keyboard", "Space"
"""content-desc of the keys that type no character of their own."""

_LETTERS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_SYMBOLS = ("1234567890", "@#$_&-+()/", "*\"':;!?~", "%=[]{}<>")
_NUMBERS = ("123", "456", "789", "0")


@lru_cache(maxsize=1)
def system_apps() -> tuple[App, ...]:
    """System UI, the launcher and the keyboard."""
    text = (resources.files("droidfleet_agent.virtual_phone.model") / "system.yaml").read_bytes()
    return (*parse_scenario(text, source="system").apps, _keyboard_app())


def _keyboard_app() -> App:
    screens = {
        "letters": _LETTERS,
        "capitals": tuple(row.upper() for row in _LETTERS),
        "symbols": _SYMBOLS,
        "numbers": _NUMBERS,
    }
    return App.model_validate(
        {
            "package": KEYBOARD,
            "label": "Gboard",
            "system": True,
            "home": "letters",
            "theme": {"primary": "#dfe3ea", "surface": "#eceff4"},
            "screens": {
                name: {"activity": ".Keyboard", "root": _keys(rows, numbers=name == "numbers")}
                for name, rows in screens.items()
            },
        }
    )


def _keys(rows: tuple[str, ...], *, numbers: bool) -> dict[str, object]:
    lines: list[dict[str, object]] = []
    for number, row in enumerate(rows):
        keys = [_key(character, id_=f"key_pos_{number}_{at}") for at, character in enumerate(row)]
        if number == len(rows) - 1:
            if not numbers:
                keys.insert(0, _key("", description=KEY_SHIFT, weight=1.5))
            keys.append(_key("", description=KEY_DELETE, weight=1.5))
            if numbers:
                keys.append(_key("", description=KEY_ENTER, weight=1.5))
        lines.append(_line(keys))
    if not numbers:
        lines.append(
            _line(
                [
                    _key("?123", description=KEY_SYMBOLS, weight=1.5),
                    _key(","),
                    _key("", description=KEY_SPACE, weight=4),
                    _key("."),
                    _key("", description=KEY_ENTER, weight=1.5),
                ]
            )
        )
    return {
        "type": "stack",
        "id": "keyboard_area",
        "height": "fill",
        "background": "surface",
        "children": [
            {
                "type": "column",
                "id": "keyboard_holder",
                "height": "fill",
                "padding": [4, 6],
                "gap": 6,
                "children": lines,
            }
        ],
    }


def _line(keys: list[dict[str, object]]) -> dict[str, object]:
    return {"type": "row", "weight": 1, "gap": 4, "class": "android.widget.LinearLayout", "children": keys}


def _key(label: str, *, description: str | None = None, weight: float = 1, id_: str | None = None) -> dict[str, object]:
    key: dict[str, object] = {
        "type": "button",
        "text": label,
        "description": label if description is None else description,
        "class": "android.widget.TextView" if label else "android.widget.ImageView",
        "weight": weight,
        "height": "fill",
        "padding": 0,
        "corner": 6,
        "background": "white" if description in (None, KEY_SPACE) else "primary",
        "clickable": True,
    }
    return key if id_ is None else {**key, "id": id_}
