"""One node of the phone's current view tree, laid out. Built afresh after each change; never kept between changes."""

from __future__ import annotations

from collections.abc import Iterator

from droidfleet_agent.screen.node import Bounds


class ViewNode:
    """A view as the accessibility tree shows it. Texts are the real ones (emoji kept); ``secret`` tells a password field.

    ``key`` names the node across rebuilds of the same page.
    """

    key: str
    text: str
    description: str
    resource_id: str
    class_name: str
    package: str
    hint: str
    enabled: bool
    editable: bool
    secret: bool
    scrollable: bool

    @property
    def bounds(self) -> Bounds:
        """The raw rectangle in display pixels."""
        raise NotImplementedError

    @property
    def visible_bounds(self) -> Bounds:
        """The part that can be seen; empty when nothing of it can."""
        raise NotImplementedError

    def walk(self) -> Iterator[ViewNode]:
        """This node and everything below it, in document order."""
        raise NotImplementedError
