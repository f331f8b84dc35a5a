"""From a call to the one protocol step that it runs. Pure."""

from __future__ import annotations

from typing import assert_never

from pydantic import JsonValue

from droidfleet_designer.observation.naming import written
from droidfleet_designer.observation.observe import Element
from droidfleet_designer.tools.arguments import (
    Acting,
    Back,
    LongPress,
    OpenApp,
    PressKey,
    Scroll,
    StopApp,
    Swipe,
    Tap,
    TapPoint,
    TypeText,
    Wait,
)

STEP_ID = "now"

Step = dict[str, JsonValue]


def step_of(call: Acting, element: Element | None) -> Step:
    """The step, as it would stand in a task. ``element``: the one that the call means, which has a selector."""
    return {"id": STEP_ID, **_fields(call, _selector(element))}


def going_to(package: str) -> Step:
    """The step that brings an app to the front."""
    return {"id": STEP_ID, "action": "OPEN", "packageName": package}


def going_home() -> Step:
    """The step that shows the launcher."""
    return {"id": STEP_ID, "action": "KEY", "key": "HOME"}


def _fields(call: Acting, selector: Step) -> Step:  # noqa: PLR0911, PLR0912 - one for each action
    match call:
        case OpenApp():
            return {"action": "OPEN", "packageName": _literal(call.package), "stopFirst": call.afresh}
        case StopApp():
            return {"action": "STOP_APP", "packageName": _literal(call.package)}
        case Tap():
            return {"action": "CLICK", **selector, "times": call.times}
        case TapPoint():
            point: Step = {"xPercent": call.x_percent, "yPercent": call.y_percent}
            return {"action": "CLICK", "selector": {"point": point, "allowPoint": True}}
        case LongPress():
            return {"action": "LONG_CLICK", **selector, "durationMs": call.hold_ms}
        case TypeText():
            value = _literal(call.text)
            return {"action": "INPUT", **selector, "value": value, "clear": call.clear, "submit": call.submit}
        case PressKey():
            return {"action": "KEY", "key": call.key}
        case Back():
            return {"action": "BACK"}
        case Scroll():
            until: Step = {"until": _saying(call.until_text)} if call.until_text is not None else {}
            scrolls: Step = {"direction": call.direction, "maxScrolls": call.max_scrolls}
            return {"action": "SCROLL", **selector, **scrolls, **until}
        case Swipe():
            moved: Step = {"direction": call.direction, "distancePercent": call.distance_percent}
            return {"action": "SWIPE", **selector, **moved}
        case Wait():
            milliseconds = round(call.seconds * 1000)
            if call.text is None:
                return {"action": "DELAY", "minMs": milliseconds}
            condition: Step = {"visible": _saying(call.text)}
            return {"action": "WAIT", "condition": condition, "timeoutMs": milliseconds}
        case _ as never:
            assert_never(never)


def _selector(element: Element | None) -> Step:
    if element is None:
        return {}
    assert element.selector is not None, "an element that nothing names is refused before"
    return {"selector": written(element.selector)}


def _saying(text: str) -> Step:
    return {"textContains": _literal(text)}


def _literal(text: str) -> str:
    """The text so that the protocol takes none of it for a reference."""
    return text.replace("${", "$${")
