"""What is wrong with a scenario file: every problem at once, each with its place, a stable code and a hint."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from droidfleet_agent.virtual_phone.scenario import widgets as widget_models
from droidfleet_agent.virtual_phone.scenario.actions import VERBS
from droidfleet_agent.virtual_phone.scenario.base import Model
from droidfleet_agent.virtual_phone.scenario.models import App, Dialog, Patch, Scenario, Screen, Theme, Timer, Variant
from droidfleet_shared.errors import InvalidInputError

Place = tuple[str | int, ...]

WIDGETS: Mapping[str, type[Model]] = {
    "column": widget_models.Column,
    "row": widget_models.Row,
    "stack": widget_models.Stack,
    "canvas": widget_models.Canvas,
    "scroll": widget_models.Scroll,
    "list": widget_models.ListWidget,
    "text": widget_models.Text,
    "button": widget_models.Button,
    "icon": widget_models.Icon,
    "image": widget_models.Image,
    "switch": widget_models.Check,
    "checkbox": widget_models.Check,
    "radio": widget_models.Check,
    "field": widget_models.FieldWidget,
    "slider": widget_models.Slider,
    "progress": widget_models.Progress,
    "space": widget_models.Space,
    "divider": widget_models.Divider,
    "tabs": widget_models.Tabs,
    "toolbar": widget_models.Toolbar,
}
_STRUCTURE: tuple[type[Model], ...] = (Scenario, App, Screen, Dialog, Timer, Theme, Variant, Patch, widget_models.Tab)


class IssueCode(StrEnum):
    """Stable words; nobody decides on a message."""

    BAD_FILE = "BAD_FILE"
    BAD_YAML = "BAD_YAML"
    TOO_LARGE = "TOO_LARGE"
    TOO_DEEP = "TOO_DEEP"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    MISSING_FIELD = "MISSING_FIELD"
    WRONG_TYPE = "WRONG_TYPE"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    BAD_VALUE = "BAD_VALUE"
    BAD_TEMPLATE = "BAD_TEMPLATE"
    UNKNOWN_WIDGET = "UNKNOWN_WIDGET"
    UNKNOWN_ACTION = "UNKNOWN_ACTION"
    UNKNOWN_CONDITION = "UNKNOWN_CONDITION"
    UNKNOWN_SCREEN = "UNKNOWN_SCREEN"
    UNKNOWN_DIALOG = "UNKNOWN_DIALOG"
    UNKNOWN_APP = "UNKNOWN_APP"
    UNKNOWN_NAME = "UNKNOWN_NAME"
    UNKNOWN_VARIABLE = "UNKNOWN_VARIABLE"
    UNKNOWN_VARIANT = "UNKNOWN_VARIANT"
    DUPLICATE_NAME = "DUPLICATE_NAME"


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem. ``path`` is a JSON Pointer into the document."""

    path: str
    code: IssueCode
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.code}: {self.message}" + (f" {self.hint}" if self.hint else "")


class ScenarioError(InvalidInputError):
    """A scenario file that cannot be used; ``issues`` holds every `Issue`."""

    def __init__(self, source: str, issues: Sequence[Issue]) -> None:
        first = issues[0]
        more = f" and {len(issues) - 1} more" if len(issues) > 1 else ""
        super().__init__(
            "BAD_SCENARIO", f"{source} cannot be used: {first}{more}", hint="See docs/scenarios.md.", issues=issues
        )


def pointer(place: Place) -> str:
    """A JSON Pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)


def did_you_mean(word: str, candidates: Collection[str]) -> str:
    """A hint for a misspelt word; empty when nothing comes near."""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f"Did you mean '{near[0]}'?" if near else ""


def issues_of(error: ValidationError, document: JsonValue) -> list[Issue]:
    """The problems that pydantic found, in the document's own terms."""
    details = error.errors(include_url=False)
    found: dict[str, Issue] = {}
    for detail in details:
        # Elements that failed are not counted, so that a list with a broken one is said to be too short as well.
        echo = detail["type"] == "too_short" and any(
            len(other["loc"]) > len(detail["loc"]) and other["loc"][: len(detail["loc"])] == detail["loc"]
            for other in details
        )
        issue = _issue(detail, document)
        # Several branches of one union complain of the same value; the first is the most telling.
        if not echo and issue.path not in found:
            found[issue.path] = issue
    return list(found.values())


