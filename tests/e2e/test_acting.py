"""A phone is worked from the command line, step by step: under a lease of one's own, and without."""

from __future__ import annotations

import json

import pytest

from droidfleet_demo.fleet import Fleet, Phone
from support.commandline import Ran
from support.workplace import Workplace

pytestmark = pytest.mark.e2e


def taps(phone: Phone) -> list[dict[str, object]]:
    return [effect for effect in phone.effects() if effect.get("kind") == "tap"]


def test_a_search_is_done_by_hand_with_one_tap_each(fleet: Fleet, at_fleet: Workplace) -> None:
    phone = fleet.phones[0]
    before = len(taps(phone))

    def device(command: str, *words: str) -> Ran:
        return at_fleet.run("droidfleet", "device", command, phone.name, *words, within_s=60)

    leased = device("lease", "--ttl", "60")
    assert leased.code == 0, leased
    mine = ("--session", leased.out.strip())

    refused = device("tap", "Search Harbour Goods")
    assert refused.code == 4
    assert "DEVICE_BUSY" in refused.err
    assert "leased" in refused.err

    for ran in (
        device("tap", "Search Harbour Goods", *mine),
        device("type", "tea pot", "Search products", *mine),
        device("tap", "Submit query", *mine),
        device("scroll", "down", "--until", '{"text": "Ceramic tea pot 1.2 l"}', "--most", "10", *mine),
        device("release", *mine),
    ):
        assert ran.code == 0, ran

    read = json.dumps({"action": "EXTRACT_TEXT", "selector": {"text": "Ceramic tea pot 1.2 l"}, "outputField": "name"})
    found = device("step", read, "-o", "json")
    assert found.code == 0, found
    assert json.loads(found.out)["outputs"] == {"name": "Ceramic tea pot 1.2 l"}
    missed = device("tap", "--selector", '{"text": "no such thing"}', "--timeout", "1")
    assert missed.code == 1
    assert "TARGET_NOT_FOUND" in missed.err
    assert device("press", "volume_up").code == 0
    # The phone is shared with other tests: back to where they found it.
    assert device("open", "com.example.shop", "--afresh").code == 0
    touched = [str(target) for target in (effect["target"] for effect in taps(phone)[before:])]
    for label in ("Search Harbour Goods", "Submit query"):
        assert sum(label in target for target in touched) == 1, touched
