"""Pages of lists: sizes, and tokens that say where the next page starts.

A token is opaque to callers and bound to its list and filter: one of another list, another filter, or of nobody's
making is refused instead of answering with the wrong page.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeVar

from droidfleet_shared.errors import InvalidInputError

DEFAULT_SIZE = 100
MAX_SIZE = 1_000
_MARK_LENGTH = 8

Item = TypeVar("Item")


def size(asked: int) -> int:
    """The size of a page.

    Raises:
        InvalidInputError: ``BAD_PAGE_SIZE``.
    """
    if not 0 <= asked <= MAX_SIZE:
        raise InvalidInputError("BAD_PAGE_SIZE", f"page_size: 1 to {MAX_SIZE}, or 0 for {DEFAULT_SIZE}, not {asked}.")
    return asked or DEFAULT_SIZE


def cut(
    found: Sequence[Item], *, limit: int, scope: str, place: Callable[[Item], str | int]
) -> tuple[Sequence[Item], str]:
    """The page out of what was found, which is one more than ``limit`` where there is more, and the token of the next
    page; empty at the end. ``place``: where an item stands in the list."""
    shown = found[:limit]
    return shown, encode(place(shown[-1]), scope=scope) if len(found) > limit else ""


def encode(place: str | int, *, scope: str) -> str:
    """A token for the page after ``place`` in the list that ``scope`` describes (its name and filter)."""
    return base64.urlsafe_b64encode(json.dumps([_mark(scope), place]).encode()).decode().rstrip("=")


def text_place(token: str, *, scope: str) -> str:
    """The place of a list that is ordered by text; empty for the first page.

    Raises:
        InvalidInputError: ``BAD_PAGE_TOKEN``.
    """
    place = _decode(token, scope) if token else ""
    if not isinstance(place, str):
        raise bad_token()
    return place


def number_place(token: str, *, scope: str) -> int | None:
    """The place of a list that is ordered by number; None for the first page.

    Raises:
        InvalidInputError: ``BAD_PAGE_TOKEN``.
    """
    if not token:
        return None
    place = _decode(token, scope)
    if not isinstance(place, int) or isinstance(place, bool) or not 0 < place < 2**63:
        raise bad_token()
    return place


def _decode(token: str, scope: str) -> object:
    try:
        mark, place = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise bad_token() from None
    if mark != _mark(scope):
        raise bad_token()
    return place


def _mark(scope: str) -> str:
    return sha256(scope.encode()).hexdigest()[:_MARK_LENGTH]


def bad_token() -> InvalidInputError:
    """The error for a token that this list did not give."""
    return InvalidInputError(
        "BAD_PAGE_TOKEN",
        "page_token is not one that this list gave with this filter.",
        hint="Start again without a token.",
    )
