"""The rules of jumps, over the raw tree: `onFailure` and BRANCH lead forward, on the same level, to a step there is."""

from __future__ import annotations

from collections.abc import Iterator

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place, pointer
from droidfleet_shared.protocol.suggestions import closest, nearest
from droidfleet_shared.protocol.wording import described, listed, name, shown

RawStep = tuple[Place, dict[str, Json]]
"""A step as written, and its place."""

WORDS = ("STOP", "CONTINUE")
_FORMS = '`"STOP"`, `"CONTINUE"` or `{"goto": "id-of-a-later-step"}`'
_EXAMPLE = 'For example `"onFailure": {"goto": "sign-out"}`.'


def flow_findings(steps: list[RawStep]) -> Iterator[Finding]:
    """Everything wrong with the jumps of a document."""
    places: dict[str, Place] = {}
    for place, step in steps:
        identity = step.get("id")
        if isinstance(identity, str):
            places.setdefault(identity, place)
    for place, step in steps:
        if "onFailure" in step and step["onFailure"] is not None:
            yield from _on_failure(place, step["onFailure"], places)
        goto = step.get("goto")
        if step.get("action") == "BRANCH" and isinstance(goto, str) and goto:
            yield from _jump(place, (*place, "goto"), goto, places)


def _on_failure(place: Place, value: Json, places: dict[str, Place]) -> Iterator[Finding]:
    here = (*place, "onFailure")
    if isinstance(value, str):
        if value not in WORDS:
            hint = _word_hint(value, places)
            message = f"{shown(value)} is no word of `onFailure`; expected {_FORMS}"
            yield Finding(here, ValidationCode.BAD_VALUE, message, hint)
        return
    if not isinstance(value, dict):
        message = f"found {described(value)}; expected {_FORMS}"
        yield Finding(here, ValidationCode.WRONG_TYPE, message, _EXAMPLE)
        return
    for field in value:
        if field != "goto":
            message = f"{name(field)} is not a field of `onFailure`"
            yield Finding((*here, field), ValidationCode.UNKNOWN_FIELD, message, "The only field here is `goto`.")
    goto = value.get("goto")
    if "goto" not in value:
        yield Finding(here, ValidationCode.MISSING_FIELD, "`onFailure` as an object must have `goto`", _EXAMPLE)
    elif not isinstance(goto, str):
        if goto is not None:
            message = f"found {described(goto)}; expected the id of a later step, a text"
            yield Finding((*here, "goto"), ValidationCode.WRONG_TYPE, message, _EXAMPLE)
    else:
        yield from _jump(place, (*here, "goto"), goto, places)


def _word_hint(found: str, places: dict[str, Place]) -> str:
    if found in places:
        return f'A jump is written `{{"goto": {shown(found).strip("`")}}}`.'
    meant = closest(found, WORDS)
    return f"Did you mean `{meant}`?" if meant else _EXAMPLE


def _jump(place: Place, here: Place, goto: str, places: dict[str, Place]) -> Iterator[Finding]:
    """``place`` is the jumping step's, ``here`` that of its `goto`."""
    position = place[-1]
    assert isinstance(position, int)  # a step stands in a list
    later = [
        identity
        for identity, other in places.items()
        if other[:-1] == place[:-1] and isinstance(other[-1], int) and other[-1] > position
    ]
    choice = (
        f"Later steps of this list are {listed([name(each) for each in later[:8]])}."
        if later
        else ("No step follows this one in its list; add one to jump to, or leave the jump out.")
    )
    target = places.get(goto)
    if target is None:
        near = nearest(goto, later)
        hint = f"Did you mean {name(near)}? {choice}" if near else choice
        yield Finding(here, ValidationCode.UNKNOWN_STEP, f"no step has the id {name(goto)}", hint)
    elif target[:-1] != place[:-1]:
        message = f"the step {name(goto)} is on another level, at {pointer(target)}; a jump stays in its own list"
        yield Finding(here, ValidationCode.UNKNOWN_STEP, message, choice)
    elif goto not in later:
        which = "is this step itself" if target == place else f"comes before this one, at {pointer(target)}"
        message = f"the step {name(goto)} {which}; a jump leads forward only"
        yield Finding(here, ValidationCode.BACKWARD_GOTO, message, f"To run steps again use REPEAT. {choice}")
