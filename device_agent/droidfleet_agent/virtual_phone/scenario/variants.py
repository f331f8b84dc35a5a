"""Applies a variant to a scenario document before it is validated, so that mistakes in patches read like any other."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue, TypeAdapter, ValidationError

from droidfleet_agent.virtual_phone.scenario.issues import Issue, IssueCode, Place, did_you_mean, issues_of, pointer
from droidfleet_agent.virtual_phone.scenario.models import Patch, Variant
from droidfleet_agent.virtual_phone.scenario.template import copied

_CHILD_LISTS = ("children", "actions")
_CHILD = "row"
_VARIANT: TypeAdapter[Variant] = TypeAdapter(Variant)


def apply_variant(document: dict[str, JsonValue], name: str) -> tuple[dict[str, JsonValue], list[Issue]]:
    """A changed copy of the document, and what was wrong with the variant."""
    changed = copied(document)
    assert isinstance(changed, dict)  # a copy of a dict
    variants = changed.get("variants")
    raw = variants.get(name) if isinstance(variants, dict) else None
    if raw is None:
        known = list(variants) if isinstance(variants, dict) else []
        hint = did_you_mean(name, known) or (f"There are: {', '.join(known)}." if known else "It has no variants.")
        return changed, [Issue("/variants", IssueCode.UNKNOWN_VARIANT, f"There is no variant '{name}'.", hint)]
    try:
        variant = _VARIANT.validate_python(raw)
    except ValidationError as error:
        place = pointer(("variants", name))
        return changed, [
            Issue(place + issue.path, issue.code, issue.message, issue.hint) for issue in issues_of(error, raw)
        ]
    issues: list[Issue] = []
    apps = [app for app in _list(changed.get("apps")) if isinstance(app, dict)]
    for variable, value in variant.variables.items():
        owner = next((app for app in apps if variable in _dict(app.get("variables"))), None)
        if owner is None:
            place = pointer(("variants", name, "variables", variable))
            known = [key for app in apps for key in _dict(app.get("variables"))]
            hint = did_you_mean(variable, known)
            issues.append(Issue(place, IssueCode.UNKNOWN_VARIABLE, f"No app has a variable '{variable}'.", hint))
        else:
            _dict(owner["variables"])[variable] = copied(value)
    for index, patch in enumerate(variant.patches):
        issues += _apply(apps, patch, ("variants", name, "patches", index))
    return changed, issues


def _apply(apps: list[dict[str, JsonValue]], patch: Patch, place: Place) -> list[Issue]:
    app = next((app for app in apps if patch.app in (None, app.get("package"))), None)
    if app is None:
        return [Issue(pointer((*place, "app")), IssueCode.UNKNOWN_APP, f"There is no app '{patch.app}'.")]
    kind, name = ("screen", patch.screen) if patch.screen is not None else ("dialog", patch.dialog)
    pages = _dict(app.get(f"{kind}s"))
    page = pages.get(name or "")
    if not isinstance(page, dict):
        code = IssueCode.UNKNOWN_SCREEN if kind == "screen" else IssueCode.UNKNOWN_DIALOG
        return [Issue(pointer((*place, kind)), code, f"There is no {kind} '{name}'.", did_you_mean(name or "", pages))]
    for siblings, position in _widgets(page):
        widget = siblings[position]
        if isinstance(widget, dict) and widget.get("name") == patch.widget:
            _change(siblings, position, patch)
            return []
    names = [str(found) for siblings, at in _widgets(page) if (found := _dict(siblings[at]).get("name"))]
    message = f"No widget there has the name '{patch.widget}'."
    return [Issue(pointer((*place, "widget")), IssueCode.UNKNOWN_NAME, message, did_you_mean(patch.widget, names))]


def _change(siblings: list[JsonValue], position: int, patch: Patch) -> None:
    new = [copied(widget) for widget in patch.widgets]
    if patch.change == "insert_before":
        siblings[position:position] = new
    elif patch.change == "insert_after":
        siblings[position + 1 : position + 1] = new
    elif patch.change == "replace":
        siblings[position : position + 1] = new
    elif patch.change == "remove":
        del siblings[position]
    else:
        _dict(siblings[position]).update({key: copied(value) for key, value in patch.fields.items()})


def _widgets(page: dict[str, JsonValue]) -> Iterator[tuple[list[JsonValue], int]]:
    """Every written-out widget below the page's root, as (list that holds it, position)."""
    stack = [page.get("root")]
    while stack:
        widget = _dict(stack.pop())
        stack.append(widget.get(_CHILD)) if _CHILD in widget else None
        for key in _CHILD_LISTS:
            children = _list(widget.get(key))
            for position in range(len(children)):
                yield children, position
            stack.extend(children)


def _dict(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
