"""Task texts, kept once by their digest."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from sqlalchemy import Connection, bindparam, insert, select

from droidfleet_controller.store.schema import texts
from droidfleet_controller.store.sql import chunks

_KNOWN = select(texts.c.sha256).where(texts.c.sha256 == bindparam("key"))
_BODIES = select(texts.c.sha256, texts.c.body).where(texts.c.sha256.in_(bindparam("digests", expanding=True)))


def digest(body: str) -> str:
    """The SHA-256 of a text, lower-case hex."""
    return sha256(body.encode()).hexdigest()


def keep(connection: Connection, body: str) -> str:
    """Stores a text unless it is there, and returns its digest."""
    key = digest(body)
    if connection.execute(_KNOWN, {"key": key}).first() is None:
        connection.execute(insert(texts).values(sha256=key, body=body))
    return key


def load(connection: Connection, digests: Iterable[str]) -> dict[str, str]:
    """Texts by digest."""
    found: dict[str, str] = {}
    for some in chunks(sorted(set(digests))):
        for row in connection.execute(_BODIES, {"digests": some}):
            found[row.sha256] = row.body
    return found
