"""A phone's screen in lines for people: the tree, the numbered list, everything about one node. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from droidfleet_controller.cli.screens import NOTHING_NAMED, ScreenView, Seen
from droidfleet_controller.cli.text import cut, escape

MAX_LABEL = 48
_STATES = ("checked", "selected", "focused", "scrollable", "password")


def heading(view: ScreenView) -> Text:
    """Which app is in front."""
    tree = view.tree
    if not tree.package_name:
        return Text("No application window is in front.", style="bold")
    activity = tree.activity_name.removeprefix(tree.package_name)
    return Text(escape(f"{tree.package_name} {activity}".strip()), style="bold")


def tree_of(view: ScreenView, shown: Sequence[Seen]) -> Tree:
    """The shown nodes, each under its nearest ancestor that is shown too, with the shortest selector that lasts."""
    top = Tree(heading(view), guide_style="dim")
    branches: dict[int, Tree] = {}
    for seen in shown:
        parent = seen.node.parent
        while parent >= 0 and parent not in branches:
            parent = view.nodes[parent].node.parent
        branches[seen.number] = branches.get(parent, top).add(line_of(seen))
    if view.tree.package_name and not view.useful():
        top.add(Text(NOTHING_NAMED, style="italic"))
    if view.tree.omitted:
        top.add(Text(f"{view.tree.omitted} more nodes did not fit", style="italic"))
    return top


def line_of(seen: Seen) -> Text:
    """A node with its best selector."""
    line = Text(escape(seen.kind), style="cyan")
    if seen.label:
        line.append(f" {_quoted(seen.label)}", style="bold default")
    line.append(_state(seen), style="yellow")
    best = seen.best
    if best is not None:
        line.append(f"  {escape(best.selector_json)}", style="green")
        if best.note:
            line.append(f"  ({escape(best.note)})", style="dim")
    return line


def choices_table(choices: Sequence[Seen]) -> Table:
    """The choices with the numbers that a person types, from 1."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style="green", overflow="ellipsis", no_wrap=True)
    for number, seen in enumerate(choices, start=1):
        label = Text(_quoted(seen.label) if seen.label else escape(seen.identity))
        label.append(_state(seen), style="yellow")
        best = seen.best
        table.add_row(str(number), escape(seen.kind), label, Text(escape(best.selector_json) if best else "-"))
    return table


def details_of(seen: Seen) -> Text:
    """All selectors of a node, the best first, and why others would not do."""
    lines = Text(f"{escape(seen.kind)} {_quoted(seen.label or seen.identity)}{_state(seen)}\n", style="bold")
    bounds = seen.node.bounds
    lines.append(f"  at [{bounds.left},{bounds.top}][{bounds.right},{bounds.bottom}]\n", style="not bold")
    for offered in seen.node.offered:
        lines.append(f"  {escape(offered.selector_json)}", style="not bold green")
        lines.append(f"  but {escape(offered.note)}\n" if offered.note else "\n", style="not bold default")
    if not seen.node.offered:
        lines.append("  No selector names this node alone.\n", style="not bold")
    for rejected in seen.node.rejected:
        lines.append(f"  not {escape(rejected.selector_json)}: {escape(rejected.why)}\n", style="not bold dim")
    lines.rstrip()
    return lines


def _state(seen: Seen) -> str:
    flags = [flag for flag in _STATES if flag in seen.node.flags]
    if "enabled" not in seen.node.flags:
        flags.append("disabled")
    return f" [{', '.join(flags)}]" if flags else ""


def _quoted(label: str) -> str:
    return f'"{cut(escape(" ".join(label.split())), MAX_LABEL)}"'
