"""Makes view nodes from a page's widgets and its variables. Knows nothing of sizes; `layout` places what it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import JsonValue

from droidfleet_agent.virtual_phone.model.desugar import desugar
from droidfleet_agent.virtual_phone.model.spec import Spec, make_spec
from droidfleet_agent.virtual_phone.model.state import PageState, PhoneState
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.scenario import widgets as wid
from droidfleet_agent.virtual_phone.scenario.conditions import holds
from droidfleet_agent.virtual_phone.scenario.template import Scope, as_number, lookup, to_text

PASSWORD_DOT = "•"  # noqa: S105  # what Android shows in place of each character
MAX_ROWS = 2_000
"""Rows of one list; the variable may hold no more."""


class WidgetCache:
    """What is worked out once for each widget of a scenario: its simpler form and its spec. Shared by all builds."""

    def __init__(self, px: float) -> None:
        self.px = px
        self._simple: dict[tuple[int, bool], tuple[wid.Base, wid.Base, Spec]] = {}

    def get(self, widget: wid.Base, *, compose: bool) -> tuple[wid.Base, Spec]:
        """The simple widget and its spec."""
        found = self._simple.get((id(widget), compose))
        if found is None:
            simple = desugar(widget, compose=compose)
            # The original is kept too, so that its id is not given to another widget.
            found = (widget, simple, make_spec(simple, self.px))
            self._simple[(id(widget), compose)] = found
        return found[1], found[2]


class Builder:
    """Builds one window's tree. ``version`` is the state's: rows measured at one version hold for it only."""

    def __init__(self, state: PhoneState, page: PageState, cache: WidgetCache, *, compose: bool, active: bool) -> None:
        self.page = page
        self.version = state.version
        self._cache = cache
        self._compose = compose
        self._active = active
        self._package = page.app.app.package
        self._prefix = f"{self._package}:id/"

    def build(self, widget: wid.Base, scope: Scope, key: str) -> ViewNode | None:
        """The node of a widget with everything below it; None when it is gone."""
        if widget.visible_when is not None and not holds(widget.visible_when, scope):
            return None
        widget, spec = self._cache.get(widget, compose=self._compose)
        class_name = spec.compose_class if self._compose else spec.class_name
        node = ViewNode(key, class_name, self._package, spec, widget)
        node.scope = scope
        self._common(node, widget, scope)
        filler = _FILLERS.get(type(widget))
        if filler is not None:
            filler(self, node, widget, scope)
        if isinstance(widget, wid.ListWidget):
            self._rows(node, widget, scope)
        elif isinstance(widget, wid.Container):
            self._children(node, widget.children, scope)
        return node

    def _common(self, node: ViewNode, widget: wid.Base, scope: Scope) -> None:
        if widget.id is not None:
            if ":" in widget.id:
                node.resource_id = widget.id
            elif not self._compose:
                node.resource_id = self._prefix + widget.id
        if widget.description is not None:
            node.description = widget.description.text(scope)
        if widget.enabled_when is not None:
            node.enabled = holds(widget.enabled_when, scope)
        if widget.selected_when is not None:
            node.selected = holds(widget.selected_when, scope)
        touches = node.spec.touches or node.spec.actions_clickable
        node.clickable = touches if widget.clickable is None else widget.clickable
        node.long_clickable = bool(widget.on_long_click)
        node.focusable = node.clickable if widget.focusable is None else widget.focusable
        if widget.ghost is not None:
            node.ghost = widget.ghost

    def _children(self, node: ViewNode, children: Sequence[wid.Base], scope: Scope) -> None:
        for index, child in enumerate(children):
            built = self.build(child, scope, f"{node.key}/{index}")
            if built is not None:
                node.add(built, index=index)
                if self._compose:
                    built.drawing_order = index

    def _rows(self, node: ViewNode, widget: wid.ListWidget, scope: Scope) -> None:
        if widget.items is None or widget.row is None:
            children = [child for child in widget.children if _is_there(child, scope)]
            node.row_count = len(children)
            node.make_row = lambda at: self.build(
                children[at], scope, f"{node.key}/{widget.children.index(children[at])}"
            )
            return
        row = widget.row
        items = lookup(scope, tuple(widget.items.split(".")))
        scopes: list[tuple[int, Scope]] = []
        for index, item in enumerate(items[:MAX_ROWS] if isinstance(items, list) else ()):
            own: dict[str, JsonValue] = {widget.item_name: item, "index": index, "number": index + 1}
            inner = (own, *scope)
            if widget.where is None or holds(widget.where, inner):
                scopes.append((index, inner))
        node.row_count = len(scopes)
        node.make_row = lambda at: self.build(row, scopes[at][1], f"{node.key}/{scopes[at][0]}")

    def _text(self, node: ViewNode, widget: wid.Text, scope: Scope) -> None:
        node.text = widget.text.text(scope)

    def _button(self, node: ViewNode, widget: wid.Button, scope: Scope) -> None:
        node.text = widget.text.text(scope)

    def _icon(self, node: ViewNode, widget: wid.Icon, scope: Scope) -> None:
        node.value = widget.icon.text(scope)

    def _image(self, node: ViewNode, widget: wid.Image, scope: Scope) -> None:
        node.value = "" if widget.picture is None else widget.picture.text(scope)

    def _check(self, node: ViewNode, widget: wid.Check, scope: Scope) -> None:
        node.text = "" if widget.text is None else widget.text.text(scope)
        node.checkable = True
        if widget.checked_when is not None:
            node.checked = holds(widget.checked_when, scope)
        elif widget.bind is not None:
            node.checked = bool(lookup(scope, tuple(widget.bind.split("."))))
        else:
            node.checked = self.page.checks.get(node.key, widget.checked)

    def _field(self, node: ViewNode, widget: wid.FieldWidget, scope: Scope) -> None:
        hint = "" if widget.hint is None else widget.hint.text(scope)
        if widget.bind is not None:
            node.value = to_text(lookup(scope, tuple(widget.bind.split("."))))
        else:
            node.value = self.page.texts.get(node.key, "")
        node.editable = True
        node.long_clickable = True
        node.secret = widget.kind == "password"
        node.focused = self._active and self.page.focus == node.key
        shown = PASSWORD_DOT * len(node.value) if node.secret else node.value
        if self._compose:
            # Compose draws the hint as a label inside the field; a view shows it as the field's own text.
            node.text = shown
            if not node.value and hint:
                self._children(node, (self._compose_hint(widget, hint),), scope)
        else:
            node.hint = hint
            node.text = shown or hint

    def _compose_hint(self, widget: wid.FieldWidget, hint: str) -> wid.Base:
        found = _COMPOSE_HINTS.get(hint)
        if found is None:
            found = wid.Text.model_validate({"type": "text", "text": hint.replace("{{", ""), "color": "muted"})
            _COMPOSE_HINTS[hint] = found
        return found

    def _slider(self, node: ViewNode, widget: wid.Slider, scope: Scope) -> None:
        # A range widget reads as a Java float in the dump.
        node.text = str(float(as_number(lookup(scope, tuple(widget.bind.split("."))))))

    def _progress(self, node: ViewNode, widget: wid.Progress, scope: Scope) -> None:
        if widget.value is not None:
            node.text = str(float(as_number(widget.value.value(scope))))


def _is_there(widget: wid.Base, scope: Scope) -> bool:
    return widget.visible_when is None or holds(widget.visible_when, scope)


_COMPOSE_HINTS: dict[str, wid.Base] = {}

_FILLERS: dict[type[wid.Base], Callable[..., None]] = {
    wid.Text: Builder._text,  # noqa: SLF001  # its own table
    wid.Button: Builder._button,  # noqa: SLF001
    wid.Icon: Builder._icon,  # noqa: SLF001
    wid.Image: Builder._image,  # noqa: SLF001
    wid.Check: Builder._check,  # noqa: SLF001
    wid.FieldWidget: Builder._field,  # noqa: SLF001
    wid.Slider: Builder._slider,  # noqa: SLF001
    wid.Progress: Builder._progress,  # noqa: SLF001
}
