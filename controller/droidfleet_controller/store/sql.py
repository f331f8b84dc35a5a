"""Small portable helpers for repositories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

IN_LIMIT = 300
"""Values in one IN list: as triples still under every database's limit of variables (SQLite's oldest: 999)."""

T = TypeVar("T")


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in lists that one query can take."""
    remaining = iter(values)
    while some := list(islice(remaining, IN_LIMIT)):
        yield some
