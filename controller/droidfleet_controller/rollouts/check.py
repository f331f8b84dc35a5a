"""What is wrong with a rollout document by itself: the rules that look at more than one field. Pure.

`documents` says what is wrong with its shape, `preflight` what is wrong with it in this fleet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.rollouts.spec import MAX_MEMBERS, RolloutSpec, Target, Wave, Window
from droidfleet_controller.rollouts.waves import sizes
from droidfleet_controller.schedules.cron import Cron, CronError, parse
from droidfleet_controller.schedules.zones import UnknownZoneError, zone
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.suggestions import nearest
from droidfleet_shared.protocol.wording import listed, name

INVALID_ROLLOUT = "INVALID_ROLLOUT"

MAX_CODE = 64
"""Characters of a failure code. Gates are shown with their codes, in each answer about a rollout."""

_ONE_TARGET = "Choose one of `devices`, `group` and `query`."


def rules(spec: RolloutSpec) -> Iterator[SpecIssue]:
    """What is wrong with a document whose shape is right."""
    yield from _target(spec.target)
    yield from _gates(spec.waves)
    rate = spec.rate_per_minute
    if rate is not None and not isinstance(rate, int) and rate.base > rate.limit:
        message = f"`base` ({rate.base}) is above `limit` ({rate.limit})"
        yield SpecIssue("/ratePerMinute/base", IssueCode.CONFLICTING_FIELDS, message, "Lower it, or raise the limit.")
    if spec.window is not None:
        yield from _window(spec.window)


def _target(target: Target) -> Iterator[SpecIssue]:
    given = [field for field in ("devices", "group", "query") if getattr(target, field) is not None]
    if not given:
        yield SpecIssue("/target", IssueCode.MISSING_FIELD, "`target` names nobody", _ONE_TARGET)
    if len(given) > 1:
        message = f"{listed([name(each) for each in given])} stand together; expected one of them"
        yield SpecIssue(f"/target/{given[1]}", IssueCode.CONFLICTING_FIELDS, message, _ONE_TARGET)
    seen: set[str] = set()
    for position, device in enumerate(target.devices or ()):
        if device in seen:
            yield SpecIssue(
                f"/target/devices/{position}",
                IssueCode.DUPLICATE_DEVICE,
                f"{name(device)} is listed twice",
                "Name each device once.",
            )
        seen.add(device)


def _gates(waves: Sequence[Wave]) -> Iterator[SpecIssue]:
    for position, wave in enumerate(waves):
        path = f"/waves/{position}/gate/maxFailuresByCode"
        for code in wave.gate.max_failures_by_code:
            if not 1 <= len(code) <= MAX_CODE:
                message = f"{name(code)} is no code of a failure: expected 1 to {MAX_CODE} characters"
                yield SpecIssue(path, IssueCode.BAD_VALUE, message, f"For example {name(StepCode.OUTCOME_UNKNOWN)}.")
                continue
            near = nearest(code.upper(), StepCode, cutoff=0.8)
            if near is not None and near != code:
                message = f"no failure has the code {name(code)}, so this limits nothing"
                yield SpecIssue(path, IssueCode.BAD_VALUE, message, f"Did you mean {name(near)}?")


def wave_issues(waves: Sequence[Wave], members: int) -> tuple[SpecIssue, ...]:
    """What is wrong with the sizes of waves over so many members; 0: it is not known how many there are."""
    if members:
        return sizes(waves, members).issues
    return sizes((*waves[:-1], Wave()), MAX_MEMBERS).issues


def _window(window: Window) -> Iterator[SpecIssue]:
    read: list[Cron] = []
    for field, expression in (("start", window.start), ("stop", window.stop)):
        try:
            read.append(parse(expression))
        except CronError as error:
            code = IssueCode.NEVER_FIRES if error.never else IssueCode.BAD_CRON
            yield SpecIssue(f"/window/{field}", code, error.told(expression), error.hint)
    try:
        zone(window.time_zone)
    except UnknownZoneError as error:
        yield SpecIssue("/window/timeZone", IssueCode.UNKNOWN_ZONE, error.problem, error.hint)
    if len(read) == 2 and read[0].same_times(read[1]):
        message = f"the window opens and closes at the same times ({name(window.stop)}), so it says nothing"
        yield SpecIssue("/window/stop", IssueCode.BAD_WINDOW, message, "Write when it closes, or leave it out.")
