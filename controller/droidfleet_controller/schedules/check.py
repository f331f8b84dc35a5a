"""What is wrong with a schedule document, or worth a look: everything, each in its place. Pure.

Its rollout is looked at by `rollouts`, which knows the tasks and the phones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

from droidfleet_controller.rollouts.amounts import duration_text
from droidfleet_controller.rollouts.documents import in_order, read
from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.schedules import times, zones
from droidfleet_controller.schedules.cron import CronError, parse
from droidfleet_controller.schedules.occurrences import Timetable
from droidfleet_controller.schedules.spec import MIN_INTERVAL, Gap, ScheduleSpec, When
from droidfleet_controller.schedules.times import TimeError
from droidfleet_controller.schedules.zones import UnknownZoneError
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.wording import listed, name, shown

INVALID_SCHEDULE = "INVALID_SCHEDULE"

_ONE = "Choose one of `once`, `cron`, `interval` and `window`."


@dataclass(frozen=True, slots=True)
class CheckedSchedule:
    """What was read. ``spec`` is there exactly when ``errors`` is empty; warnings stop nothing."""

    spec: ScheduleSpec | None
    errors: tuple[SpecIssue, ...] = ()
    warnings: tuple[SpecIssue, ...] = ()
    document: Json = None


def check(text: str, *, now: datetime, anchor: datetime | None = None) -> CheckedSchedule:
    """Reads and checks a document. Never raises for bad input. ``anchor``: see `Timetable`; left out: now."""
    found = read(text, ScheduleSpec)
    if found.model is None:
        return CheckedSchedule(None, found.issues, (), found.document)
    spec = found.model
    errors = list(_errors(spec))
    warnings: list[SpecIssue] = []
    if not errors:
        timetable = Timetable(spec, anchor=anchor or now)
        errors, warnings = _outcome(timetable, now)
    order = [tuple(in_order(each, found.document)) for each in (errors, warnings)]
    return CheckedSchedule(None if errors else spec, order[0], order[1], found.document)


def _errors(spec: ScheduleSpec) -> Iterator[SpecIssue]:
    """What is wrong with single fields."""
    yield from _when(spec.when)
    where = None
    try:
        where = zones.zone(spec.time_zone)
    except UnknownZoneError as error:
        yield SpecIssue("/timeZone", IssueCode.UNKNOWN_ZONE, error.problem, error.hint)
    bounds: dict[str, datetime] = {}
    for field, text in (("from", spec.from_), ("until", spec.until)):
        try:
            if text is not None:
                bounds[field] = times.read(text)
                times.first_instant(text, where or ZoneInfo("UTC"))
        except TimeError as error:
            yield SpecIssue(f"/{field}", IssueCode.BAD_TIME, error.problem, error.hint)
    if len(bounds) == 2 and bounds["from"] > bounds["until"]:
        message = f"`until` ({spec.until}) comes before `from` ({spec.from_}), so nothing ever happens"
        yield SpecIssue("/until", IssueCode.BAD_TIME, message, "Exchange them, or leave one out.")


def _when(when: When) -> Iterator[SpecIssue]:
    given = [field for field in ("once", "cron", "interval", "window") if getattr(when, field) is not None]
    if not given:
        yield SpecIssue("/when", IssueCode.MISSING_FIELD, "`when` says nothing", _ONE)
    if len(given) > 1:
        message = f"{listed([name(each) for each in given])} stand together; expected one of them"
        yield SpecIssue(f"/when/{given[1]}", IssueCode.CONFLICTING_FIELDS, message, _ONE)
    if when.once is not None:
        yield from _time("/when/once", when.once)
    if when.cron is not None:
        yield from _cron("/when/cron", when.cron)
    if when.interval is not None and when.interval < MIN_INTERVAL:
        message = f"expected at least {MIN_INTERVAL.seconds}s between two occurrences"
        yield SpecIssue("/when/interval", IssueCode.OUT_OF_RANGE, message, 'For example `"10m"`.')
    if when.window is not None:
        yield from _window(when.window.start, when.window.stop)


def _outcome(timetable: Timetable, now: datetime) -> tuple[list[SpecIssue], list[SpecIssue]]:
    """What the whole leads to: errors, and warnings."""
    coming = list(islice(timetable.after(now), 2))
    if not coming:
        return _nothing(timetable, now)
    jitter = timetable.spec.jitter
    if len(coming) == 2 and jitter >= (distance := coming[1].at - coming[0].at):
        message = (
            f"`jitter` ({duration_text(jitter)}) is no shorter than the time between the next two occurrences "
            f"({duration_text(distance)}); they begin in their order all the same"
        )
        return [], [SpecIssue("/jitter", IssueCode.OUT_OF_RANGE, message, "Shorten it.")]
    return [], []


def _nothing(timetable: Timetable, now: datetime) -> tuple[list[SpecIssue], list[SpecIssue]]:
    """Nothing is to come: it has passed, or it never happens."""
    spec = timetable.spec
    field, subject = _what(spec.when)
    if timetable.has_ended(now):
        path = "/until" if timetable.last is not None and timetable.last <= now else field
        return [], [SpecIssue(path, IssueCode.NEVER_FIRES, "it lies in the past, so nothing will happen", "Move it.")]
    if spec.from_ is not None or spec.until is not None:
        message = f"{subject} lies between `from` (or now) and `until`, so nothing ever happens"
        return [SpecIssue(field, IssueCode.NEVER_FIRES, message, "Widen them, or leave them out.")], []
    if spec.when.window is not None:
        message = "whenever the window opens it closes at the same instant, so it is never open"
        return [SpecIssue(field, IssueCode.BAD_WINDOW, message, "Write a later stop.")], []
    message = f"this time does not exist in {spec.time_zone}: clocks go forward over it, and `gap` is `{spec.gap}`"
    hint = f'Choose another time, or `"gap": "{Gap.NEXT_VALID}"`.'
    return [SpecIssue(field, IssueCode.NEVER_FIRES, message, hint)], []


def _what(when: When) -> tuple[str, str]:
    """Where it stands what happens when, and that none of it does, as a subject."""
    if when.once is not None:
        return "/when/once", "its time never"
    if when.cron is not None:
        return "/when/cron", "none of its times"
    if when.interval is not None:
        return "/when/interval", "none of its times"
    return "/when/window", "no opening"


def _window(start: str, stop: str) -> Iterator[SpecIssue]:
    if times.is_meant(start) != times.is_meant(stop):
        message = f"`start` is {_kind(start)}, and `stop` is {_kind(stop)}, so they do not belong together"
        hint = "Write two cron expressions (it opens again and again), or two local times (once)."
        yield SpecIssue("/when/window", IssueCode.BAD_WINDOW, message, hint)
        return
    look = _time if times.is_meant(start) else _cron
    problems = [*look("/when/window/start", start), *look("/when/window/stop", stop)]
    yield from problems
    if problems:
        return
    if times.is_meant(start):
        begin, end = times.read(start), times.read(stop)
        if begin >= end:
            how = "is its start" if begin == end else f"comes before its start ({start})"
            hint = "Exchange them, or write a later stop."
            yield SpecIssue("/when/window/stop", IssueCode.BAD_WINDOW, f"the window's stop ({stop}) {how}", hint)
    elif parse(start).same_times(parse(stop)):
        message = f"the window opens and closes at the same times ({shown(stop)}), so it is never open"
        yield SpecIssue("/when/window/stop", IssueCode.BAD_WINDOW, message, "Write when it closes: `0 6 * * *`.")


def _kind(text: str) -> str:
    return "a local time" if times.is_meant(text) else "a cron expression"


def _time(path: str, text: str) -> Iterator[SpecIssue]:
    try:
        times.read(text)
    except TimeError as error:
        yield SpecIssue(path, IssueCode.BAD_TIME, error.problem, error.hint)


def _cron(path: str, expression: str) -> Iterator[SpecIssue]:
    try:
        parse(expression)
    except CronError as error:
        code = IssueCode.NEVER_FIRES if error.never else IssueCode.BAD_CRON
        yield SpecIssue(path, code, error.told(expression), error.hint)
