"""Widgets that stand for small trees of simpler ones: toolbars, tabs, and buttons as Compose draws them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from droidfleet_agent.virtual_phone.scenario import widgets as wid

_WIDGET: TypeAdapter[wid.Widget] = TypeAdapter(wid.Widget)


def desugar(widget: wid.Base, *, compose: bool) -> wid.Base:
    """The widget as simpler ones; the widget itself when it already is simple."""
    if isinstance(widget, wid.Toolbar):
        return _toolbar(widget, compose=compose)
    if isinstance(widget, wid.Tabs):
        return _tabs(widget, compose=compose)
    if compose and isinstance(widget, wid.Button):
        return _compose_button(widget)
    if compose and isinstance(widget, wid.Icon) and widget.on_click:
        return _compose_icon_button(widget)
    return widget


def build_widget(fields: Mapping[str, object]) -> wid.Base:
    """A widget from its fields, as a scenario file would give them."""
    return _WIDGET.validate_python(fields)


def _common(widget: wid.Base, *names: str) -> dict[str, object]:
    return {
        type(widget).model_fields[name].alias or name: value
        for name in names
        if (value := getattr(widget, name)) not in (None, ())
    }


_PLACE = (
    "name",
    "id",
    "class_",
    "width",
    "height",
    "weight",
    "padding",
    "margin",
    "align",
    "visible_when",
    "background",
)
_TOUCH = (
    "on_click",
    "on_long_click",
    "on_drag",
    "enabled_when",
    "selected_when",
    "clickable",
    "focusable",
    "description",
    "corner",
)


def _toolbar(widget: wid.Toolbar, *, compose: bool) -> wid.Base:
    children: list[object] = []
    if widget.back:
        arrow = {"type": "icon", "icon": "back", "description": "Navigate up", "on_click": [{"back": True}]}
        children.append({**arrow, "color": "white"})
    texts: list[object] = []
    if widget.title is not None:
        texts.append({"type": "text", "text": widget.title, "style": "title", "color": "white", "lines": 1})
    if widget.subtitle is not None:
        texts.append({"type": "text", "text": widget.subtitle, "style": "caption", "color": "white", "lines": 1})
    if len(texts) == 1:
        title = texts[0]
        assert isinstance(title, dict)  # built above
        children.append({**title, "weight": 1, "margin": [16, 0]})
    else:
        children.append({"type": "column", "weight": 1, "margin": [16, 0], "children": texts})
    if widget.actions:
        actions = {"type": "row", "width": "wrap", "align_items": "center", "children": widget.actions}
        children.append(
            {**actions, "class": "androidx.appcompat.widget.LinearLayoutCompat"} if not compose else actions
        )
    return build_widget(
        {
            "type": "row",
            "id": "toolbar",
            "class": "android.view.View" if compose else "android.view.ViewGroup",
            "height": 56,
            "align_items": "center",
            "background": "primary",
            "children": children,
            **_common(widget, *_PLACE),
        }
    )


def _tabs(widget: wid.Tabs, *, compose: bool) -> wid.Base:
    tabs: list[object] = []
    for tab in widget.tabs:
        inner: list[object] = []
        common = {} if tab.selected_when is None else {"selected_when": tab.selected_when}
        if tab.icon is not None:
            icon = {"type": "icon", "icon": tab.icon, "id": "tab_icon", "color": "muted", **common}
            inner.append({"type": "stack", "width": "wrap", "id": "tab_icon_frame", "children": [icon], **common})
        inner.append({"type": "text", "text": tab.text, "style": "caption", "id": "tab_label", "lines": 1, **common})
        tabs.append(
            {
                "type": "column",
                "class": "android.view.View" if compose else "android.widget.Button",
                "description": tab.text,
                "weight": 1,
                "height": "fill",
                "justify": "center",
                "align_items": "center",
                "clickable": True,
                "on_click": tab.on_click,
                "children": inner,
                **common,
                **({} if tab.id is None else {"id": tab.id}),
            }
        )
    row = {"type": "row", "height": "fill", "children": tabs}
    return build_widget(
        {
            "type": "stack",
            "class": "android.view.View" if compose else "android.widget.HorizontalScrollView",
            "height": 64 if any(tab.icon for tab in widget.tabs) else 48,
            "background": "raised",
            "children": [row],
            **_common(widget, *_PLACE),
        }
    )


def _compose_button(widget: wid.Button) -> wid.Base:
    color = {"filled": "white", "outlined": "primary", "plain": "primary"}[widget.style]
    background = {"background": "primary"} if widget.style == "filled" else {}
    return build_widget(
        {
            "type": "stack",
            "class": "android.view.View",
            "width": "wrap",
            "height": 48,
            "padding": [20, 0],
            "corner": 24,
            "clickable": True,
            **background,
            "children": [
                {"type": "text", "text": widget.text, "color": color, "align": "center"},
                {"type": "space", "class": "android.widget.Button", "height": "fill"},
            ],
            **_common(widget, *_PLACE, *_TOUCH),
        }
    )


def _compose_icon_button(widget: wid.Icon) -> wid.Base:
    icon = {"type": "icon", "icon": widget.icon, "align": "center", **_common(widget, "description", "color")}
    place = _common(widget, *(name for name in (*_PLACE, *_TOUCH) if name != "description"))
    return build_widget(
        {
            "type": "stack",
            "class": "android.view.View",
            "width": 48,
            "height": 48,
            "clickable": True,
            "children": [icon, {"type": "space", "class": "android.widget.Button", "height": "fill"}],
            **place,
        }
    )
