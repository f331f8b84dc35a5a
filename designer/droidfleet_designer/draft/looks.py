"""The screens of an exploration as evidence is looked for on them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from droidfleet_designer.observation.quoting import quoted
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node
from droidfleet_shared.screen.snapshot import Snapshot
from droidfleet_shared.screen.suggest import Suggester

MAX_TITLE = 60
"""Characters of the text by which a screen is called, and of an element's."""


@dataclass(frozen=True)
class Look:
    """A snapshot with what is made of it once, when it is first needed."""

    id: str
    snapshot: Snapshot

    @cached_property
    def matcher(self) -> Matcher:
        """Matches selectors on it."""
        return self.snapshot.matcher()

    @cached_property
    def suggester(self) -> Suggester:
        """Names its nodes."""
        return Suggester(self.matcher)

    @cached_property
    def words(self) -> str:
        """What the screen is: the app, its activity, and the first text on it."""
        snapshot = self.snapshot
        activity = snapshot.activity.removeprefix(snapshot.package)
        texts = (normalise(node.text) for node in self.matcher.visible_nodes())
        title = next((quoted(text, most=MAX_TITLE) for text in texts if text), "")
        return " ".join(each for each in (snapshot.package, activity, title) if each)

    def called(self, node: Node) -> str:
        """A node in words: its class, and what is read on it."""
        said = next((text for each in (node, *node.walk()) if (text := _says(each))), "")
        return " ".join(each for each in (_kind(node), quoted(said, most=MAX_TITLE) if said else "") if each)


def looks_at(snapshots: Mapping[str, Snapshot]) -> tuple[Look, ...]:
    """The looks, the newest first: ``s0``, ``s1``, ... are numbered as they were taken. Of equal ones the newest."""
    distinct: dict[Snapshot, str] = {}
    for name in sorted(snapshots, key=lambda name: int(name.removeprefix("s")), reverse=True):
        distinct.setdefault(snapshots[name], name)
    return tuple(Look(name, snapshot) for snapshot, name in distinct.items())


def _says(node: Node) -> str:
    return normalise(node.text) or normalise(node.description) or normalise(node.hint)


def _kind(node: Node) -> str:
    return node.class_name.rpartition(".")[2]