def _issue(detail: ErrorDetails, document: JsonValue) -> Issue:
    place, around = _place(detail["loc"], document)
    path = pointer(place)
    kind = detail["type"]
    word = str(place[-1]) if place else ""
    if kind == "extra_forbidden":
        names = _fields_at(around)
        hint = did_you_mean(word, names) or (f"Allowed here: {', '.join(sorted(names))}." if len(names) <= 30 else "")
        return Issue(path, IssueCode.UNKNOWN_FIELD, f"'{word}' is no field here.", hint)
    if kind == "missing":
        return Issue(path, IssueCode.MISSING_FIELD, f"'{word}' is required here.")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _unknown_kind(path, detail, around)
    if kind == "bad_template":
        return Issue(path, IssueCode.BAD_TEMPLATE, f"{detail['msg']}.")
    return _wrong_value(path, detail)


def _wrong_value(path: str, detail: ErrorDetails) -> Issue:
    kind = detail["type"]
    given = detail["input"]
    shown = repr(given) if isinstance(given, str | int | float | bool) or given is None else type(given).__name__
    message = f"{detail['msg']}; it is {shown[:80]}."
    if kind.endswith(("_type", "_parsing")):
        return Issue(path, IssueCode.WRONG_TYPE, message)
    if kind in ("literal_error", "string_pattern_mismatch", "value_error", "tuple_type"):
        expected = str(detail.get("ctx", {}).get("expected", ""))
        hint = did_you_mean(str(given), [word.strip("' ") for word in expected.replace(" or ", ",").split(",")])
        return Issue(path, IssueCode.BAD_VALUE, message, hint)
    return Issue(path, IssueCode.OUT_OF_RANGE, message)


def _unknown_kind(path: str, detail: ErrorDetails, around: JsonValue) -> Issue:
    given = detail["input"]
    if isinstance(given, dict) and ("type" in given or "'type'" in detail["msg"]):
        kind = given.get("type")
        if kind is None:
            return Issue(path + "/type", IssueCode.MISSING_FIELD, "A widget needs a 'type'.", _list(WIDGETS))
        hint = did_you_mean(str(kind), WIDGETS) or _list(WIDGETS)
        return Issue(path + "/type", IssueCode.UNKNOWN_WIDGET, f"'{kind}' is no widget.", hint)
    if "action" in detail["msg"] or "_tag" in detail["msg"]:
        keys = [str(key) for key in given] if isinstance(given, dict) else []
        if any(part in path.rsplit("/", 1)[-1] for part in ("_when", "if", "not", "where")) or not keys:
            return Issue(
                path, IssueCode.UNKNOWN_CONDITION, "This is no condition.", "Write a path, or var, all, any, not."
            )
        hint = next((found for key in keys if (found := did_you_mean(key, VERBS))), _list(VERBS))
        return Issue(path, IssueCode.UNKNOWN_ACTION, f"No action has the fields {', '.join(keys)}.", hint)
    return Issue(path, IssueCode.BAD_VALUE, f"{detail['msg']}.")


def _list(words: Collection[str]) -> str:
    return f"There are: {', '.join(words)}."


def _place(location: tuple[int | str, ...], document: JsonValue) -> tuple[Place, JsonValue]:
    """Drops pydantic's union tags from a location; also the innermost existing value around it."""
    place: list[str | int] = []
    current: JsonValue = document
    around: JsonValue = document
    fresh = True
    for part in location:
        if isinstance(part, str) and (part.startswith(("action:", "condition:")) or part in _BRANCHES):
            continue
        if isinstance(current, dict) and fresh and part == current.get("type") and part in WIDGETS:
            fresh = False
            continue
        place.append(part)
        if isinstance(current, dict):
            around = current
            current = current.get(str(part))
        elif isinstance(current, list) and isinstance(part, int) and part < len(current):
            current = current[part]
        else:
            current = None
        fresh = True
    return tuple(place), around


_BRANCHES = frozenset(
    {"literal['fill','wrap']", "constrained-float", "float", "tuple[constrained-float, constrained-float]", "[key]"}
)
"""Names that pydantic puts into a location for the branches of the few untagged unions (sizes, insets)."""


def _fields_at(around: JsonValue) -> set[str]:
    if isinstance(around, dict):
        kind = around.get("type")
        if isinstance(kind, str) and kind in WIDGETS:
            return _names(WIDGETS[kind])
        for verb, model in VERBS.items():
            if verb in around:
                return _names(model)
        best = max(_STRUCTURE, key=lambda model: len(_names(model) & around.keys()))
        return _names(best)
    return set()


def _names(model: type[Model]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}
