"""Options that several commands share, as annotated types: one name, one help text, one environment variable."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_API = "127.0.0.1:7400"


class Output(StrEnum):
    """What a command writes: a table for people, or JSON or YAML of a documented shape for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


ApiOption = Annotated[
    str,
    typer.Option("--api", envvar="DROIDFLEET_API", metavar="HOST:PORT", help="The controller's gRPC address."),
]

RevisionOption = Annotated[int, typer.Option("--revision", min=0, metavar="N", help="0 means the newest.")]

OutputOption = Annotated[
    Output,
    typer.Option("--output", "-o", help="table for people; json or yaml for programs (see docs/cli.md)."),
]

WordsOption = Annotated[
    Path | None,
    typer.Option(
        "--words",
        envvar="DROIDFLEET_EFFECT_WORDS",
        metavar="FILE",
        help="More words for effects that cannot be undone, one a line.",
    ),
]
