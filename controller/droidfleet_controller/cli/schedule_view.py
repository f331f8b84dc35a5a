"""Schedules for people. Never prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from droidfleet_controller.cli import rollout_documents as documents
from droidfleet_controller.cli.documents import instant
from droidfleet_controller.cli.rollout_view import word
from droidfleet_controller.cli.tables import facts, table
from droidfleet_controller.cli.text import cell, moment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from rich.table import Table

    from droidfleet.v1 import schedule_pb2

SPARE_OF_LIST = ("Version", "Last")


def schedules(items: Iterable[schedule_pb2.Schedule]) -> Table:
    """One row a schedule."""
    made = table("Schedule", "When", "Next", "Last", "Version")
    for item in items:
        made.add_row(cell(item.name), cell(item.when), _next(item), _last(item), cell(str(item.version)))
    return made


def schedule(item: schedule_pb2.Schedule, preview: Iterable[schedule_pb2.PlannedOccurrence]) -> Group:
    """All about a schedule, and what is to come."""
    top = facts(
        ("Schedule", cell(item.name)),
        ("Id", cell(item.schedule_id)),
        ("When", cell(item.when)),
        ("Next", _next(item)),
        ("Last", _last(item)),
        ("Version", cell(str(item.version))),
        ("Created", cell(moment(instant(item.created_at)))),
        ("Changed", cell(moment(instant(item.updated_at)))),
    )
    coming = list(preview)
    return Group(top, Text(), planned(coming)) if coming else Group(top)


def planned(items: Iterable[schedule_pb2.PlannedOccurrence]) -> Table:
    """One row an occurrence to come: on the schedule's clock, in UTC, and what is special about it."""
    made = table("Local time", "UTC", "Ends (UTC)", "Note")
    for item in items:
        made.add_row(
            cell(item.local), cell(_utc(instant(item.at))), cell(_utc(instant(item.stop_at))), cell(item.note, "yellow")
        )
    return made


def occurrences(items: Iterable[schedule_pb2.Occurrence]) -> Table:
    """One row an occurrence that was decided on."""
    made = table("Intended (UTC)", "What became of it", "Rollout", "Why")
    for item in items:
        made.add_row(
            cell(_utc(instant(item.intended_at))),
            word(documents.occurrence_state(item)),
            cell(item.rollout_id),
            cell(item.reason),
        )
    return made


def _next(item: schedule_pb2.Schedule) -> Text:
    if not item.enabled:
        return cell("disabled", "yellow")
    return cell(item.next.local if item.HasField("next") else "none", "" if item.HasField("next") else "dim")


def _last(item: schedule_pb2.Schedule) -> Text:
    if not item.HasField("last"):
        return cell("")
    return cell(f"{_utc(instant(item.last.intended_at))} UTC ").append_text(word(documents.occurrence_state(item.last)))


def _utc(at: datetime | None) -> str:
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")
