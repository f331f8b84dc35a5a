"""Words of the engine's messages."""

from __future__ import annotations

import pytest

from droidfleet_agent.engine.messages import counted, seen_on
from droidfleet_shared.protocol.selector import Selector
from support.screens import node, screen

SHOP = screen(
    node("Green tea", (0, 0, 400, 100), resource_id="a:id/product_title"),
    node("", (0, 100, 400, 200), description="Favourites"),
)


def test_one_of_a_thing_is_counted_in_the_singular() -> None:
    assert [counted(number, "round") for number in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"text": "green tee"}, 'Alike on the screen: "Green tea".'),
        ({"text": "Favourites"}, 'Alike on the screen: "Favourites" (a description).'),
        ({"description": "Green tea"}, 'Alike on the screen: "Green tea" (a text).'),
        ({"resourceId": "product_titel"}, 'Ids alike on the screen: "product_title".'),
        ({"resourceId": "zzz"}, 'On the screen: "Green tea", "Favourites".'),
        ({"enabled": False}, 'On the screen: "Green tea", "Favourites".'),
    ],
)
def test_what_is_alike_is_named_with_the_field_that_it_stands_in(wanted: dict[str, object], sentence: str) -> None:
    assert seen_on(SHOP, Selector.model_validate(wanted)) == sentence
