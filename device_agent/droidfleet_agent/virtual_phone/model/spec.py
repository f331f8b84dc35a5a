"""What a widget's kind and fields mean for its node and its layout, worked out once for each widget: a `Spec`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from droidfleet_agent.virtual_phone.scenario import widgets as wid

INFINITE: Final = 1 << 24
"""A length without a bound (the inside of a scrolling widget), in pixels."""

STATUS_BAR_DP = 32.0
NAVIGATION_BAR_DP = 48.0


class Flow(Enum):
    """How a node lays out its children."""

    LEAF = auto()
    COLUMN = auto()
    ROW = auto()
    STACK = auto()
    SCROLL_DOWN = auto()
    SCROLL_ACROSS = auto()


@dataclass(slots=True)
class Spec:
    """One widget, in pixels. ``width``, ``height``: a length, None for what the content needs, `FILL` for the rest."""

    flow: Flow
    class_name: str
    compose_class: str
    width: int | None
    height: int | None
    weight: float = 0
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    margin: tuple[int, int, int, int] = (0, 0, 0, 0)
    align: str | None = None
    align_items: str | None = None
    justify: str = "start"
    gap: int = 0
    font: float = 0
    lines: int = 200
    columns: int = 1
    touches: bool = False
    actions_clickable: bool = False


FILL: Final = -1

_VIEW = "android.view.View"
_GROUP = "android.view.ViewGroup"
_LINEAR = "android.widget.LinearLayout"

# kind: flow, class among views, class in Compose, width and height (dp, "fill", "wrap"), whether touching is its nature
_KINDS: dict[str, tuple[Flow, str, str, wid.Size, wid.Size, bool]] = {
    "column": (Flow.COLUMN, _LINEAR, _VIEW, "fill", "wrap", False),
    "row": (Flow.ROW, _LINEAR, _VIEW, "fill", "wrap", False),
    "stack": (Flow.STACK, "android.widget.FrameLayout", _VIEW, "fill", "wrap", False),
    "canvas": (Flow.STACK, "android.view.SurfaceView", "android.view.SurfaceView", "fill", "fill", False),
    "scroll": (Flow.SCROLL_DOWN, "android.widget.ScrollView", _VIEW, "fill", "fill", False),
    "list": (Flow.SCROLL_DOWN, "androidx.recyclerview.widget.RecyclerView", _VIEW, "fill", "fill", False),
    "text": (Flow.LEAF, "android.widget.TextView", "android.widget.TextView", "wrap", "wrap", False),
    "button": (Flow.LEAF, "android.widget.Button", _VIEW, "wrap", 48, True),
    "icon": (Flow.LEAF, "android.widget.ImageView", _VIEW, 24, 24, False),
    "image": (Flow.LEAF, "android.widget.ImageView", "android.widget.ImageView", "fill", 160, False),
    "switch": (Flow.LEAF, "android.widget.Switch", _VIEW, "wrap", 48, True),
    "checkbox": (Flow.LEAF, "android.widget.CheckBox", "android.widget.CheckBox", "wrap", 48, True),
    "radio": (Flow.LEAF, "android.widget.RadioButton", "android.widget.RadioButton", "wrap", 48, True),
    "field": (Flow.STACK, "android.widget.EditText", "android.widget.EditText", "fill", "wrap", True),
    "slider": (Flow.LEAF, "android.widget.SeekBar", "android.widget.SeekBar", "fill", 48, True),
    "progress": (Flow.LEAF, "android.widget.ProgressBar", "android.widget.ProgressBar", 48, 48, False),
    "space": (Flow.LEAF, _VIEW, _VIEW, "fill", 16, False),
    "divider": (Flow.LEAF, _VIEW, _VIEW, "fill", 1, False),
}

_FONTS = {"title": 22.0, "heading": 17.0, "body": 15.0, "caption": 12.5, "price": 19.0, "link": 15.0}
BUTTON_FONT_DP = 14.5
FIELD_FONT_DP = 16.0
_PADDING: dict[str, tuple[float, float, float, float]] = {"button": (20, 0, 20, 0), "field": (16, 14, 16, 14)}


def make_spec(widget: wid.Base, px: float) -> Spec:
    """The spec of a widget on a display with ``px`` pixels to the dp. Toolbars and tabs are `desugar`'s."""
    kind: str = getattr(widget, "type")  # noqa: B009  # every concrete widget has it, Base alone has not
    flow, class_name, compose_class, width, height, touches = _KINDS[kind]
    if isinstance(widget, wid.Scroll | wid.ListWidget) and widget.direction == "horizontal":
        flow, height = Flow.SCROLL_ACROSS, "wrap"
        if isinstance(widget, wid.Scroll):
            class_name = "android.widget.HorizontalScrollView"
    if isinstance(widget, wid.Icon) and (widget.on_click or widget.clickable):
        class_name, width, height = "android.widget.ImageButton", 48.0, 48.0
    if isinstance(widget, wid.Progress) and widget.value is not None:
        width, height = "fill", 16.0
    spec = Spec(
        flow=flow,
        class_name=widget.class_ or class_name,
        compose_class=widget.class_ or compose_class,
        width=_length(widget.width if widget.width is not None else width, px),
        height=_length(widget.height if widget.height is not None else height, px),
        weight=widget.weight or 0,
        pad=_insets(widget.padding if widget.padding is not None else _PADDING.get(kind, 0.0), px),
        margin=_insets(widget.margin if widget.margin is not None else 0.0, px),
        align=widget.align,
        touches=touches,
        actions_clickable=bool(widget.on_click),
        font=_font(widget) * px,
    )
    if isinstance(widget, wid.Container):
        spec.gap = round(widget.gap * px)
        spec.justify = widget.justify
        spec.align_items = widget.align_items
    if isinstance(widget, wid.ListWidget):
        spec.columns = widget.columns
    if isinstance(widget, wid.Text) and widget.lines is not None:
        spec.lines = widget.lines
    return spec


def _font(widget: wid.Base) -> float:
    if isinstance(widget, wid.Text):
        return _FONTS[widget.style]
    return BUTTON_FONT_DP if isinstance(widget, wid.Button) else FIELD_FONT_DP


def _length(size: wid.Size, px: float) -> int | None:
    if size == "fill":
        return FILL
    if size == "wrap":
        return None
    return max(1, round(float(size) * px)) if float(size) > 0 else 0


def _insets(insets: wid.Insets, px: float) -> tuple[int, int, int, int]:
    if isinstance(insets, tuple):
        if len(insets) == 2:
            across, down = round(insets[0] * px), round(insets[1] * px)
            return across, down, across, down
        left, top, right, bottom = (round(inset * px) for inset in insets)
        return left, top, right, bottom
    same = round(insets * px)
    return same, same, same, same
