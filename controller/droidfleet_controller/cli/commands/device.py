"""`droidfleet device`: look at the phone of one device now, act on it, and label devices."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from droidfleet_controller.cli import screen_text
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.commands import acting
from droidfleet_controller.cli.commands.devices import show_device
from droidfleet_controller.cli.commands.label import label_devices
from droidfleet_controller.cli.completion import complete_device
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import console, emit, note, show
from droidfleet_controller.cli.screens import ScreenView, Seen, node_document, screen_document
from droidfleet_shared.errors import DroidfleetError, InvalidInputError

app = typer.Typer(no_args_is_help=True, help="Look at the phone of one device now, and act on it; label devices.")
app.command("show")(show_device)
app.command("label")(label_devices)
acting.add_to(app)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The device.", autocompletion=complete_device)]

_POINT = re.compile(r"(\d{1,3}(?:\.\d+)?)%?,(\d{1,3}(?:\.\d+)?)%?")
_ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png"}


@app.command("tree")
def tree(
    name: NameArgument,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every node, also frames and what nobody sees.")] = False,
    find: Annotated[str, typer.Option("--find", metavar="TEXT", help="Only nodes that are called like this.")] = "",
    xml: Annotated[bool, typer.Option("--xml", help="The phone's own XML instead, all windows.")] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show what is on the screen, each node with the shortest selector that names it alone.

    \b
    Examples:
      droidfleet device tree phone-01
      droidfleet device tree phone-01 --find cart
      droidfleet device tree phone-01 -o json | jq '.nodes[].selectors[0].selector'
      droidfleet device tree phone-01 --xml > screen.xml
    """
    with ControllerClient(api) as client:
        found = client.tree(name, with_xml=xml)
    if xml:
        sys.stdout.write(found.xml.rstrip("\n") + "\n")
        return
    view = ScreenView(found)
    shown = view.containing(find) if find else view.nodes if every else view.useful()
    if output is not Output.TABLE:
        emit(screen_document(name, view, shown), output)
    else:
        show(screen_text.tree_of(view, shown))
    if find and not shown:
        view.one(find)


@app.command("screenshot")
def screenshot(
    name: NameArgument,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to save it (NAME.jpg or .png); - for stdout.")
    ] = None,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Save a picture of the screen.

    \b
    Examples:
      droidfleet device screenshot phone-01
      droidfleet device screenshot phone-01 --out cart.jpg
    """
    with ControllerClient(api) as client:
        picture = client.screenshot(name)
    if out == Path("-"):
        sys.stdout.buffer.write(picture.data)
        return
    safe = re.sub(r"[^\w.-]", "_", name)
    file = out or Path(f"{safe}{_ENDINGS.get(picture.media_type, '.jpg')}")
    try:
        file.write_bytes(picture.data)
    except OSError as error:
        raise InvalidInputError(
            "FILE_UNWRITABLE", f"the picture cannot be written to {str(file)!r}: {error.strerror}."
        ) from error
    smaller = f", at {picture.scale_percent} % of its size" if picture.scale_percent < 100 else ""
    note(f"{file}: {picture.width} x {picture.height}{smaller}")


@app.command("pick")
def pick(
    name: NameArgument,
    *,
    text: Annotated[str, typer.Option("--text", metavar="TEXT", help="The node that is called like this.")] = "",
    at: Annotated[str, typer.Option("--at", metavar="X%,Y%", help="The node at this point of the display.")] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Choose a node from a list, and see all selectors that name it and why others would not.

    Without --text and --at it asks: type a number or a part of a text; Enter looks again; q ends.

    \b
    Examples:
      droidfleet device pick phone-01
      droidfleet device pick phone-01 --text "Add to cart"
      droidfleet device pick phone-01 --at 50%,90% -o json
    """
    if text and at:
        raise InvalidInputError("BAD_ARGUMENTS", "name the node either by --text or by --at.")
    point = _point(at) if at else None
    with ControllerClient(api) as client:
        view = ScreenView(client.tree(name))
        if point is not None:
            _show_node(view.at(*point), output)
        elif text:
            _show_node(view.one(text), output)
        else:
            _ask(client, name, view, output)


def _ask(client: ControllerClient, name: str, view: ScreenView, output: Output) -> None:
    """Asks for nodes until the person, or the input, ends."""
    screen = console(stderr=True)
    while True:
        choices = view.choices()
        if sys.stdin.isatty():
            screen.print(screen_text.heading(view))
            screen.print(screen_text.choices_table(choices))
            screen.print("number, text, Enter to look again, q to end: ", end="")
        line = sys.stdin.readline()
        word = line.strip()
        if not line or word == "q":
            return
        if not word:
            view = ScreenView(client.tree(name))
            continue
        try:
            _show_node(chosen(view, word), output)
        except DroidfleetError as error:
            if not sys.stdin.isatty():
                raise
            note(f"{error.code}: {error.message}")


def chosen(view: ScreenView, word: str) -> Seen:
    """The node that a person means by a number of the list or by a text.

    Raises:
        NotFoundError, PreconditionError, InvalidInputError.
    """
    if not (word.isascii() and word.isdecimal()):
        return view.one(word)
    choices = view.choices()
    if not 1 <= int(word[:6]) <= len(choices):
        raise InvalidInputError("BAD_NUMBER", f"the list has the numbers 1 to {len(choices)}, not {word[:12]}.")
    return choices[int(word) - 1]


def _show_node(seen: Seen, output: Output) -> None:
    if output is Output.TABLE:
        # A selector is there to be copied: never broken into lines.
        console().print(screen_text.details_of(seen), soft_wrap=True)
    else:
        emit(node_document(seen), output)


def _point(text: str) -> tuple[float, float]:
    found = _POINT.fullmatch(text.replace(" ", ""))
    x, y = (float(found[1]), float(found[2])) if found else (-1.0, -1.0)
    if not (0 <= x <= 100 and 0 <= y <= 100):
        raise InvalidInputError(
            "BAD_POINT", f"{text!r} is not a point.", hint="Write percents of width and height: --at 50%,90%."
        )
    return x, y
