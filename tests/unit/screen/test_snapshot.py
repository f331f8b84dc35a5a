"""A snapshot answers as the screen that it was taken of."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from droidfleet_shared.screen.matching import Matched, Matcher
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.snapshot import Snapshot, snapshot_of
from droidfleet_shared.screen.suggest import Suggester
from support.dumps import DUMPS
from support.screens import dump, field, node, screen, screen_of, window


def sent(snapshot: Snapshot) -> Snapshot:
    return Snapshot.model_validate_json(snapshot.model_dump_json(by_alias=True))


@pytest.mark.parametrize("file", DUMPS, ids=lambda file: file.name)
def test_every_offered_selector_of_a_real_screen_names_the_same_place_on_its_snapshot(file: Path) -> None:
    seen = screen_of(file.read_text())
    again = sent(snapshot_of(seen)).matcher()
    suggester = Suggester(Matcher(seen))
    root = seen.root
    assert root is not None
    offered = 0
    for each in root.walk():
        for suggestion in suggester.suggest(each).offered:
            outcome = again.match(suggestion.selector, touch=False)
            assert isinstance(outcome, Matched), suggestion
            assert outcome.node.bounds == each.bounds
            offered += 1
    assert offered


def test_a_snapshot_holds_everything_that_a_look_decides_on() -> None:
    seen = screen_of(dump(window(node("Send", (0, 0, 100, 50), clickable=True)), rotation=1))
    again = sent(snapshot_of(seen)).screen()
    assert (again.package, again.activity, again.display, again.rotation) == (
        seen.package,
        seen.activity,
        seen.display,
        seen.rotation,
    )
    assert again.root is not None
    assert [each.text for each in again.root.walk()] == ["", "Send"]


def test_keyboard_and_windows_over_the_active_one_are_kept() -> None:
    seen = screen(node("a", (0, 0, 10, 10)))
    changed = snapshot_of(seen).model_copy(update={"keyboard": (0, 500, 100, 900), "over": ((1, 2, 3, 4),)})
    again = sent(changed).screen()
    assert again.keyboard == Bounds(0, 500, 100, 900)
    assert again.over == (Bounds(1, 2, 3, 4),)


def test_what_a_password_field_holds_is_not_in_a_snapshot() -> None:
    secret = f"s3cret-{Random(1).randrange(10**9)}"
    filled = field((0, 0, 100, 50), password=True)
    filled.text = secret
    empty = field((0, 60, 100, 110), password=True)
    empty.text = empty.hint = "Password"
    taken = snapshot_of(screen(filled, empty))
    assert secret not in taken.model_dump_json()
    assert "Password" in taken.window


def test_a_phone_without_an_application_in_front_has_a_snapshot_without_a_window() -> None:
    empty = screen_of("<hierarchy rotation='0'></hierarchy>")
    again = sent(snapshot_of(empty))
    assert again.window == ""
    assert again.screen().root is None
