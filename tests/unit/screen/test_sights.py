"""Which of what was seen on the picture a visual selector means."""

from __future__ import annotations

import pytest

from droidfleet_shared.protocol.selector import ImageSelector, PointSelector, Selector
from droidfleet_shared.screen.matching import Ambiguous, Matched, Matcher, NotFound
from droidfleet_shared.screen.node import Bounds, Node, Screen
from droidfleet_shared.screen.sights import Sighting, Sights
from droidfleet_shared.screen.touch import touch_point

DISPLAY = Bounds(0, 0, 1000, 2000)
WINDOW = Bounds(0, 100, 1000, 2000)
ICON = ImageSelector(artifact="icon")


def screen(*, keyboard: Bounds | None = None, over: tuple[Bounds, ...] = (), root: bool = True) -> Screen:
    window = Node("", "", "", "android.view.SurfaceView", "com.game", "", WINDOW, 0)
    return Screen(window if root else None, "com.game", "", DISPLAY, 0, keyboard, over)


def read(text: str, *, top: int = 500, left: int = 100) -> Sighting:
    return Sighting(Bounds(left, top, left + 200, top + 50), 0.99, text)


def looking(*texts: Sighting, on: Screen | None = None, icons: tuple[Sighting, ...] = ()) -> Matcher:
    return Matcher(on or screen(), Sights(texts, {ICON: icons}))


@pytest.mark.parametrize("seen", ["Start game", "Startgame", " Start  game ", "Start\u00a0game"])
def test_a_read_text_is_compared_without_its_white_space(seen: str) -> None:
    outcome = looking(read(seen)).match(Selector(ocr_text="Start game"), touch=True)

    assert isinstance(outcome, Matched)
    assert outcome.visible_bounds == Bounds(100, 500, 300, 550)


@pytest.mark.parametrize("seen", ["Start game now", "start game", "Start", ""])
def test_another_text_is_not_taken_for_it(seen: str) -> None:
    assert isinstance(looking(read(seen)).match(Selector(ocr_text="Start game"), touch=True), NotFound)


def test_a_text_that_is_read_twice_is_ambiguous_until_the_author_chooses() -> None:
    matcher = looking(read("Build", top=900), read("Build", top=700))

    assert isinstance(matcher.match(Selector(ocr_text="Build"), touch=True), Ambiguous)
    chosen = matcher.match(Selector(ocr_text="Build", index=0), touch=True)
    assert isinstance(chosen, Matched)
    assert chosen.visible_bounds.top == 700


@pytest.mark.parametrize(
    "hidden",
    [
        {"keyboard": Bounds(0, 450, 1000, 2000)},
        {"over": (Bounds(0, 450, 1000, 700),)},
        {"root": False},
    ],
    ids=["under the keyboard", "under another window", "without a window"],
)
def test_what_lies_elsewhere_than_in_the_window_does_not_count(hidden: dict[str, object]) -> None:
    on = screen(**hidden)  # type: ignore[arg-type]  # the three of its fields

    assert isinstance(looking(read("Start"), on=on).match(Selector(ocr_text="Start"), touch=True), NotFound)


def test_the_status_bar_does_not_count() -> None:
    assert not looking(read("12:30", top=20)).any_visible(Selector(ocr_text="12:30"))


def test_a_found_picture_is_touched_in_its_middle() -> None:
    matcher = looking(icons=(read("", top=800),))
    outcome = matcher.match(Selector(image=ICON), touch=True)

    assert isinstance(outcome, Matched)
    assert touch_point(matcher, outcome.node) == (200, 825)


def test_a_picture_looked_for_with_another_threshold_is_another_question() -> None:
    matcher = looking(icons=(read("", top=800),))

    assert not matcher.any_visible(Selector(image=ImageSelector(artifact="icon", threshold=80)))


@pytest.mark.parametrize(("percent", "pixel"), [((0, 0), (0, 0)), ((50, 25), (500, 500)), ((100, 100), (999, 1999))])
def test_a_point_is_a_share_of_the_display_and_never_beyond_it(
    percent: tuple[int, int], pixel: tuple[int, int]
) -> None:
    x, y = percent
    point = Selector(point=PointSelector(x_percent=x, y_percent=y), allow_point=True)
    matcher = looking()
    outcome = matcher.match(point, touch=True)

    assert isinstance(outcome, Matched)
    assert touch_point(matcher, outcome.node) == pixel
