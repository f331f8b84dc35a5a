"""What RapidOCR and OpenCV see on screens of the virtual phone."""

from __future__ import annotations

import io
from functools import lru_cache

import pytest
from PIL import Image

from droidfleet_agent.vision import load_vision
from droidfleet_agent.vision.port import UnreadablePictureError
from unit.virtual_phone.phones import Hand, shipped


@lru_cache
def screen(scenario: str = "game") -> bytes:
    return shipped(scenario).phone.screenshot(media="JPEG")


def cut(picture: bytes, box: tuple[int, int, int, int], *, scale: float = 1.0) -> bytes:
    part = Image.open(io.BytesIO(picture)).crop(box)
    part = part.resize((round(part.width * scale), round(part.height * scale)))
    out = io.BytesIO()
    part.save(out, format="PNG")
    return out.getvalue()


def encoded(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, format="PNG")
    return out.getvalue()


def where(hand: Hand, text: str) -> tuple[int, int, int, int]:
    roots = hand.phone._roots()
    [found] = [node for root in roots for node in root.walk() if node.text == text]
    bounds = found.visible_bounds
    return bounds.left, bounds.top, bounds.right, bounds.bottom


def test_every_label_of_a_drawn_screen_is_read_where_it_stands() -> None:
    hand = shipped("game")
    read = {each.text: each.bounds for each in load_vision().texts(hand.phone.screenshot(media="JPEG"))}

    for label in ("Tower Game", "Start game", "High scores"):
        left, top, right, bottom = where(hand, label)
        x, y = read[label].center
        assert left <= x < right
        assert top <= y < bottom


def test_a_picture_without_texts_reads_as_nothing() -> None:
    assert load_vision().texts(encoded(Image.new("RGB", (400, 300), "white"))) == ()


@pytest.mark.parametrize("scale", [0.6, 0.75, 1.0, 1.4, 1.8])
def test_a_part_of_the_screen_is_found_once_in_whatever_size_it_was_cut(scale: float) -> None:
    hand = shipped("game")
    box = where(hand, "Start game")
    picture = hand.phone.screenshot(media="JPEG")

    [found] = load_vision().find(picture, cut(picture, box, scale=scale), threshold=0.9)

    assert abs(found.bounds.center[0] - (box[0] + box[2]) // 2) <= 6
    assert abs(found.bounds.center[1] - (box[1] + box[3]) // 2) <= 6


def test_what_stands_there_twice_is_found_twice() -> None:
    hand = shipped("game")
    box = where(hand, "Start game")
    picture = Image.open(io.BytesIO(hand.phone.screenshot(media="PNG"))).convert("RGB")
    wanted = cut(encoded(picture), box)
    picture.paste(picture.crop(box), (box[0], 1800))

    assert len(load_vision().find(encoded(picture), wanted, threshold=0.9)) == 2


def test_what_is_not_on_the_screen_is_not_found() -> None:
    wanted = cut(screen("chat"), (30, 380, 300, 520))

    assert load_vision().find(screen(), wanted, threshold=0.9) == ()


def test_another_colour_is_not_the_same_picture() -> None:
    red = Image.new("RGB", (1080, 1200), "white")
    red.paste(Image.effect_noise((120, 120), 90).convert("RGB"), (300, 300))
    wanted = red.crop((300, 300, 420, 420))
    turned = wanted.point(lambda value: 255 - value)

    assert load_vision().find(encoded(red), encoded(turned), threshold=0.9) == ()


@pytest.mark.parametrize(
    "wanted", [Image.new("RGB", (100, 100), "teal"), Image.effect_noise((7, 90), 80)], ids=["of one colour", "too thin"]
)
def test_a_picture_that_would_be_found_anywhere_is_refused(wanted: Image.Image) -> None:
    with pytest.raises(UnreadablePictureError, match="PICTURE_TOO_PLAIN"):
        load_vision().find(screen(), encoded(wanted), threshold=0.9)


@pytest.mark.parametrize("data", [b"", b"no picture", b"\x89PNG\r\n\x1a\n broken"])
def test_bytes_that_are_no_picture_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadablePictureError, match="UNREADABLE_PICTURE"):
        load_vision().texts(data)
