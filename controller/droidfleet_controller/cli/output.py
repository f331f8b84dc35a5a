"""Where output goes: results to standard output, progress, notes and errors to standard error."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from droidfleet_controller.cli.options import Output
from droidfleet_controller.cli.tables import without_spare
from droidfleet_controller.cli.text import escape, escape_json, is_safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from droidfleet_controller.cli.documents import Document

PIPE_WIDTH = 200
"""Columns of a table that goes to a file or a pipe, where there is no screen to fit."""


def console(*, stderr: bool = False) -> Console:
    """A Rich console that takes every string literally."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=width, soft_wrap=False)


def show(renderable: RenderableType, *, stderr: bool = False) -> None:
    """Writes a table or text for people. A file or a pipe gets lines without the blanks that fill up a table's row."""
    screen = console(stderr=stderr)
    if screen.is_terminal:
        screen.print(renderable)
        return
    with screen.capture() as captured:
        screen.print(renderable)
    stream = sys.stderr if stderr else sys.stdout
    stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def show_table(table: Table, *, spare: Sequence[str]) -> None:
    """Writes a table; where the screen is too narrow for it, without those of its ``spare`` columns that cost the fit.

    ``spare`` names columns, the least important first.
    """
    show(without_spare(table, spare, width=console().width))


def note(text: str) -> None:
    """A line for people beside the result; never in the way of a program that reads standard output."""
    sys.stderr.write(f"{escape(text)}\n")


def emit(document: Document, output: Output) -> None:
    """Writes one whole document."""
    if output is Output.YAML:
        sys.stdout.write(_yaml(document))
    else:
        sys.stdout.write(escape_json(json.dumps(document, ensure_ascii=False, indent=2)) + "\n")


def emit_item(document: Document, output: Output) -> None:
    """Writes one item of a stream, at once: a line of JSON, or a YAML document."""
    if output is Output.YAML:
        sys.stdout.write("---\n" + _yaml(document))
    else:
        sys.stdout.write(escape_json(json.dumps(document, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def _yaml(document: Document) -> str:
    import yaml  # noqa: PLC0415 - most calls write no YAML

    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    if all(is_safe(line) for line in text.splitlines()):
        return text
    # ASCII alone has no characters that act on a terminal: YAML then writes them as escapes.
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=False))
