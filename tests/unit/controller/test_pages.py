"""Page sizes and tokens."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.api import pages
from droidfleet_shared.errors import InvalidInputError


@given(place=st.text(min_size=1))
def test_a_text_token_leads_back_to_its_place(place: str) -> None:
    assert pages.text_place(pages.encode(place, scope="s"), scope="s") == place


@given(place=st.integers(1, 2**63 - 1))
def test_a_number_token_leads_back_to_its_place(place: int) -> None:
    assert pages.number_place(pages.encode(place, scope="s"), scope="s") == place


def test_no_token_is_the_first_page() -> None:
    assert pages.text_place("", scope="s") == ""
    assert pages.number_place("", scope="s") is None


@given(token=st.text(min_size=1))
def test_anything_else_is_refused(token: str) -> None:
    for read in (pages.text_place, pages.number_place):
        with pytest.raises(InvalidInputError) as caught:
            read(token, scope="s")
        assert caught.value.code == "BAD_PAGE_TOKEN"


@pytest.mark.parametrize("place", [-1, 0, 2**63, 1.5, True, None, "7", [1]])
def test_a_number_token_of_another_kind_is_refused(place: object) -> None:
    mark = json.loads(base64.urlsafe_b64decode(pages.encode(1, scope="s") + "=="))[0]
    token = base64.urlsafe_b64encode(json.dumps([mark, place]).encode()).decode().rstrip("=")
    with pytest.raises(InvalidInputError):
        pages.number_place(token, scope="s")


def test_a_token_of_another_filter_is_refused() -> None:
    token = pages.encode("phone-07", scope="devices ONLINE")
    with pytest.raises(InvalidInputError):
        pages.text_place(token, scope="devices OFFLINE")


@pytest.mark.parametrize(("asked", "given"), [(0, 100), (1, 1), (1_000, 1_000)])
def test_a_size_is_taken_or_defaulted(asked: int, given: int) -> None:
    assert pages.size(asked) == given


@pytest.mark.parametrize("asked", [-1, 1_001, 2**31 - 1])
def test_a_size_out_of_range_is_refused(asked: int) -> None:
    with pytest.raises(InvalidInputError):
        pages.size(asked)
