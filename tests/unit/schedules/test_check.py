"""What is wrong with a schedule document: everything, each in its place, with what to write instead."""

from __future__ import annotations

import pytest

from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.schedules.check import check
from unit.schedules.documents import NOW, document


def errors(**fields: object) -> tuple[SpecIssue, ...]:
    found = check(document(**fields), now=NOW)
    assert (found.spec is None) == bool(found.errors)
    return found.errors


def only(found: tuple[SpecIssue, ...]) -> SpecIssue:
    assert len(found) == 1, found
    return found[0]


def test_a_good_document_has_no_issues() -> None:
    found = check(document(), now=NOW)
    assert (found.errors, found.warnings) == ((), ())


@pytest.mark.parametrize(
    ("fields", "path", "code", "message"),
    [
        ({"when": {}}, "/when", IssueCode.MISSING_FIELD, "says nothing"),
        (
            {"when": {"once": "2027-04-01T00:00", "cron": "@daily"}},
            "/when/cron",
            IssueCode.CONFLICTING_FIELDS,
            "`once` and `cron` stand together",
        ),
        ({"when": {"cron": "0 25 * * *"}}, "/when/cron", IssueCode.BAD_CRON, "at character 3: the hour"),
        ({"when": {"cron": "0 0 30 2 *"}}, "/when/cron", IssueCode.NEVER_FIRES, "never fires"),
        ({"when": {"once": "tomorrow"}}, "/when/once", IssueCode.BAD_TIME, "is no local time"),
        ({"when": {"once": "2027-04-31T00:00"}}, "/when/once", IssueCode.BAD_TIME, "the calendar or the clock"),
        ({"when": {"once": "2027-04-01T00:00Z"}}, "/when/once", IssueCode.BAD_TIME, "is no local time"),
        ({"when": {"interval": "5s"}}, "/when/interval", IssueCode.OUT_OF_RANGE, "at least 10s"),
        ({"when": {"interval": "soon"}}, "/when/interval", IssueCode.BAD_VALUE, "is no duration"),
        ({"timeZone": "Europe/Berlni"}, "/timeZone", IssueCode.UNKNOWN_ZONE, "`Europe/Berlni` is no time zone"),
        ({"from": "2027-99-01T00:00"}, "/from", IssueCode.BAD_TIME, "is no local time"),
        (
            {"from": "9999-12-31T23:59", "timeZone": "America/Denver"},
            "/from",
            IssueCode.BAD_TIME,
            "outside the calendar",
        ),
        (
            {"from": "2027-05-02T00:00", "until": "2027-05-01T00:00"},
            "/until",
            IssueCode.BAD_TIME,
            "comes before `from`",
        ),
        ({"until": "2027-03-01T20:00"}, "/when/cron", IssueCode.NEVER_FIRES, "none of its times lies between"),
        (
            {"when": {"once": "2027-03-28T02:30"}, "gap": "SKIP"},
            "/when/once",
            IssueCode.NEVER_FIRES,
            "does not exist in Europe/Berlin",
        ),
        ({"wen": 1}, "/wen", IssueCode.UNKNOWN_FIELD, "`wen` is not a field"),
        ({"gap": "NEXT"}, "/gap", IssueCode.BAD_VALUE, "is not accepted"),
        ({"catchUpLimit": 0}, "/catchUpLimit", IssueCode.OUT_OF_RANGE, "at least 1"),
        ({"name": ""}, "/name", IssueCode.OUT_OF_RANGE, "at least 1"),
        ({"rollout": {"task": "tea"}}, "/rollout", IssueCode.MISSING_FIELD, "`target` is missing"),
    ],
)
def test_what_is_wrong_is_named_in_its_place(
    fields: dict[str, object], path: str, code: IssueCode, message: str
) -> None:
    found = only(errors(**fields))
    assert (found.path, found.code, message in found.message) == (path, code, True), found


@pytest.mark.parametrize(
    ("start", "stop", "path", "code", "message"),
    [
        ("2027-04-02T00:00", "2027-04-01T00:00", "/when/window/stop", IssueCode.BAD_WINDOW, "comes before its start"),
        ("2027-04-02T00:00", "2027-04-02T00:00", "/when/window/stop", IssueCode.BAD_WINDOW, "is its start"),
        ("0 22 * * *", "0 0 31 2 *", "/when/window/stop", IssueCode.NEVER_FIRES, "never fires"),
        ("0 22 * * *", "0 22 * * *", "/when/window/stop", IssueCode.BAD_WINDOW, "opens and closes at the same times"),
        ("0 0 * * 0", "0 0 * * 7", "/when/window/stop", IssueCode.BAD_WINDOW, "opens and closes at the same times"),
        ("0 22 * * *", "2027-04-02T00:00", "/when/window", IssueCode.BAD_WINDOW, "do not belong together"),
        ("2027-03-28T02:10", "2027-03-28T02:40", "/when/window", IssueCode.BAD_WINDOW, "closes at the same instant"),
    ],
)
def test_a_window_that_is_never_open_is_refused(
    start: str, stop: str, path: str, code: IssueCode, message: str
) -> None:
    found = only(errors(when={"window": {"start": start, "stop": stop}}))
    assert (found.path, found.code, message in found.message) == (path, code, True), found


def test_everything_is_said_at_once_in_the_order_of_the_document() -> None:
    found = errors(when={"cron": "x * * * *", "interval": "1s"}, timeZone="Mars", until="never")
    assert [each.path for each in found] == ["/when/cron", "/when/interval", "/when/interval", "/timeZone", "/until"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"when": {"once": "2026-12-24T18:00"}}, "/when/once"),
        ({"until": "2027-02-01T00:00"}, "/until"),
        ({"when": {"window": {"start": "2026-12-24T18:00", "stop": "2026-12-24T20:00"}}}, "/when/window"),
    ],
)
def test_what_lies_in_the_past_is_a_warning(fields: dict[str, object], path: str) -> None:
    found = check(document(**fields), now=NOW)
    assert (found.errors, [(each.path, each.code) for each in found.warnings]) == ((), [(path, IssueCode.NEVER_FIRES)])


def test_a_jitter_as_long_as_the_time_between_is_a_warning() -> None:
    found = check(document(when={"interval": "10m"}, jitter="10m"), now=NOW)
    assert [each.path for each in found.warnings] == ["/jitter"]


def test_what_is_no_json_is_said() -> None:
    assert only(check("{", now=NOW).errors).code is IssueCode.BAD_JSON
