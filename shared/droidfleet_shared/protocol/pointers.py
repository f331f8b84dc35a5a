"""Places in a document: as Python tuples while validating, as JSON Pointers (RFC 6901) in what is reported."""

from __future__ import annotations

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""A raw JSON value."""

Place = tuple[str | int, ...]
"""Keys and list positions from the document's root; the empty tuple is the document itself."""


def pointer(place: Place) -> str:
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


class DocumentOrder:
    """Sorts places as they stand in one document; an object comes before what is in it."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._positions: dict[int, dict[str, int]] = {}

    def key(self, place: Place) -> tuple[int, ...]:
        """A sort key."""
        key: list[int] = []
        value = self._document
        for token in place:
            if isinstance(value, dict) and isinstance(token, str) and token in value:
                key.append(self._position(value, token))
                value = value[token]
            elif isinstance(value, list) and isinstance(token, int) and token < len(value):
                key.append(token)
                value = value[token]
            else:
                break
        return tuple(key)

    def _position(self, value: dict[str, Json], token: str) -> int:
        positions = self._positions.get(id(value))
        if positions is None:
            positions = self._positions[id(value)] = {each: position for position, each in enumerate(value)}
        return positions[token]
