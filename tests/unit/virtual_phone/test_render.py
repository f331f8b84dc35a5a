"""Screenshots are real pictures of what the tree says."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from PIL import Image

from droidfleet_agent.virtual_phone.facts import Media
from droidfleet_agent.virtual_phone.scenario.loader import shipped_scenarios
from unit.virtual_phone.phones import Hand, screen, shipped


def picture(hand: Hand, media: Media = "PNG", scale: float = 1.0) -> Image.Image:
    image = Image.open(io.BytesIO(hand.phone.screenshot(media=media, scale=scale)))
    image.load()
    return image


@pytest.mark.parametrize("media", ["PNG", "JPEG"])
def test_screenshot_is_encoded_as_asked_for(media: Media) -> None:
    image = picture(shipped("shop"), media)

    assert (image.format, image.size) == (media, (1080, 2400))


def test_screenshot_is_scaled() -> None:
    assert picture(shipped("shop"), scale=0.5).size == (540, 1200)


def test_screenshot_turns_with_the_phone() -> None:
    hand = shipped("shop")
    hand.phone.set_orientation("left")

    assert picture(hand).size == (2400, 1080)


@pytest.mark.parametrize("name", shipped_scenarios())
def test_shipped_screen_is_drawn_in_many_colours(name: str) -> None:
    colors = picture(shipped(name)).convert("RGB").getcolors(1_000_000)

    assert colors is not None
    assert len(colors) > 50


def test_sleeping_phone_is_black() -> None:
    hand = shipped("shop")
    hand.phone.sleep()

    assert picture(hand).convert("RGB").getextrema() == ((0, 0), (0, 0), (0, 0))


def test_coloured_area_is_drawn_where_the_tree_says() -> None:
    hand = screen({"type": "space", "height": 100, "background": "#ff0000", "description": "red"})
    box = hand.node(description="red").visible_bounds
    image = picture(hand).convert("RGB")

    assert image.getpixel(box.center) == (255, 0, 0)
    assert image.getpixel((box.center[0], box.bottom + 5)) != (255, 0, 0)


def test_switch_looks_different_when_it_is_on() -> None:
    hand = screen({"type": "switch", "text": "Wi-Fi", "bind": "on"}, variables={"on": False})
    off = picture(hand).tobytes()
    hand.tap(text="Wi-Fi")

    assert picture(hand).tobytes() != off


def test_toast_is_seen_for_a_while() -> None:
    hand = screen({"type": "button", "text": "A", "on_click": [{"toast": "Saved 🙂"}]})
    before = picture(hand).tobytes()
    hand.tap(text="A")
    during = picture(hand).tobytes()
    hand.wait(4)

    assert during != before
    assert picture(hand).tobytes() == before


def test_screen_below_a_dialog_is_drawn_darkened() -> None:
    hand = shipped("settings")
    hand.tap(text="Display")
    before = picture(hand).convert("RGB").getpixel((540, 1900))
    hand.tap(text="Screen timeout")
    after = picture(hand).convert("RGB").getpixel((540, 1900))
    assert isinstance(before, tuple)
    assert isinstance(after, tuple)

    assert sum(after) < sum(before)


@pytest.mark.parametrize(
    "widget",
    [
        {"type": "progress"},
        {"type": "progress", "value": 40},
        {"type": "slider", "bind": "n"},
        {"type": "radio", "text": "R", "checked": True},
        {"type": "checkbox", "text": "C", "checked": True},
        {"type": "field", "hint": "H", "multiline": True},
        {"type": "button", "text": "B", "style": "outlined", "enabled_when": "!n"},
        {"type": "icon", "icon": "nothing-known", "on_click": [{"toast": "x"}]},
        {"type": "image", "picture": "x", "corner": 8},
        {"type": "divider"},
        {"type": "text", "text": "a\nb\n\n中文 😀 Łódź", "lines": 2, "width": 60},
        {"type": "text", "text": "", "height": 0, "width": 0},
    ],
)
def test_every_kind_of_widget_is_drawn(widget: dict[str, object]) -> None:
    hand = screen(widget, variables={"n": 30})

    assert picture(hand).size == (1080, 2400)


def test_pillow_is_loaded_by_the_first_screenshot_only() -> None:
    program = (
        "import sys; import droidfleet_agent.virtual_phone.phone as p;"
        "import droidfleet_agent.virtual_phone.scenario.loader; print('PIL' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert out.stdout.strip() == "False"
