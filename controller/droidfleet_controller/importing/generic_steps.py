"""The steps of *generic_steps* documents that hold no others, each as a step of protocol v1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from droidfleet_controller.importing.building import MS_PER_S, Step, escaped, time_for, without_gaps
from droidfleet_controller.importing.fields import Fields, meant
from droidfleet_controller.importing.keys import KEY_NAMES, key_step
from droidfleet_controller.importing.report import ImportCode
from droidfleet_shared.protocol.steps.reading import MAX_DELAY_MS
from droidfleet_shared.protocol.steps.touching import DEFAULT_SCROLLS
from droidfleet_shared.protocol.wording import name, shown

MAX_SWIPE_S = 10
MIN_SWIPE_MS = 50
MAX_SCROLLS = 50
MANY_SCROLLS = 15
"""More than fit into a step's longest time when each takes two seconds."""

SELECTOR = ("selector_type", "selector_value")
SELECTOR_TYPES = ("text", "resourceId", "description", "descriptionContains", "className", "xpath")
DIRECTIONS = {"up": "UP", "down": "DOWN", "left": "LEFT", "right": "RIGHT"}
_FURTHER = {"UP": "DOWN", "DOWN": "UP", "LEFT": "RIGHT", "RIGHT": "LEFT"}
"""What a finger that moves there shows: up shows what lies further down."""

_SELECTOR_SYNONYMS = {
    "id": "resourceId",
    "rid": "resourceId",
    "content-desc": "description",
    "contentDescription": "description",
    "desc": "description",
    "class": "className",
    "label": "text",
    "name": "text",
    "textContains": "text",
}


@dataclass(frozen=True, slots=True)
class StepType:
    """A type of step: its parameters, one as it should be, and what makes a step of protocol v1 of it.

    ``make`` gives None where it has reported what is wrong.
    """

    params: tuple[str, ...]
    example: str
    make: Callable[[Fields], Step | None]


def _open_app(fields: Fields) -> Step | None:
    package = fields.text("package", required=True)
    if fields.truth("wait_home") is not None:
        message = (
            "`wait_home` needs nothing: OPEN always waits until the app is in front, and fails when it does not come"
        )
        hint = "If its first screen loads slowly, add a WAIT for something on it."
        fields.scope.normalised(fields.at("wait_home"), ImportCode.DIFFERS, message, hint)
    return None if package is None else {"action": "OPEN", "packageName": package.strip()}


def _stop_app(fields: Fields) -> Step | None:
    package = fields.text("package", required=True)
    return None if package is None else {"action": "STOP_APP", "packageName": package.strip()}


def _click(fields: Fields) -> Step | None:
    selector = selector_of(fields)
    return None if selector is None else {"action": "CLICK", "selector": selector}


def _long_click(fields: Fields) -> Step | None:
    selector = selector_of(fields)
    return None if selector is None else {"action": "LONG_CLICK", "selector": selector}


def _wait_el(fields: Fields) -> Step | None:
    selector = selector_of(fields)
    return None if selector is None else {"action": "WAIT", "condition": {"visible": selector}}


def _swipe_until(fields: Fields) -> Step | None:
    selector = selector_of(fields)
    direction = fields.word("direction", DIRECTIONS, required=True)
    scrolls = fields.whole("max_swipes", low=1, high=MAX_SCROLLS, unit="swipes")
    if "max_swipes" not in fields:
        message = f"`max_swipes` is not given; {DEFAULT_SCROLLS} are taken"
        fields.scope.normalised(fields.place, ImportCode.ASSUMED, message)
    elif scrolls is not None and scrolls > MANY_SCROLLS:
        message = f"{scrolls} swipes must be done within 30 s, the longest time that a step may take"
        fields.scope.normalised(fields.at("max_swipes"), ImportCode.DIFFERS, message)
    if direction is None or selector is None:
        return None
    return without_gaps(action="SCROLL", direction=_FURTHER[direction], until=selector, maxScrolls=scrolls)


def _swipe(fields: Fields) -> Step | None:
    direction = fields.word("direction", DIRECTIONS, required=True)
    shortest, longest = (_swipe_ms(fields, field) for field in ("duration_min", "duration_max"))
    given = [each for each in (shortest, longest) if each is not None]
    duration = round(sum(given) / len(given)) if given else None
    if len(set(given)) > 1:
        message = f"a random duration of {min(given)} to {max(given)} ms becomes its middle, {duration} ms"
        fields.scope.normalised(fields.at("duration_min"), ImportCode.DIFFERS, message)
    timeout = time_for(duration)
    if direction is None:
        return None
    return without_gaps(action="SWIPE", direction=direction, durationMs=duration, timeoutMs=timeout)


