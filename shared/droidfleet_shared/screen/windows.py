"""Chooses the active application window among a dump's roots. Pure; says when the dump alone cannot tell.

Bars, edge panels and keyboards never match a selector (protocol section 3, rule 1), so they are never chosen. Among
several windows that could be in front nothing is guessed: the caller asks the phone for its active window alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from droidfleet_shared.screen.node import Bounds, Node

SYSTEM_UI = "com.android.systemui"

OVERLAYS = frozenset(
    {
        "com.samsung.android.app.cocktailbarservice",  # Samsung edge panel
        "com.samsung.android.sidegesturepad",  # Samsung side gestures
        "com.miui.dock",  # Xiaomi sidebar
        "com.oplus.smartsidebar",  # Oppo, OnePlus and realme sidebar
        "com.coloros.smartsidebar",
    }
)
"""Panels that phone makers keep over every app and that never are the app a task is about."""

COVERING_SHARE = 0.5
"""A window over at least this share of another is no bar and no pop-up: a system window over so much of the display may
be an open shade or the lock screen."""


@dataclass(frozen=True, slots=True)
class Windows:
    """What a dump of all windows says. ``root`` is the active window when only one can be it."""

    root: Node | None
    contenders: tuple[Node, ...]
    keyboard: Bounds | None

    @property
    def decided(self) -> bool:
        """Whether the phone need not be asked which window is active."""
        return len(self.contenders) <= 1


def rotated_display(width: int, height: int, rotation: int) -> Bounds:
    """The display's rectangle in the frame of ``rotation``; width and height are those of the natural orientation."""
    return Bounds(0, 0, height, width) if rotation % 2 else Bounds(0, 0, width, height)


def choose(roots: Sequence[Node], *, input_methods: Collection[str], display: Bounds) -> Windows:
    """Splits the roots into keyboards, bars and panels, and windows that could be the active one."""
    contenders: list[Node] = []
    keyboards: list[Node] = []
    for root in roots:
        if root.package in input_methods:
            keyboards.append(root)
        elif not _is_bar(root, display):
            contenders.append(root)
    only = contenders[0] if len(contenders) == 1 else None
    return Windows(
        root=only if only is not None and is_application(only, input_methods=input_methods) else None,
        contenders=tuple(contenders),
        keyboard=_union(_leaves(keyboards, display)),
    )


def is_application(root: Node, *, input_methods: Collection[str]) -> bool:
    """Whether a window can ever hold a target."""
    return root.package != SYSTEM_UI and root.package not in OVERLAYS and root.package not in input_methods


def windows_over(active: Node, contenders: Iterable[Node]) -> tuple[Bounds, ...]:
    """Where windows lie that are not active and yet over the active one: a list of suggestions, a floating bubble.

    A dump does not tell which window is over which. What covers most of the active window is below it, as the screen is
    below a dialog (or is the active window itself); what covers a part of it lies over it.
    """
    most = COVERING_SHARE * active.bounds.area
    return tuple(root.bounds for root in contenders if 0 < root.bounds.clipped(active.bounds).area < most)


def _is_bar(root: Node, display: Bounds) -> bool:
    if root.package in OVERLAYS:
        return True
    return root.package == SYSTEM_UI and root.bounds.clipped(display).area < COVERING_SHARE * display.area


def _leaves(roots: Iterable[Node], display: Bounds) -> Iterable[Bounds]:
    """Where the keyboards draw. Their window may span the display, so the keys tell, not the root."""
    for root in roots:
        for node in root.walk():
            if not node.children and node.visible:
                clipped = node.bounds.clipped(display)
                if clipped.area:
                    yield clipped


def _union(rectangles: Iterable[Bounds]) -> Bounds | None:
    union: Bounds | None = None
    for each in rectangles:
        union = (
            each
            if union is None
            else Bounds(
                min(union.left, each.left),
                min(union.top, each.top),
                max(union.right, each.right),
                max(union.bottom, each.bottom),
            )
        )
    return union
