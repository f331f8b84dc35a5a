"""JSON Pointers (RFC 6901): how an issue says where in a document something is."""

from __future__ import annotations

from collections.abc import Sequence

from droidfleet_shared.protocol.jsonscan import Json

Place = tuple[str | int, ...]
"""A path as keys and list positions, from the document's root."""


def pointer(place: Sequence[str | int]) -> str:
    """The place as a JSON Pointer; the empty string is the document itself."""
    return "".join(f"/{str(token).replace('~', '~0').replace('/', '~1')}" for token in place)


def resolve(document: Json, path: str) -> Json:
    """What a JSON Pointer points to.

    Raises:
        LookupError: nothing is there.
    """
    value = document
    for token in path.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdecimal():
            value = value[int(key)]
        else:
            raise LookupError(path)
    return value


def order(document: Json, place: Place) -> tuple[int, ...]:
    """A key that sorts places as they stand in the document; an object comes before what is in it."""
    key: list[int] = []
    value = document
    for token in place:
        if isinstance(value, dict) and token in value:
            key.append(list(value).index(str(token)))
            value = value[str(token)]
        elif isinstance(value, list) and isinstance(token, int) and token < len(value):
            key.append(token)
            value = value[token]
        else:
            break
    return tuple(key)
