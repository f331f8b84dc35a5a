"""A purchase is recorded on one phone, by commands, and then bought again by the recorded task on another phone."""

from __future__ import annotations

import pytest

from droidfleet_demo.checks import ORDER_PLACED
from droidfleet_demo.fleet import Fleet, Phone
from droidfleet_shared.protocol.validate import validate_template
from support.workplace import Workplace

pytestmark = pytest.mark.e2e

PURCHASE = b"""
"Search Harbour Goods"
t "Search products" tea pot
"Submit query"
"Ceramic tea pot 1.2 l"
"Add to cart"
"View cart"
"Proceed to checkout"
t "Full name" Ada Lovelace
t "Street and number" 12 St James's Square
t "City" London
"I accept the terms of sale"
"Place order"
x "order_number" orderNumber
"Continue shopping"
q
"""


def orders(phone: Phone) -> list[dict[str, object]]:
    return [effect for effect in phone.effects() if effect.get("kind") == ORDER_PLACED]


def test_a_recorded_purchase_is_one_order_on_each_phone(fleet: Fleet, at_fleet: Workplace) -> None:
    first, second = fleet.phones
    before = [len(orders(phone)) for phone in fleet.phones]
    recorded = at_fleet.run(
        "droidfleet", "record", "--device", first.name, "--out", "bought.json", stdin=PURCHASE, within_s=180
    )
    assert recorded.code == 0, recorded
    text = (at_fleet.folder / "bought.json").read_text()
    assert validate_template(text).valid
    ran = at_fleet.run("droidfleet", "task", "run", "bought.json", "-d", second.name, "--watch", within_s=120)
    assert ran.code == 0, (ran, text)
    assert "orderNumber" in ran.out
    after = [len(orders(phone)) for phone in fleet.phones]
    assert [now - then for then, now in zip(before, after, strict=True)] == [1, 1]
