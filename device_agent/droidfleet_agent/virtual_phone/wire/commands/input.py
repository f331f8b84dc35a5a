"""Commands about touching and typing: input, ime, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from droidfleet_agent.virtual_phone.wire.commands.base import Command, Context, Output, failed, options, printed

DEFAULT_SWIPE_MS = 300
STEP_MS = 5
"""One step of a swipe, as the automation server counts."""

KEY_CODES: Mapping[str, int] = MappingProxyType(
    {
        "SOFT_LEFT": 1,
        "HOME": 3,
        "BACK": 4,
        **{str(digit): 7 + digit for digit in range(10)},
        "DPAD_UP": 19,
        "DPAD_DOWN": 20,
        "DPAD_LEFT": 21,
        "DPAD_RIGHT": 22,
        "DPAD_CENTER": 23,
        "VOLUME_UP": 24,
        "VOLUME_DOWN": 25,
        "POWER": 26,
        "CAMERA": 27,
        **{chr(ord("A") + letter): 29 + letter for letter in range(26)},
        "TAB": 61,
        "SPACE": 62,
        "ENTER": 66,
        "DEL": 67,
        "MENU": 82,
        "SEARCH": 84,
        "PAGE_UP": 92,
        "PAGE_DOWN": 93,
        "ESCAPE": 111,
        "FORWARD_DEL": 112,
        "MOVE_HOME": 122,
        "MOVE_END": 123,
        "VOLUME_MUTE": 164,
        "APP_SWITCH": 187,
        "SLEEP": 223,
        "WAKEUP": 224,
        "CUT": 277,
        "COPY": 278,
        "PASTE": 279,
    }
)
"""Android's key codes by name, without ``KEYCODE_``. Source: android.view.KeyEvent."""


def _numbers(words: Sequence[str], least: int) -> list[float]:
    if len(words) < least:
        raise ValueError("too few arguments")
    return [float(word) for word in words]


def _tap(context: Context, words: Sequence[str]) -> Output:
    x, y = _numbers(words, 2)[:2]
    context.phone.tap(x, y)
    return Output()


def _swipe(context: Context, words: Sequence[str]) -> Output:
    x1, y1, x2, y2, *rest = _numbers(words, 4)
    duration_ms = rest[0] if rest else DEFAULT_SWIPE_MS
    if (x1, y1) == (x2, y2):
        context.phone.tap(x1, y1, duration_ms=int(duration_ms))  # how a long press is written with `input`
    else:
        context.phone.swipe([(x1, y1), (x2, y2)], max(1, int(duration_ms / STEP_MS)))
    return Output()


def _drag(context: Context, words: Sequence[str]) -> Output:
    x1, y1, x2, y2, *rest = _numbers(words, 4)
    context.phone.drag((x1, y1), (x2, y2), max(1, int((rest[0] if rest else DEFAULT_SWIPE_MS) / STEP_MS)))
    return Output()


def _text(context: Context, words: Sequence[str]) -> Output:
    text = " ".join(words).replace("%s", " ")
    if not text.isascii():
        # The key character map has no keys for it: what a phone prints, cut to the line that matters.
        return failed("java.lang.NullPointerException: Attempt to get length of null array", 255)
    context.phone.type_text(text)
    return Output()


def _keyevent(context: Context, words: Sequence[str]) -> Output:
    for word in words:
        if word.startswith("--"):
            continue
        name = word.upper().removeprefix("KEYCODE_")
        code = int(word) if word.isascii() and word.isdigit() else KEY_CODES.get(name)
        if code is None:
            return failed(f"Error: Unknown key: {word}")
        context.phone.press_key_code(code)
    return Output()


_INPUT: Mapping[str, Callable[[Context, Sequence[str]], Output]] = MappingProxyType(
    {"tap": _tap, "swipe": _swipe, "draganddrop": _drag, "text": _text, "keyevent": _keyevent}
)
_SOURCES = frozenset({"touchscreen", "keyboard", "mouse", "touchpad", "dpad", "stylus"})


def _input(context: Context, words: Sequence[str]) -> Output:
    words = list(words)
    while words and (words[0] in _SOURCES or words[0] == "-d"):
        del words[: 2 if words[0] == "-d" else 1]
    command = _INPUT.get(words[0]) if words else None
    if command is None:
        return failed(f"Error: Unknown command: {words[0] if words else ''}", 255)
    try:
        return command(context, words[1:])
    except (ValueError, OverflowError) as error:
        return failed(f"Error: Invalid arguments for command: {words[0]} ({error})", 255)


def _ime_list(context: Context, words: Sequence[str]) -> Output:
    found, _ = options(words)
    methods = context.phone.installed_input_methods if "-a" in found else context.phone.input_methods
    return printed("\n".join(methods if "-s" in found else [f"{method}:\n  mId={method}" for method in methods]))


def _ime_enable(context: Context, words: Sequence[str]) -> Output:
    method = words[-1] if words else ""
    if not context.phone.enable_input_method(method):
        return failed(f"Unknown input method {method} cannot be enabled for user #0")
    return printed(f"Input method {method}: now enabled for user #0")


def _ime_set(context: Context, words: Sequence[str]) -> Output:
    method = words[-1] if words else ""
    if not context.phone.set_default_input_method(method):
        return failed(f"Unknown input method {method} cannot be selected for user #0")
    return printed(f"Input method {method} selected for user #0")


def _ime_disable(context: Context, words: Sequence[str]) -> Output:
    method = words[-1] if words else ""
    others = [other for other in context.phone.input_methods if other != method]
    # Disabling the selected one selects the first that is left, as the system does.
    if context.phone.default_input_method == method and others:
        context.phone.set_default_input_method(others[0])
    return printed(f"Input method {method}: now disabled for user #0")


_IME: Mapping[str, Callable[[Context, Sequence[str]], Output]] = MappingProxyType(
    {"list": _ime_list, "enable": _ime_enable, "set": _ime_set, "disable": _ime_disable}
)


def _ime(context: Context, words: Sequence[str]) -> Output:
    command = _IME.get(words[0]) if words else None
    return failed("Error: unknown ime command") if command is None else command(context, words[1:])


MAX_SETTINGS = 1_000
"""Names kept in one namespace."""


def _settings(context: Context, words: Sequence[str]) -> Output:
    _, rest = options(words, valued=("--user",))
    values = context.machine.settings.get(rest[1]) if len(rest) > 1 else None
    if values is None:
        return failed("Invalid command")
    answer = Output()
    match rest:
        case ["get", "secure", "default_input_method"]:
            answer = printed(context.phone.default_input_method)
        case ["get", _, name]:
            answer = printed(values.get(name, "null"))
        case ["put", "secure", "default_input_method", value]:
            context.phone.set_default_input_method(value)
        case ["put", _, name, value] if name in values or len(values) < MAX_SETTINGS:
            values[name] = value
        case ["delete", _, name]:
            answer = printed(f"Deleted {0 if values.pop(name, None) is None else 1} rows")
        case ["list", _]:
            answer = printed("\n".join(f"{name}={value}" for name, value in sorted(values.items())))
        case _:
            answer = failed("Invalid command")
    return answer


INPUT_COMMANDS: Mapping[str, Command] = MappingProxyType({"input": _input, "ime": _ime, "settings": _settings})
