"""What the models alone cannot see: screens, dialogs, apps, widgets and variables that are named and do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from droidfleet_agent.virtual_phone.scenario import actions as act
from droidfleet_agent.virtual_phone.scenario import widgets as wid
from droidfleet_agent.virtual_phone.scenario.conditions import Condition, condition_paths
from droidfleet_agent.virtual_phone.scenario.issues import Issue, IssueCode, Place, did_you_mean, pointer
from droidfleet_agent.virtual_phone.scenario.models import App, Page, Scenario
from droidfleet_agent.virtual_phone.scenario.template import Path, Template, Value

PHONE_NAMES = frozenset({"phone"})
"""Names that every scope has: ``phone.model``, ``phone.serial``, ``phone.time``, ``phone.battery``."""

_CONDITIONS = ("visible_when", "enabled_when", "selected_when", "checked_when")
_HANDLERS = {
    "on_click": frozenset[str](),
    "on_long_click": frozenset[str](),
    "on_drag": frozenset({"value", "position"}),
    "on_change": frozenset({"value"}),
    "on_submit": frozenset({"value"}),
}
"""Fields that hold actions, with the names that are theirs alone."""


def check(scenario: Scenario) -> list[Issue]:
    """Every broken reference."""
    issues: list[Issue] = []
    packages = [app.package for app in scenario.apps]
    for index, app in enumerate(scenario.apps):
        place: Place = ("apps", index)
        if app.package in packages[:index]:
            message = f"Two apps have the package '{app.package}'."
            issues.append(Issue(pointer((*place, "package")), IssueCode.DUPLICATE_NAME, message))
        issues += _AppCheck(app, packages, place).run()
    if scenario.start is not None and scenario.start not in packages:
        message = f"There is no app '{scenario.start}'."
        issues.append(Issue("/start", IssueCode.UNKNOWN_APP, message, did_you_mean(scenario.start, packages)))
    return issues


class _AppCheck:
    def __init__(self, app: App, packages: Sequence[str], place: Place) -> None:
        self._app = app
        self._packages = packages
        self._place = place
        self._issues: list[Issue] = []
        self._names: set[str] = set()

    def run(self) -> list[Issue]:
        app = self._app
        self._reference(app.home, app.screens, (*self._place, "home"), IssueCode.UNKNOWN_SCREEN, "screen")
        for kind, pages in (("screens", app.screens), ("dialogs", app.dialogs)):
            for name, page in pages.items():
                self._page(page, (*self._place, kind, name))
        return self._issues

    def _page(self, page: Page, place: Place) -> None:
        names = [widget.name for widget in _all_widgets(page.root) if widget.name is not None]
        for name in sorted({name for name in names if names.count(name) > 1}):
            message = f"Two widgets of this page have the name '{name}'."
            self._issues.append(Issue(pointer((*place, "root")), IssueCode.DUPLICATE_NAME, message))
        self._names = set(names)
        known = PHONE_NAMES | self._app.variables.keys() | page.state.keys()
        self._widget(page.root, (*place, "root"), known)
        self._actions(page.on_open, (*place, "on_open"), known)
        for index, timer in enumerate(page.timers):
            self._actions(timer.do, (*place, "timers", index, "do"), known)

    def _widget(self, widget: wid.Base, place: Place, known: frozenset[str]) -> None:
        for field in type(widget).model_fields:
            value = getattr(widget, field)
            here = (*place, field)
            if isinstance(value, Template):
                self._paths(value.paths(), here, known)
            elif field in _CONDITIONS and value is not None:
                self._condition(value, here, known)
            elif field in _HANDLERS:
                self._actions(value, here, known | _HANDLERS[field])
            elif field == "bind" and value is not None:
                self._paths([tuple(value.split("."))], here, known)
        if isinstance(widget, wid.ListWidget):
            self._list(widget, place, known)
        if isinstance(widget, wid.Tabs):
            for index, tab in enumerate(widget.tabs):
                here = (*place, "tabs", index)
                self._paths(tab.text.paths(), (*here, "text"), known)
                if tab.selected_when is not None:
                    self._condition(tab.selected_when, (*here, "selected_when"), known)
                self._actions(tab.on_click, (*here, "on_click"), known)
        for key in ("children", "actions"):
            for index, child in enumerate(getattr(widget, key, ())):
                self._widget(child, (*place, key, index), known)

    def _list(self, widget: wid.ListWidget, place: Place, known: frozenset[str]) -> None:
        if (widget.items is None) == (widget.row is not None):
            message = "A list from data needs both 'items' and 'row'; a written-out one has 'children' alone."
            self._issues.append(Issue(pointer(place), IssueCode.MISSING_FIELD, message))
        if widget.items is None or widget.row is None:
            return
        self._paths([tuple(widget.items.split("."))], (*place, "items"), known)
        if widget.item_name in known:
            message = f"The row's name '{widget.item_name}' is a variable already, which it would hide."
            self._issues.append(Issue(pointer((*place, "as")), IssueCode.DUPLICATE_NAME, message))
        inside = known | {widget.item_name, "index", "number"}
        if widget.where is not None:
            self._condition(widget.where, (*place, "where"), inside)
        self._widget(widget.row, (*place, "row"), inside)

    def _actions(self, actions: Sequence[act.Action], place: Place, known: frozenset[str]) -> None:
        for index, action in enumerate(actions):
            self._action(action, (*place, index), known)

    def _action(self, action: act.Action, place: Place, known: frozenset[str]) -> None:
        self._references(action, place)
        if isinstance(action, act.After):
            self._actions(action.do, (*place, "do"), known)
        elif isinstance(action, act.If):
            self._condition(action.if_, (*place, "if"), known)
            self._actions(action.then, (*place, "then"), known)
            self._actions(action.else_, (*place, "else"), known)
        else:
            self._variables(action, place, known)

    def _references(self, action: act.Action, place: Place) -> None:
        app = self._app
        if isinstance(action, act.Go):
            self._reference(action.go, app.screens, (*place, "go"), IssueCode.UNKNOWN_SCREEN, "screen")
        elif isinstance(action, act.OpenDialog):
            self._reference(action.dialog, app.dialogs, (*place, "dialog"), IssueCode.UNKNOWN_DIALOG, "dialog")
        elif isinstance(action, act.OpenApp) and action.open_app.constant is not None:
            package = action.open_app.constant
            self._reference(package, self._packages, (*place, "open_app"), IssueCode.UNKNOWN_APP, "app")
        elif isinstance(action, act.FocusField):
            self._reference(action.focus, self._names, (*place, "focus"), IssueCode.UNKNOWN_NAME, "widget named")

    def _variables(self, action: act.Action, place: Place, known: frozenset[str]) -> None:
        for field in type(action).model_fields:
            value = getattr(action, field)
            here = (*place, field)
            if isinstance(value, Template | Value):
                self._paths(value.paths(), here, known)
            elif isinstance(value, dict):
                for key, inner in value.items():
                    if field != "details":
                        self._paths([tuple(key.split("."))], (*here, key), known)
                    self._paths(inner.paths(), (*here, key), known)
            elif field in ("toggle", "remove", "move"):
                self._paths([tuple(value.split("."))], here, known)

    def _condition(self, condition: Condition, place: Place, known: frozenset[str]) -> None:
        self._paths(condition_paths(condition), place, known)

    def _paths(self, paths: Iterable[Path], place: Place, known: frozenset[str]) -> None:
        for path in paths:
            if path[0] not in known:
                message = f"There is no variable '{path[0]}' here."
                hint = did_you_mean(path[0], known) or f"Known: {', '.join(sorted(known))}."
                self._issues.append(Issue(pointer(place), IssueCode.UNKNOWN_VARIABLE, message, hint))

    def _reference(self, name: str, known: Iterable[str], place: Place, code: IssueCode, what: str) -> None:
        names = list(known)
        if name not in names:
            self._issues.append(Issue(pointer(place), code, f"There is no {what} '{name}'.", did_you_mean(name, names)))


def _all_widgets(root: wid.Base) -> Iterator[wid.Base]:
    stack = [root]
    while stack:
        widget = stack.pop()
        yield widget
        for key in ("children", "actions"):
            stack.extend(getattr(widget, key, ()))
        if isinstance(widget, wid.ListWidget) and widget.row is not None:
            stack.append(widget.row)
