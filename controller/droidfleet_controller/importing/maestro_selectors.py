"""Maestro's selectors and conditions as those of protocol v1."""

from __future__ import annotations

import re
from collections.abc import Mapping

from droidfleet_controller.importing.building import Step, without_gaps
from droidfleet_controller.importing.fields import Fields, meant
from droidfleet_controller.importing.maestro_texts import Variables, text_fields
from droidfleet_controller.importing.report import ImportCode, Scope
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.selector import MAX_INDEX
from droidfleet_shared.protocol.wording import described, name, shown

MAX_RELATIONS = 5
"""Selectors within each other, the outermost counted: protocol v1's own bound."""

STATES = ("enabled", "checked", "focused", "selected")
RELATIONS = {
    "below": "below",
    "above": "above",
    "leftOf": "leftOf",
    "rightOf": "rightOf",
    "childOf": "within",
    "containsChild": "has",
    "containsDescendants": "has",
}
"""Maestro's name and ours."""

REFUSED = {
    "width": "Name the node by its text or id, or by one beside it.",
    "height": "Name the node by its text or id, or by one beside it.",
    "tolerance": "Name the node by its text or id, or by one beside it.",
    "traits": "Name the node by its text or id, or by one beside it.",
    "css": "Name the node by its text: web pages in apps have nodes too.",
}
"""Fields that nothing in protocol v1 stands for, and what to write."""

SELECTOR = ("text", "id", "index", "point", *STATES, *RELATIONS, *REFUSED)
EXAMPLE = "`id: buy_button`"

_ID = re.compile(r"[\w.:/\-]+")
_ANY_PACKAGE = re.compile(r"^\.\*(:id)?/")
_POINT = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)%\s*,\s*(\d{1,3}(?:\.\d+)?)%\s*")


class Selectors:
    """Reads selectors of one file."""

    def __init__(self, scope: Scope, variables: Variables, *, allow_points: bool) -> None:
        self._scope = scope
        self._variables = variables
        self._allow_points = allow_points
        self.compared_text = False
        """Whether a node to touch was named by its text."""

    def target(self, fields: Fields) -> Step | None:
        """The selector of the one node that a command means, from the command's own fields; None when it is wrong."""
        if "point" in fields:
            return self._point(fields)
        made = self._selector(fields, exact=False, depth=1)
        self.compared_text |= made is not None and ("text" in made or "textMatches" in made)
        return made

    def visible(self, place: Place, value: Json, *, exact: bool) -> Step | None:
        """The condition that at least one such node is seen."""
        alternatives = self._alternatives(place, value, exact=exact)
        made: list[Json] = [{"visible": each} for each in alternatives]
        return None if not made else {"any": made} if len(made) > 1 else {"visible": alternatives[0]}

    def gone(self, place: Place, value: Json) -> Step | None:
        """The condition that no such node is seen."""
        alternatives = self._alternatives(place, value, exact=True)
        made: list[Json] = [{"gone": each} for each in alternatives]
        return None if not made else {"all": made} if len(made) > 1 else {"gone": alternatives[0]}

    def _alternatives(self, place: Place, value: Json, *, exact: bool) -> list[Step]:
        """The selectors of which one is enough: a label may be a node's text or its description."""
        made = self.nested(place, value, exact=exact)
        if made is None:
            return []
        described_so = {
            {"text": "description", "textMatches": "descriptionMatches"}.get(field, field): each
            for field, each in made.items()
        }
        return [made] if described_so == made else [made, described_so]

    def nested(self, place: Place, value: Json, *, exact: bool, depth: int = 1) -> Step | None:
        """A selector that is written as a text or an object."""
        if isinstance(value, str):
            value = {"text": value}
        if not isinstance(value, dict):
            message = f"found {described(value)}; expected a text or a selector"
            self._scope.refused(place, ImportCode.WRONG_TYPE, message, f"For example: {EXAMPLE}")
            return None
        if depth > MAX_RELATIONS:
            message = f"selectors are nested more than {MAX_RELATIONS} deep"
            self._scope.refused(place, ImportCode.TOO_DEEP, message, "Name the node by fewer relations.")
            return None
        return self._selector(
            Fields(self._scope, place, value, (*SELECTOR, "optional", "label"), what="a selector", example=EXAMPLE),
            exact=exact,
            depth=depth,
        )

    def _selector(self, fields: Fields, *, exact: bool, depth: int) -> Step | None:
        made: Step = {}
        fine = not fields.unknown
        for field, hint in REFUSED.items():
            if field in fields:
                message = f"{name(field)} has no counterpart in protocol v1"
                fields.refuse(field, ImportCode.NOT_SUPPORTED, message, hint)
                fine = False
        if "point" in fields:
            message = "a point cannot stand in a condition or beside other fields"
            fields.refuse("point", ImportCode.NOT_SUPPORTED, message, "Name the node by its text or id.")
            fine = False
        for part in (self._text(fields, exact=exact), self._id(fields)):
            fine = fine and part is not None
            made |= part or {}
        for field in STATES:
            made |= without_gaps(**{field: fields.truth(field)})
        for field, ours in RELATIONS.items():
            if field in fields:
                related = self._related(fields, field, exact=exact, depth=depth)
                if related is None or ours in made:
                    fine = False
                if ours in made:
                    message = f"{name(field)} would be a second `{ours}`, and a selector has one"
                    fields.refuse(field, ImportCode.NOT_SUPPORTED, message, "Keep the one that tells more.")
                made |= without_gaps(**{ours: related})
        made |= without_gaps(index=fields.whole("index", low=0, high=MAX_INDEX, unit="(the first is 0)"))
        if fine and not set(made) - {"index"}:
            message = "the selector is empty: it says nothing of what is seen of the node"
            self._scope.refused(fields.place, ImportCode.EMPTY_SELECTOR, message, f"For example: {EXAMPLE}")
            return None
        return made if fine else None

    def _text(self, fields: Fields, *, exact: bool) -> Step | None:
        text = fields.text("text")
        if text is None:
            return {}
        if not text.strip():
            fields.refuse("text", ImportCode.EMPTY_SELECTOR, "the label is empty, so no node is meant")
            return None
        place = fields.at("text")
        filled = self._variables.text(self._scope, place, text)
        return None if filled is None else text_fields(self._scope, place, filled, exact=exact)

    def _id(self, fields: Fields) -> Step | None:
        identity = fields.text("id")
        if identity is None:
            return {}
        if "${" in identity:
            filled = self._variables.text(self._scope, fields.at("id"), identity)
            return None if filled is None else {"resourceId": filled}
        plain = _ANY_PACKAGE.sub("", identity)
        if not _ID.fullmatch(plain):
            message = f"the id {shown(identity)} is a regular expression, and protocol v1 compares ids as they are"
            hint = "Write the id itself, with or without its `package:id/` part."
            fields.refuse("id", ImportCode.NOT_SUPPORTED, message, hint)
            return None
        if plain != identity:
            message = f"the id {shown(identity)} is read as {shown(plain)}, which is found in any package"
            self._scope.normalised(fields.at("id"), ImportCode.SPELLING, message)
        return {"resourceId": plain}

    def _related(self, fields: Fields, field: str, *, exact: bool, depth: int) -> Step | None:
        value, place = fields.raw(field), fields.at(field)
        if field == "containsDescendants":
            if not isinstance(value, list) or len(value) != 1:
                message = "`containsDescendants` is read with exactly one selector, since `has` takes one"
                fields.refuse(field, ImportCode.NOT_SUPPORTED, message, "Keep the one that tells most.")
                return None
            value, place = value[0], (*place, 0)
        elif field == "containsChild":
            message = "`containsChild` becomes `has`, which also finds what lies deeper in the node"
            self._scope.normalised(place, ImportCode.DIFFERS, message)
        return self.nested(place, value, exact=exact, depth=depth + 1)

    def _point(self, fields: Fields) -> Step | None:
        others = [each for each in SELECTOR if each != "point" and each in fields]
        point = fields.text("point") or ""
        read = _POINT.fullmatch(point)
        if others:
            message = "a point within a node has no counterpart in protocol v1"
            fields.refuse("point", ImportCode.NOT_SUPPORTED, message, "Name the node itself, without a point.")
            return None
        if read is None:
            message = f"the point {shown(point)} is not in percent of the screen, and pixels differ from phone to phone"
            fields.refuse("point", ImportCode.NOT_SUPPORTED, message, 'Write percent: `"50%,90%"`.')
            return None
        if not self._allow_points:
            message = "a point is touched, whatever is there when it is"
            hint = "Name what is seen of the node, or import with --allow-points."
            fields.refuse("point", ImportCode.POINT_NOT_ALLOWED, message, hint)
            return None
        percent = [min(100, round(float(each))) for each in read.groups()]
        if any(float(each) != whole for each, whole in zip(read.groups(), percent, strict=True)):
            message = f"the point {shown(point)} becomes {percent[0]} %, {percent[1]} %: whole percent"
            self._scope.normalised(fields.at("point"), ImportCode.DIFFERS, message)
        return {"point": {"xPercent": percent[0], "yPercent": percent[1]}, "allowPoint": True}


