import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.protocol.pointers import DocumentOrder, Json, Place, pointer, resolve


@pytest.mark.parametrize(
    ("place", "written"),
    [((), ""), (("steps", 0, "id"), "/steps/0/id"), (("a/b~c",), "/a~1b~0c"), (("",), "/"), (("~1",), "/~01")],
)
def test_place_is_written_as_a_json_pointer(place: Place, written: str) -> None:
    assert pointer(place) == written


@given(st.text(), st.text())
def test_pointer_leads_back_to_any_key(outer: str, inner: str) -> None:
    assert resolve({outer: [0, {inner: "here"}]}, pointer((outer, 1, inner))) == "here"


@pytest.mark.parametrize("path", ["/b", "/a/2", "/a/x", "/a/0/0", "/a/-1"])
def test_pointer_to_nothing_is_a_lookup_error(path: str) -> None:
    with pytest.raises(LookupError):
        resolve({"a": [1, 2]}, path)


def test_places_sort_as_they_stand_in_the_document() -> None:
    document: Json = {"z": [{"b": 1, "a": 2}, 3], "y": 0}
    places: list[Place] = [(), ("z",), ("z", 0), ("z", 0, "b"), ("z", 0, "a"), ("z", 1), ("y",)]
    assert sorted([*places[3:], *places[:3]], key=DocumentOrder(document).key) == places
