"""What Android's commands print, on old and new releases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.driver.port import Display, Focus
from droidfleet_agent.driver.window_text import (
    parse_battery_percent,
    parse_display,
    parse_focus,
    parse_input_methods,
    parse_keyboard_shown,
)

SHOP = Focus("com.example.shop", "com.example.shop.ui.MainActivity")
POPUP = "  mCurrentFocus=Window{a5e u0 PopupWindow:c0ffee}\n"
SHADE = "  mCurrentFocus=Window{a5e u0 NotificationShade}\n"
NOTHING = "  mCurrentFocus=null\n"


@pytest.mark.parametrize(
    "text",
    [
        "  mCurrentFocus=Window{41b3a0e8 u0 com.example.shop/com.example.shop.ui.MainActivity}\n",
        "  mCurrentFocus=Window{41b3a0e8 com.example.shop/com.example.shop.ui.MainActivity paused=false}\n",
        "  mCurrentFocus=Window{8e2 u10 com.example.shop/.ui.MainActivity}\n",
        POPUP + "  mFocusedApp=ActivityRecord{1d2 u0 com.example.shop/.ui.MainActivity t42}\n",
        SHADE + "  mFocusedApp=ActivityRecord{1d2 u0 com.example.shop/.ui.MainActivity} t42}\n",
        NOTHING
        + "  mFocusedApp=AppWindowToken{9 token=Token{8 ActivityRecord{7 u0 com.example.shop/.ui.MainActivity t6}}}\n",
        "  mCurrentFocus=null\n  mCurrentFocus=Window{2 u0 com.example.shop/.ui.MainActivity}\n",
        "    mResumedActivity: ActivityRecord{5f3 u0 com.example.shop/.ui.MainActivity t12}\n",
        "    topResumedActivity=ActivityRecord{5f3 u0 com.example.shop/.ui.MainActivity t12}\n",
        "  ResumedActivity: ActivityRecord{5f3 u0 com.example.shop/.ui.MainActivity t12}\n",
        "  mFocusedActivity: ActivityRecord{5f3 u0 com.example.shop/.ui.MainActivity t12}\n",
    ],
)
def test_focus_is_read_from_every_release(text: str) -> None:
    assert parse_focus(text) == SHOP


def test_window_with_the_focus_goes_before_the_app_that_was_started_last() -> None:
    text = (
        "  mFocusedApp=ActivityRecord{1 u0 com.other/.Main t1}\n"
        "  mCurrentFocus=Window{2 u0 com.example.shop/.ui.MainActivity}\n"
    )
    assert parse_focus(text) == SHOP


@pytest.mark.parametrize(
    "text", ["", "  mCurrentFocus=null\n", "  mCurrentFocus=Window{1 u0 StatusBar}\n", "Can't find service: window"]
)
def test_no_focus_is_none(text: str) -> None:
    assert parse_focus(text) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  mShowRequested=true mShowExplicitlyRequested=true mShowForced=false mInputShown=true\n", True),
        ("  mInputShown=false\n  mIsInputViewShown=true\n", False),
        ("  mIsInputViewShown=true mStatusIcon=0\n", True),
        ("Can't find service: input_method", None),
    ],
)
def test_keyboard_is_shown_when_the_input_method_service_says_so(text: str, shown: bool | None) -> None:
    assert parse_keyboard_shown(text) is shown


@pytest.mark.parametrize(
    ("text", "display"),
    [
        ("Physical size: 1080x1920\n", Display(1080, 1920)),
        ("Physical size: 1080x1920\nOverride size: 720x1280\n", Display(720, 1280)),
        ("Error: no display", None),
    ],
)
def test_override_size_wins(text: str, display: Display | None) -> None:
    assert parse_display(text) == display


def test_keyboards_are_the_packages_of_the_listed_services() -> None:
    text = (
        "com.google.android.inputmethod.latin/com.android.inputmethod.latin.LatinIME\r\ncom.kb/.Ime\n\nError type 3\n"
    )
    assert parse_input_methods(text) == {"com.google.android.inputmethod.latin", "com.kb"}


@pytest.mark.parametrize(
    ("text", "percent"),
    [("  AC powered: false\n  level: 85\n  scale: 100\n", 85), ("  Max charging level: 3\n", None), ("", None)],
)
def test_battery_percent_is_the_level(text: str, percent: int | None) -> None:
    assert parse_battery_percent(text) == percent


@given(st.text())
def test_no_output_makes_a_parser_raise(text: str) -> None:
    for parse in (parse_focus, parse_keyboard_shown, parse_display, parse_input_methods, parse_battery_percent):
        parse(text)
