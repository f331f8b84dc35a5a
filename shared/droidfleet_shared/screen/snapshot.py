"""One look as a value that can be kept and sent: what was decided on, in the phone's own XML. Pure.

A selector that is matched on the screen of a snapshot answers as it answered on the phone. What a password field holds
is left out; so are the losses of the dump (half an emoji is a dot), which the matcher reckons with anyhow.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Node, Screen
from droidfleet_shared.screen.parse import Hierarchy, parse
from droidfleet_shared.screen.write import write

Rectangle = tuple[int, int, int, int]
"""Left, top, right, bottom in display pixels; the last two are exclusive."""


class Snapshot(BaseModel):
    """A `Screen` as data."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    package: str = Field(description="The package in front; empty when there is none.")
    activity: str = Field(description="The activity in front, its full class name; empty when unknown.")
    display: Rectangle = Field(description="The display as it is turned.")
    rotation: int = Field(description="Quarter turns from the natural orientation, 0 to 3.")
    keyboard: Rectangle | None = Field(None, description="The on-screen keyboard, where it is shown.")
    over: tuple[Rectangle, ...] = Field((), description="Other windows over the active one.")
    window: str = Field("", description="The active window's XML; empty when there is no application in front.")

    def screen(self) -> Screen:
        """The screen again.

        Raises:
            ScreenUnreadableError: ``window`` is not a hierarchy.
        """
        roots = parse(self.window).roots if self.window else ()
        return Screen(
            root=roots[0] if roots else None,
            package=self.package,
            activity=self.activity,
            display=Bounds(*self.display),
            rotation=self.rotation,
            keyboard=Bounds(*self.keyboard) if self.keyboard is not None else None,
            over=tuple(Bounds(*each) for each in self.over),
        )

    def matcher(self) -> Matcher:
        """Matches selectors on it."""
        return Matcher(self.screen())


def snapshot_of(screen: Screen) -> Snapshot:
    """The look as a value. Leaves the screen as it is."""
    keyboard = screen.keyboard
    return Snapshot(
        package=screen.package,
        activity=screen.activity,
        display=_rectangle(screen.display),
        rotation=screen.rotation,
        keyboard=_rectangle(keyboard) if keyboard is not None else None,
        over=tuple(_rectangle(each) for each in screen.over),
        window=write(Hierarchy((screen.root,), screen.rotation), shown=_shown) if screen.root is not None else "",
    )


def _shown(node: Node) -> str:
    """The text of a node, but for what a password field holds."""
    return "" if node.password and node.text != node.hint else node.text


def _rectangle(bounds: Bounds) -> Rectangle:
    return bounds.left, bounds.top, bounds.right, bounds.bottom
