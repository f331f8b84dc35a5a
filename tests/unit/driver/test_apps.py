"""Command lines about apps, and what Android prints to them. The outputs follow AOSP's sources, by release."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.driver.apps import (
    component_of,
    parse_launcher,
    parse_screen_state,
    raise_not_started,
    resolve_command,
    start_command,
    stop_command,
)
from droidfleet_agent.driver.port import ActionRefusedError, ScreenState

PACKAGE = "com.example.shop"


@given(st.text(max_size=30))
def test_nothing_but_a_name_becomes_part_of_a_command_line(text: str) -> None:
    for command in (resolve_command, stop_command, lambda name: start_command(name, "")):
        try:
            made = command(text)
        except ActionRefusedError:
            continue
        assert shlex.split(made).count(text) == 1
        assert not set(text) & set(" ;&|`$(){}<>\\\"'\n*?~#!")


@pytest.mark.parametrize("activity", [".Main; reboot", "a b", "$(reboot)", "x'", ""])
def test_an_activity_that_is_no_name_is_refused(activity: str) -> None:
    with pytest.raises(ActionRefusedError, match="APP_NOT_FOUND"):
        start_command(PACKAGE, component_of(PACKAGE, activity))


@pytest.mark.parametrize(
    ("activity", "component"),
    [
        (".Main", f"{PACKAGE}/{PACKAGE}.Main"),
        ("org.other.Main", f"{PACKAGE}/org.other.Main"),
        (".A$B", f"{PACKAGE}/{PACKAGE}.A$B"),
    ],
)
def test_an_activity_is_started_by_its_whole_name(activity: str, component: str) -> None:
    assert shlex.split(start_command(PACKAGE, component_of(PACKAGE, activity)))[-1] == component


@pytest.mark.parametrize(
    ("output", "component"),
    [
        (
            f"priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=false\n{PACKAGE}/.Main\n",
            f"{PACKAGE}/{PACKAGE}.Main",
        ),
        (f"{PACKAGE}/org.other.Start", f"{PACKAGE}/org.other.Start"),
        ("android/com.android.internal.app.ResolverActivity", ""),
        ("No activity found", ""),
        ("Unknown command: resolve-activity", ""),
        (f"{PACKAGE}/.Main; reboot", ""),
        ("", ""),
    ],
)
def test_a_launcher_activity_is_only_the_apps_own(output: str, component: str) -> None:
    assert parse_launcher(output, PACKAGE) == component


@pytest.mark.parametrize(
    "output",
    [
        f"Starting: Intent {{ cmp={PACKAGE}/.Main }}",
        (
            f"Starting: Intent {{ cmp={PACKAGE}/.Main }}\n"
            "Warning: Activity not started, its current task has been brought to the front"
        ),
        "  bash arg: -p\nEvents injected: 1\n## Network stats: elapsed time=12ms",
    ],
)
def test_a_started_app_is_no_error(output: str) -> None:
    raise_not_started(output, PACKAGE)


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (f"Error type 3\nError: Activity class {{{PACKAGE}/.X}} does not exist.", "APP_NOT_FOUND"),
        ("** No activities found to run, monkey aborted.", "APP_NOT_FOUND"),
        ("Error: Activity not started, unable to resolve Intent { act=x }", "APP_NOT_FOUND"),
        (
            "Exception occurred while executing:\njava.lang.SecurityException: Permission Denial: starting Intent",
            "APP_NOT_FOUND",
        ),
        ("Error: Activity not started, voice control not allowed for: Intent { }", "ACTION_REFUSED"),
    ],
)
def test_an_app_that_was_not_started_is_refused(output: str, code: str) -> None:
    with pytest.raises(ActionRefusedError) as refused:
        raise_not_started(output, PACKAGE)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("output", "state"),
    [
        (
            "mWakefulness=Awake\n  KeyguardServiceDelegate\n    showing=false\n    secure=true",
            ScreenState(on=True, locked=False, secure=True),
        ),
        (
            "mWakefulness=Asleep\n  mIsShowing=true\n  KeyguardServiceDelegate\n    showing=true\n    secure=false",
            ScreenState(on=False, locked=True, secure=False),
        ),
        ("mWakefulness=Dozing\nmShowingLockscreen=true", ScreenState(on=False, locked=True, secure=False)),
        ("Display Power: state=ON\nshowing=true\n deviceLocked=1", ScreenState(on=True, locked=True, secure=True)),
        ("mAwake=true showing=false", ScreenState(on=True, locked=False, secure=False)),
    ],
)
def test_the_state_of_the_screen_is_read_from_old_and_new_releases(output: str, state: ScreenState) -> None:
    assert parse_screen_state(output) == state


def test_an_output_that_says_nothing_is_no_state() -> None:
    assert parse_screen_state("Can't find service: power") is None
