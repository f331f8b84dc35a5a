"""What is to come of a schedule, for people and for the timer: when occurrences begin, and what is special. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice
from zoneinfo import ZoneInfo

from droidfleet_controller.rollouts.amounts import duration_text
from droidfleet_controller.schedules import zones
from droidfleet_controller.schedules.cron import MACROS
from droidfleet_controller.schedules.occurrences import Timed, Timetable
from droidfleet_controller.schedules.schedule import Planned
from droidfleet_controller.schedules.spec import Fold, Gap, ScheduleSpec

PREVIEWED = 10
"""Occurrences, when nobody asks for another number."""

_MILLISECOND = timedelta(milliseconds=1)
_HASHED_BYTES = 8


def begin_at(schedule_id: str, timed: Timed, jitter: timedelta) -> datetime:
    """When an occurrence begins: up to ``jitter`` later than intended, always as much for the same one, and always
    before its window closes."""
    room = jitter if timed.stop_at is None else min(jitter, timed.stop_at - timed.at)
    steps = room // _MILLISECOND
    if steps == 0:
        return timed.at
    digest = sha256(f"{schedule_id} {timed.at.isoformat()}".encode()).digest()
    return timed.at + int.from_bytes(digest[:_HASHED_BYTES], "big") % steps * _MILLISECOND


def planned(timetable: Timetable, schedule_id: str, *, after: datetime, count: int) -> list[Planned]:
    """The next occurrences after an instant, clock changes flagged. ``schedule_id``: empty before it has one: then its
    jitter is not known."""
    jitter = timetable.spec.jitter if schedule_id else timedelta(0)
    before = after
    found: list[Planned] = []
    for each in islice(timetable.after(after), count):
        note = "; ".join([*_changes(before, each.at, timetable.zone), *_oddities(each, timetable)])
        begin = begin_at(schedule_id, each, jitter)
        found.append(Planned(at=each.at, begin_at=begin, stop_at=each.stop_at, note=note))
        before = each.at
    return found


def local_text(instant: datetime, where: ZoneInfo) -> str:
    """An instant on the clocks of a zone, as ``2027-03-28 03:00:00+02:00 CEST``."""
    there = instant.astimezone(where)
    return f"{there.isoformat(' ', 'seconds')} {there.tzname()}"


def when_text(spec: ScheduleSpec) -> str:
    """When it happens, for people: ``30 2 * * * in Europe/Berlin``."""
    when = spec.when
    if when.interval is not None:
        return f"every {duration_text(when.interval)}"
    if when.window is not None:
        text = f"from {when.window.start} to {when.window.stop}"
    elif when.cron is not None:
        cron = when.cron.strip()
        text = f"{cron} ({MACROS[cron.lower()]})" if cron.lower() in MACROS else cron
    else:
        text = f"once at {when.once}"
    return f"{text} in {spec.time_zone}"


def _changes(before: datetime, at: datetime, where: ZoneInfo) -> Iterator[str]:
    """Whether the clocks stand otherwise than at the occurrence before."""
    change = zones.offset(at, where) - zones.offset(before, where)
    if change:
        direction = "forward" if change > timedelta(0) else "back"
        yield f"clocks have gone {direction} by {duration_text(abs(change))}"


def _oddities(timed: Timed, timetable: Timetable) -> Iterator[str]:
    if timed.wanted is None:
        return
    where, wanted = timetable.zone, timed.wanted
    clock = f"{wanted:%H:%M}"
    if not zones.exists(wanted, where):
        yield f"{clock} does not exist on this day, so it begins when the clocks have changed"
    elif zones.exists_twice(wanted, where):
        first, _ = zones.instants(wanted, where, gap=Gap.SKIP, fold=Fold.BOTH)
        yield f"{clock} comes twice on this day; this is the {'first' if timed.at == first else 'second'}"
