"""Pictures of the phone's screen, drawn from the view tree with Pillow. Imported only for a screenshot."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence

from PIL import Image, ImageDraw

from droidfleet_agent.virtual_phone.facts import Media
from droidfleet_agent.virtual_phone.icons import draw_icon
from droidfleet_agent.virtual_phone.lettering import Box, line_width, write
from droidfleet_agent.virtual_phone.model.text import LINE_HEIGHT, wrapped
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.model.windows import Window
from droidfleet_agent.virtual_phone.scenario import widgets as wid
from droidfleet_agent.virtual_phone.scenario.models import Theme

_BLACK, _WHITE = "#000000", "#ffffff"
_MUTED, _RAISED, _LINE, _DISABLED = "#6b7280", "#f1f3f6", "#dadce0", "#b8bdc6"
_FIXED = {
    "muted": _MUTED,
    "raised": _RAISED,
    "danger": "#c5221f",
    "success": "#188038",
    "white": _WHITE,
    "black": _BLACK,
    "none": "",
}
_KEY_ICONS = {"Delete": "key_delete", "Shift": "key_shift", "Enter": "key_enter"}
_DIM = (0, 0, 0, 110)
"""What lies over an app while a dialog is open."""
_TOAST_FONT_DP, _TOAST_ABOVE_DP = 14, 120


def render(
    windows: Sequence[Window],
    size: tuple[int, int],
    px: float,
    *,
    toast: str | None,
    media: Media,
    quality: int,
    scale: float,
) -> bytes:
    """The windows, the lowest first, as an encoded picture; none: a dark display. ``scale`` (0 to 1) shrinks it."""
    image = Image.new("RGB", size, _BLACK)
    painter = _Painter(image, px)
    for window in windows:
        painter.window(window)
    if toast is not None and windows:
        painter.toast(toast)
    if 0 < scale < 1:
        image = image.resize((max(1, round(size[0] * scale)), max(1, round(size[1] * scale))))
    out = io.BytesIO()
    if media == "JPEG":
        image.save(out, "JPEG", quality=max(1, min(quality, 95)))
    else:
        # Level 1 is five times faster than the default and a tenth larger; a screenshot is read once.
        image.save(out, "PNG", compress_level=1)
    return out.getvalue()


class _Painter:
    def __init__(self, image: Image.Image, px: float) -> None:
        self._image = image
        self._draw = ImageDraw.Draw(image)
        self._px = px
        self._theme = Theme()

    def window(self, window: Window) -> None:
        self._theme = window.page.app.app.theme
        if window.name == "app" and window.page.screen is not None:
            self._draw.rectangle(window.frame, fill=self._color("surface"))
            bar = (window.frame[0], window.frame[1], window.frame[2], round(32 * self._px))
            self._draw.rectangle(bar, fill=self._color("primary"))
        elif window.modal and window.page.dialog is not None:
            # Everything below a modal dialog is dimmed, the bars too.
            shade = Image.new("RGBA", self._image.size, _DIM)
            self._image.paste(shade, (0, 0), shade)
        self._node(window.root)

    def toast(self, text: str) -> None:
        size = round(_TOAST_FONT_DP * self._px)
        width = min(self._image.width - 8 * size, round(line_width(text, size)) + 4 * size)
        lines = wrapped(text, float(size), max(1, width - 3 * size), 2)
        height = round(len(lines) * size * LINE_HEIGHT) + 2 * size
        left = (self._image.width - width) // 2
        top = self._image.height - round(_TOAST_ABOVE_DP * self._px) - height
        self._draw.rounded_rectangle((left, top, left + width, top + height), height // 3, fill="#323232")
        for number, line in enumerate(lines):
            x = left + (width - line_width(line, size)) / 2
            self._write((x, top + size + number * size * LINE_HEIGHT), line, size, _WHITE)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _node(self, node: ViewNode) -> None:
        if not node.shown or not node.has_area:
            return
        widget = node.widget
        if widget is not None:
            self._background(node, widget)
            self._content(node, widget)
        for child in node.children:
            self._node(child)

    def _background(self, node: ViewNode, widget: wid.Base) -> None:
        if widget.background in (None, "none"):
            return
        color = self._color(widget.background or "")
        if not node.enabled:
            color = _DISABLED
        radius = round((widget.corner or 0) * self._px)
        box = _box(node)
        if radius:
            self._draw.rounded_rectangle(box, min(radius, (box[2] - box[0]) // 2, (box[3] - box[1]) // 2), fill=color)
        else:
            self._draw.rectangle(box, fill=color)

    def _content(self, node: ViewNode, widget: wid.Base) -> None:
        match widget:
            case wid.Text():
                self._label(node, widget)
            case wid.Button():
                self._button(node, widget)
            case wid.Icon():
                self._icon(node, widget)
            case wid.Image():
                self._picture(node, widget)
            case wid.Check():
                self._check(node, widget)
            case wid.FieldWidget():
                self._field(node)
            case wid.Slider():
                self._slider(node, widget)
            case wid.Progress():
                self._progress(node, widget)
            case wid.Divider():
                self._draw.rectangle(_box(node), fill=_LINE)
            case _:
                pass

    def _label(self, node: ViewNode, widget: wid.Text) -> None:
        color = self._color(widget.color or "text") if node.enabled else _DISABLED
        if node.selected:
            color = self._color("primary")
        self._paragraph(node, node.text, color, bold=widget.style in ("title", "heading", "price"))

    def _button(self, node: ViewNode, widget: wid.Button) -> None:
        box = _box(node)
        primary = self._color("primary") if node.enabled else _DISABLED
        radius = (box[3] - box[1]) // 2
        if widget.background is not None:
            color = self._color("text")
        elif widget.style == "filled":
            inset = round(4 * self._px)
            self._draw.rounded_rectangle((box[0], box[1] + inset, box[2], box[3] - inset), radius, fill=primary)
            color = _WHITE
        else:
            color = primary
            if widget.style == "outlined":
                inset = round(6 * self._px)
                inner = (box[0], box[1] + inset, box[2], box[3] - inset)
                self._draw.rounded_rectangle(inner, radius, outline=_LINE, width=max(1, round(self._px)))
        icon = _KEY_ICONS.get(node.description) if not node.text else None
        if icon is not None:
            half = round(11 * self._px)
            x, y = (box[0] + box[2]) // 2, (box[1] + box[3]) // 2
            draw_icon(self._draw, icon, (x - half, y - half, x + half, y + half), color)
        self._centered(node, node.text, color)

    def _icon(self, node: ViewNode, widget: wid.Icon) -> None:
        color = self._color(widget.color or "primary") if node.enabled else _DISABLED
        if node.selected:
            color = self._color("primary")
        box = (node.left, node.top, node.right, node.bottom)
        small = round(24 * self._px)
        if node.clickable and node.w > small * 3 // 2 and widget.height is None:
            x, y = (box[0] + box[2] - small) // 2, (box[1] + box[3] - small) // 2
            box = (x, y, x + small, y + small)
        if color:
            draw_icon(self._draw, node.value, box, color)

    def _picture(self, node: ViewNode, widget: wid.Image) -> None:
        """A quiet two-coloured picture that is the same for the same seed."""
        seed = zlib.crc32(node.value.encode())
        hue = seed % 360
        light, dark = f"hsl({hue}, 45%, 82%)", f"hsl({(hue + 30) % 360}, 40%, 58%)"
        left, top, right, bottom = _box(node)
        radius = min(round((widget.corner or 0) * self._px), (right - left) // 2, (bottom - top) // 2)
        self._draw.rounded_rectangle((left, top, right, bottom), radius, fill=light)
        width, height = right - left, bottom - top
        if min(width, height) > round(24 * self._px):
            reach = min(width, height) // 4
            x, y = left + width // 2, top + height // 2
            shape = seed // 360 % 3
            area = (x - reach, y - reach, x + reach, y + reach)
            if shape == 0:
                self._draw.ellipse(area, fill=dark)
            elif shape == 1:
                self._draw.rounded_rectangle(area, reach // 3, fill=dark)
            else:
                self._draw.polygon([(x, y - reach), (x + reach, y + reach), (x - reach, y + reach)], fill=dark)

    def _check(self, node: ViewNode, widget: wid.Check) -> None:
        px = self._px
        on = self._color("primary") if node.enabled else _DISABLED
        middle = (node.top + node.bottom) // 2
        if node.text:
            self._paragraph(
                node, node.text, self._color("text"), middle=True, inset=0 if widget.type == "switch" else 32
            )
        if widget.type == "switch":
            right, half = node.right - round(2 * px), round(12 * px)
            left = right - round(44 * px)
            self._draw.rounded_rectangle(
                (left, middle - half, right, middle + half), half, fill=on if node.checked else _LINE
            )
            x = right - half if node.checked else left + half
            knob = round(8 * px)
            self._draw.ellipse(
                (x - knob, middle - knob, x + knob, middle + knob), fill=_WHITE if node.checked else _MUTED
            )
            return
        start = node.left + node.spec.pad[0]
        box = (start + round(4 * px), middle - round(10 * px), start + round(24 * px), middle + round(10 * px))
        thick = max(2, round(2 * px))
        if widget.type == "radio":
            self._draw.ellipse(box, outline=on if node.checked else _MUTED, width=thick)
            if node.checked:
                dot = round(5 * px)
                self._draw.ellipse((box[0] + dot, box[1] + dot, box[2] - dot, box[3] - dot), fill=on)
            return
        self._draw.rounded_rectangle(
            box, thick, outline=on if node.checked else _MUTED, fill=on if node.checked else None, width=thick
        )
        if node.checked:
            draw_icon(self._draw, "check", box, _WHITE)

    def _field(self, node: ViewNode) -> None:
        box = _box(node)
        edge = self._color("primary") if node.focused else _LINE
        thick = round((2 if node.focused else 1) * self._px)
        self._draw.rounded_rectangle(box, round(6 * self._px), fill=_WHITE, outline=edge, width=max(1, thick))
        if node.children:
            return
        color = self._color("text") if node.value else _MUTED
        self._paragraph(node, node.text, color)
        if node.focused:
            last = node.text.split("\n")[-1] if node.value else ""
            x = node.left + node.spec.pad[0] + line_width(last, round(node.spec.font))
            x = min(x, node.right - node.spec.pad[2])
            self._draw.line(
                (x, node.bottom - node.spec.pad[3] - node.spec.font * LINE_HEIGHT, x, node.bottom - node.spec.pad[3]),
                fill=self._color("primary"),
                width=max(2, round(self._px)),
            )

    def _slider(self, node: ViewNode, widget: wid.Slider) -> None:
        part = (float(node.text or 0) - widget.minimum) / max(1e-9, widget.maximum - widget.minimum)
        middle, half, knob = (node.top + node.bottom) // 2, round(2 * self._px), round(9 * self._px)
        x = node.left + knob + round(min(max(part, 0), 1) * (node.w - 2 * knob))
        self._draw.rounded_rectangle((node.left, middle - half, node.right, middle + half), half, fill=_LINE)
        self._draw.rounded_rectangle((node.left, middle - half, x, middle + half), half, fill=self._color("primary"))
        self._draw.ellipse((x - knob, middle - knob, x + knob, middle + knob), fill=self._color("primary"))

    def _progress(self, node: ViewNode, widget: wid.Progress) -> None:
        box = _box(node)
        if widget.value is None:
            inset = (box[2] - box[0]) // 6
            inner = (box[0] + inset, box[1] + inset, box[2] - inset, box[3] - inset)
            self._draw.arc(inner, 20, 290, fill=self._color("primary"), width=round(4 * self._px))
            return
        self._draw.rounded_rectangle(box, node.h // 2, fill=_LINE)
        part = min(max(float(node.text or 0) / 100, 0), 1)
        self._draw.rounded_rectangle(
            (box[0], box[1], box[0] + round(node.w * part), box[3]), node.h // 2, fill=self._color("primary")
        )

    # -- texts ---------------------------------------------------------------------------------------------------

    def _paragraph(
        self, node: ViewNode, text: str, color: str, *, bold: bool = False, middle: bool = False, inset: float = 0
    ) -> None:
        size = round(node.spec.font)
        left, top, right, bottom = node.spec.pad
        x = node.left + left + round(inset * self._px)
        width = node.right - right - x
        lines = wrapped(text, node.spec.font, max(1, width), node.spec.lines)
        room = node.bottom - bottom - node.top - top
        y = float(node.top + top)
        if middle:
            y += max(0.0, (room - len(lines) * size * LINE_HEIGHT) / 2)
        for line in lines:
            if y + size > node.seen_top and y < node.seen_bottom:
                self._write((x, y), line, self._fitting(line, size, width), color, bold=bold, clip=_box(node))
            y += size * LINE_HEIGHT

    def _centered(self, node: ViewNode, text: str, color: str) -> None:
        if not text:
            return
        width = node.right - node.left
        size = self._fitting(text, round(node.spec.font), width)
        x = node.left + (width - line_width(text, size)) / 2
        y = (node.top + node.bottom) / 2 - size * LINE_HEIGHT / 2
        self._write((x, y), text, size, color, clip=_box(node))

    def _fitting(self, text: str, size: int, width: int) -> int:
        """The layout only estimates widths: a line that a real font draws wider is drawn a little smaller."""
        needed = line_width(text, size)
        return size if needed <= width or needed == 0 else max(size * 2 // 3, int(size * width / needed))

    def _write(
        self, at: tuple[float, float], text: str, size: int, color: str, *, bold: bool = False, clip: Box | None = None
    ) -> None:
        write(self._image, at, text, size, color, bold=bold, clip=clip)

    def _color(self, name: str) -> str:
        if name.startswith("#"):
            return name
        if name in _FIXED:
            return _FIXED[name]
        color: str = getattr(self._theme, name)
        return color


def _box(node: ViewNode) -> tuple[int, int, int, int]:
    return (
        node.seen_left,
        node.seen_top,
        max(node.seen_left, node.seen_right - 1),
        max(node.seen_top, node.seen_bottom - 1),
    )
