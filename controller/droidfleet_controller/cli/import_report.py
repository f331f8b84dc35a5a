"""How the report of an import is shown: lines for people, a plain document for programs. Never prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from droidfleet_controller.cli.text import cell
from droidfleet_controller.importing.report import What

if TYPE_CHECKING:
    from rich.console import RenderableType

    from droidfleet_controller.cli.documents import Document
    from droidfleet_controller.importing.report import Entry, Imported
    from droidfleet_controller.importing.sources import Form

_STYLES = {What.MAPPED: "green", What.NORMALISED: "yellow", What.REFUSED: "bold red"}


def report_view(imported: Imported, *, file: str) -> RenderableType:
    """Each entry in the order of the file, then how many there are of each kind."""
    grid = Table.grid(padding=(0, 2))
    for column in ("place", "what", "says"):
        grid.add_column(overflow="fold", no_wrap=column == "what")
    for entry in imported.report:
        grid.add_row(cell(entry.place or "(document)"), cell(entry.what, _STYLES[entry.what]), _says(entry))
    return Group(grid, _counts(imported, file=file))


def _says(entry: Entry) -> Text:
    said = cell(entry.message if entry.what is What.MAPPED else f"{entry.code}: {entry.message}")
    return said.append("\n").append_text(cell(entry.hint, "dim")) if entry.hint else said


def _counts(imported: Imported, *, file: str) -> Text:
    line = cell(f"{file}: ", "bold")
    for position, what in enumerate(What):
        count = imported.count(what)
        line.append(", " if position else "").append(f"{count} {what}", style=_STYLES[what] if count else "dim")
    if imported.document is None:
        line.append("; no task was made, because an import is whole or refused")
    return line


def report_document(imported: Imported, *, file: str, form: Form) -> Document:
    """The report as docs/cli.md promises it."""
    return {
        "imported": imported.document is not None,
        "file": file,
        "form": form.value,
        "counts": {what.value: imported.count(what) for what in What},
        "report": [
            {
                "place": entry.place,
                "what": entry.what.value,
                "code": str(entry.code),
                "message": entry.message,
                "hint": entry.hint or None,
            }
            for entry in imported.report
        ],
        "aside": imported.aside,
    }
