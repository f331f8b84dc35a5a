"""The version that a caller saw of what it changes."""

from __future__ import annotations

from droidfleet_shared.errors import InvalidInputError


def seen(version: int) -> int:
    """The version that the caller saw.

    Raises:
        InvalidInputError: ``BAD_VERSION``.
    """
    if version < 1:
        raise InvalidInputError("BAD_VERSION", f"version: the one that you saw, 1 or more, not {version}.")
    return version
