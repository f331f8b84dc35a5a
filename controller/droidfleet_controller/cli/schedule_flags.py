"""The options that say when a schedule begins its rollout. What they mean together is the controller's to judge."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droidfleet_shared.protocol.pointers import Json

_WHEN = "When"


class Gap(StrEnum):
    """As `schedules.spec.Gap`, as the command line spells it."""

    SKIP = "skip"
    NEXT_VALID = "next-valid"


class Fold(StrEnum):
    """As `schedules.spec.Fold`, in small letters."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Misfire(StrEnum):
    """As `schedules.spec.Misfire`, in small letters."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"


class Overlap(StrEnum):
    """As `schedules.spec.Overlap`, as the command line spells it."""

    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_RUNNING = "cancel-running"
    ALLOW = "allow"


@dataclass(frozen=True, kw_only=True)
class ScheduleFlags:
    """What the command line says about times. None: nothing."""

    cron: Annotated[
        str | None,
        typer.Option("--cron", metavar="EXPRESSION", help='At these times: "30 2 * * *".', rich_help_panel=_WHEN),
    ] = None
    once: Annotated[
        str | None, typer.Option("--once", metavar="TIME", help="Once: 2027-03-28T02:30.", rich_help_panel=_WHEN)
    ] = None
    every: Annotated[
        str | None, typer.Option("--every", metavar="30m|6h", help="Every so much time.", rich_help_panel=_WHEN)
    ] = None
    window_start: Annotated[
        str | None,
        typer.Option("--window-start", metavar="CRON|TIME", help="Begins at these times ...", rich_help_panel=_WHEN),
    ] = None
    window_stop: Annotated[
        str | None,
        typer.Option(
            "--window-stop", metavar="CRON|TIME", help="... and what runs then is cancelled.", rich_help_panel=_WHEN
        ),
    ] = None
    time_zone: Annotated[
        str | None,
        typer.Option("--time-zone", metavar="ZONE", help="Whose clock it is (UTC).", rich_help_panel=_WHEN),
    ] = None
    gap: Annotated[
        Gap | None,
        typer.Option("--gap", help="A time that there is not (next-valid).", rich_help_panel=_WHEN),
    ] = None
    fold: Annotated[
        Fold | None, typer.Option("--fold", help="A time that there is twice (first).", rich_help_panel=_WHEN)
    ] = None
    misfire: Annotated[
        Misfire | None,
        typer.Option("--misfire", help="What passed while no controller ran (last).", rich_help_panel=_WHEN),
    ] = None
    overlap: Annotated[
        Overlap | None,
        typer.Option("--overlap", help="The rollout before still goes on (skip).", rich_help_panel=_WHEN),
    ] = None
    jitter: Annotated[
        str | None,
        typer.Option("--jitter", metavar="5m", help="Begin up to so much later.", rich_help_panel=_WHEN),
    ] = None
    not_before: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Nothing before it.", rich_help_panel=_WHEN)
    ] = None
    not_after: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Nothing after it.", rich_help_panel=_WHEN)
    ] = None

    @property
    def given(self) -> bool:
        """Whether they say anything."""
        return self != ScheduleFlags()


def schedule_document_of(document: Mapping[str, Json], flags: ScheduleFlags) -> dict[str, Json]:
    """The document with what the options say over it; any of the four kinds of times replaces the one before."""
    made = dict(document)
    when = _given({"cron": flags.cron, "once": flags.once, "interval": flags.every})
    window = _given({"start": flags.window_start, "stop": flags.window_stop})
    if window:
        when["window"] = window
    if when:
        made["when"] = when
    return made | _given(
        {
            "timeZone": flags.time_zone,
            "gap": _word(flags.gap),
            "fold": _word(flags.fold),
            "misfire": _word(flags.misfire),
            "overlap": _word(flags.overlap),
            "jitter": flags.jitter,
            "from": flags.not_before,
            "until": flags.not_after,
        }
    )


def _given(values: Mapping[str, str | None]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value is not None}


def _word(choice: StrEnum | None) -> str | None:
    return None if choice is None else choice.name