CONDITION = ("visible", "notVisible", "platform", "true")
_HERE, _ELSEWHERE = "android", ("ios", "web")
NEVER = "never"
"""In place of a condition: it never holds on Android."""


def conditions(
    selectors: Selectors, scope: Scope, place: Place, holder: Mapping[str, Json], *, what: str, negated: bool = False
) -> list[Step] | str | None:
    """What must hold, each part by itself (negated: of which one must hold for the whole not to).

    `NEVER` when it is for another platform than Android; None when something is wrong, which is reported.
    """
    fields = Fields(scope, place, holder, CONDITION, what=what, example="`visible: Sign in`")
    made: list[Step | None] = []
    if "true" in fields and str(fields.raw("true")).strip().lower() != "true":
        message = f"the condition {shown(fields.raw('true'))} is JavaScript, which no task runs"
        fields.refuse("true", ImportCode.JAVASCRIPT, message, "Decide on what is seen: `visible` or `notVisible`.")
        made.append(None)
    if "visible" in fields:
        at, value = fields.at("visible"), fields.raw("visible")
        made.append(selectors.gone(at, value) if negated else selectors.visible(at, value, exact=True))
    if "notVisible" in fields:
        at, value = fields.at("notVisible"), fields.raw("notVisible")
        made.append(selectors.visible(at, value, exact=True) if negated else selectors.gone(at, value))
    platform = (fields.text("platform") or _HERE).strip().lower()
    if platform not in (_HERE, *_ELSEWHERE):
        hint = meant(platform, ("Android", "iOS", "Web"))
        fields.refuse("platform", ImportCode.BAD_VALUE, f"{shown(platform)} is no platform", hint)
        made.append(None)
    good = [each for each in made if each is not None]
    if len(good) < len(made):
        return None
    return NEVER if platform in _ELSEWHERE else good