def _swipe_ms(fields: Fields, field: str) -> int | None:
    """A swipe's duration: seconds, or milliseconds where seconds make no sense."""
    advice = f"Write seconds: 0.05 to {MAX_SWIPE_S}."
    value = fields.number(field, low=0, high=MAX_SWIPE_S * MS_PER_S, unit="seconds", advice=advice)
    if value is None:
        return None
    if value >= MIN_SWIPE_MS:
        message = f"{name(field)} is {value:g}, which can only be milliseconds"
        fields.scope.normalised(fields.at(field), ImportCode.ASSUMED, message)
        return round(value)
    if MIN_SWIPE_MS / MS_PER_S <= value <= MAX_SWIPE_S:
        return round(value * MS_PER_S)
    fields.refuse(field, ImportCode.OUT_OF_RANGE, f"{name(field)} is {value:g} seconds; no swipe takes that", advice)
    return None


def _wait(fields: Fields) -> Step | None:
    most_s = MAX_DELAY_MS // MS_PER_S
    advice = f"For a longer wait put it into a `loop` of several rounds, each {most_s} seconds or shorter."
    least = fields.number("min", low=0, high=most_s, unit="seconds", required=True, advice=advice)
    most = fields.number("max", low=0, high=most_s, unit="seconds", advice=advice)
    if least is None:
        return None
    if most is not None and most < least:
        message = f"`min` {least:g} and `max` {most:g} are read the other way round"
        fields.scope.normalised(fields.at("min"), ImportCode.SPELLING, message)
        least, most = most, least
    return without_gaps(
        action="DELAY", minMs=round(least * MS_PER_S), maxMs=None if most is None else round(most * MS_PER_S)
    )


def _key_event(fields: Fields) -> Step | None:
    key = fields.text("key", required=True)
    if key is None:
        return None
    step = key_step(key)
    if step is None:
        message = f"no action of protocol v1 presses the key {shown(key)}"
        fields.refuse("key", ImportCode.UNKNOWN_KEY, message, meant(key, KEY_NAMES))
    return step


def _screen_on(_fields: Fields) -> Step:
    return {"action": "WAKE"}


def _click_xy(fields: Fields) -> Step | None:
    point = [_percent(fields, field) for field in ("x", "y")]
    if None in point:
        return None
    return {
        "action": "CLICK",
        "selector": {"point": {"xPercent": point[0], "yPercent": point[1]}, "allowPoint": True},
    }


def _percent(fields: Fields, field: str) -> int | None:
    value = fields.number(field, low=0, high=100, unit="percent of the screen", required=True)
    if value is not None and 0 < value < 1:
        message = f"{name(field)} is {value:g}; it is not plain whether that is percent or a part of one"
        fields.refuse(field, ImportCode.BAD_VALUE, message, f"Write percent: {value * 100:g} if a part was meant.")
        return None
    return fields.whole(field, low=0, high=100, unit="percent") if value is not None else None


def selector_of(fields: Fields, *, also: tuple[str, ...] = ()) -> Step | None:
    """The selector of a step; None when it is wrong, which is reported. ``also`` are further types than the usual."""
    types = (*SELECTOR_TYPES, *also)
    field = fields.word("selector_type", {each: each for each in types}, required=True, synonyms=_SELECTOR_SYNONYMS)
    value = fields.text("selector_value", required="selector_value" not in fields)
    if value is not None and not value.strip():
        message = "`selector_value` is empty, so no node is meant; other programs skip such a step without a word"
        fields.refuse("selector_value", ImportCode.EMPTY_SELECTOR, message)
        return None
    if field is None or value is None:
        return None
    return {"ocrText" if field == "ocr" else field: escaped(value)}


LEAVES: Mapping[str, StepType] = {
    "open_app": StepType(
        ("package", "wait_home"),
        '{"type": "open_app", "params": {"package": "com.example.shop"}}',
        _open_app,
    ),
    "stop_app": StepType(("package",), '{"type": "stop_app", "params": {"package": "com.example.shop"}}', _stop_app),
    "click": StepType(
        SELECTOR, '{"type": "click", "params": {"selector_type": "text", "selector_value": "OK"}}', _click
    ),
    "long_click": StepType(
        SELECTOR, '{"type": "long_click", "params": {"selector_type": "text", "selector_value": "OK"}}', _long_click
    ),
    "wait_el": StepType(
        SELECTOR, '{"type": "wait_el", "params": {"selector_type": "text", "selector_value": "OK"}}', _wait_el
    ),
    "swipe_until": StepType(
        ("direction", "max_swipes", *SELECTOR),
        '{"type": "swipe_until", "params": {"direction": "up", "max_swipes": 5, "selector_type": "text", '
        '"selector_value": "OK"}}',
        _swipe_until,
    ),
    "swipe": StepType(
        ("direction", "duration_min", "duration_max"),
        '{"type": "swipe", "params": {"direction": "up", "duration_min": 0.2, "duration_max": 0.5}}',
        _swipe,
    ),
    "wait": StepType(("min", "max"), '{"type": "wait", "params": {"min": 1, "max": 3}}', _wait),
    "click_xy": StepType(("x", "y"), '{"type": "click_xy", "params": {"x": 50, "y": 90}}', _click_xy),
    "key_event": StepType(("key",), '{"type": "key_event", "params": {"key": "home"}}', _key_event),
    "screen_on": StepType((), '{"type": "screen_on", "params": {}}', _screen_on),
}
"""By the type's name."""
