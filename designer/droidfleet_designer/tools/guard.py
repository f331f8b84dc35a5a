"""Which calls are withheld until a person allows them: those whose effect might not be undone. Pure.

It decides on what was read off the screen, so a button that says nothing of what it does is not found out. It is there
beside the prompt, the lease and whoever watches, not in their place; where it errs, it asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from droidfleet_designer.observation.observe import Element, Observation
from droidfleet_designer.observation.quoting import quoted
from droidfleet_designer.tools.arguments import Acting, LongPress, PressKey, Swipe, Tap, TapPoint, TypeText
from droidfleet_designer.tools.steps import Step
from droidfleet_shared.protocol.advice import warnings
from droidfleet_shared.protocol.codes import WarningCode
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.snapshot import Snapshot

DELETES = "Delete is pressed where no field has the focus, so it may delete what is selected"

_LINE_ENDS = ("\n", "\r")
_SIDEWAYS = ("LEFT", "RIGHT")
_CENTRE = (50, 50)


def why_withheld(  # noqa: PLR0911 - one for each rule
    call: Acting,
    step: Step,
    *,
    element: Element | None,
    seen: Observation | None,
    snapshot: Snapshot | None,
    words: EffectWords,
) -> str:
    """Why a person is asked first, a clause in which what the screen says is quoted; empty: nobody needs to be.

    ``seen`` and ``snapshot`` are the newest observation and its look; None: nothing is known of the screen.
    """
    match call:
        case Tap() | LongPress():
            return on_element(element, step, seen, words)
        case TypeText(submit=submit, text=text) if submit or any(end in text for end in _LINE_ENDS):
            return enter(element)
        case PressKey(key="ENTER"):
            return enter(_focused_field(seen))
        case PressKey(key="DELETE") if _focused_field(seen) is None:
            return DELETES
        case Swipe(direction=direction) if direction in _SIDEWAYS:
            touched = [element] if element is not None else list(_at(_CENTRE, seen, snapshot))
            return next((danger(each) for each in touched if each.danger), "")
        case TapPoint(x_percent=x, y_percent=y):
            return _at_point((x, y), seen, snapshot, words)
        case _:
            return ""


def on_element(element: Element | None, step: Step, seen: Observation | None, words: EffectWords) -> str:
    """Why a tap on an element may do what cannot be undone, as `why_withheld` says it. ``step``: the raw step."""
    if element is None:
        return ""
    return danger(element) or by_selector(step, words) or _agreement(element, seen)


def danger(element: Element) -> str:
    """What stands on an element that warns of its effect, a clause; empty: nothing."""
    if not element.danger:
        return ""
    what = f"the {element.kind} {quoted(element.words)}" if element.words else f"a {element.kind} without words"
    return f"{what}: {quoted(element.danger)} suggests an effect that cannot be undone"


def by_selector(step: Step, words: EffectWords) -> str:
    """By the rule that warns of such a step in a task: whatever it says of one holds while exploring, too."""
    found = warnings({"steps": [step]}, words=words)
    return next((quoted(each.message) for each in found if each.code is WarningCode.IRREVERSIBLE_EFFECT), "")


def _agreement(element: Element, seen: Observation | None) -> str:
    """Whether a bare yes agrees to what a text on the same screen speaks of."""
    if seen is None or not _listed("confirming").found_in(element.words):
        return ""
    for other in seen.elements.values():
        if other.kind == "text" and other.danger:
            return (
                f"{quoted(element.words)} may agree to {quoted(other.words)}: "
                f"{quoted(other.danger)} suggests an effect that cannot be undone"
            )
    return ""


def enter(field: Element | None) -> str:
    """Why Enter in a field, or where none is known, may send; empty in a search."""
    if field is None:
        return "Enter is pressed where no field is known to have the focus, so it may do anything"
    named = field.selector.resource_id if field.selector is not None else None
    if not field.danger and _listed("searching").found_in(f"{field.words} {named or ''}"):
        return ""
    return f"Enter in the field {quoted(field.words)} may send what is in it"


def _at_point(percent: tuple[int, int], seen: Observation | None, snapshot: Snapshot | None, words: EffectWords) -> str:
    if snapshot is None:
        return "a point is touched on a screen that was not seen"
    x, y = _pixel(percent, snapshot)
    if snapshot.keyboard is not None and Bounds(*snapshot.keyboard).contains(x, y):
        return "the point lies on the keyboard, and a key there may send"
    if any(Bounds(*each).contains(x, y) for each in snapshot.over):
        return "the point lies in a window that cannot be read"
    touched = _at(percent, seen, snapshot)
    return next((why for each in touched if (why := on_element(each, {}, seen, words))), "")


def _at(percent: tuple[int, int], seen: Observation | None, snapshot: Snapshot | None) -> Iterator[Element]:
    if seen is None or snapshot is None:
        return
    x, y = _pixel(percent, snapshot)
    yield from (each for each in seen.elements.values() if each.bounds.contains(x, y))


def _pixel(percent: tuple[int, int], snapshot: Snapshot) -> tuple[int, int]:
    left, top, right, bottom = snapshot.display
    return left + (right - left) * percent[0] // 100, top + (bottom - top) * percent[1] // 100


def _focused_field(seen: Observation | None) -> Element | None:
    fields = seen.elements.values() if seen is not None else ()
    return next((each for each in fields if each.kind == "field" and "focused" in each.states), None)


@cache
def _listed(name: str) -> EffectWords:
    lines = (files("droidfleet_designer.tools") / "words" / f"{name}.txt").read_text(encoding="utf-8")
    return EffectWords(lines.splitlines())
