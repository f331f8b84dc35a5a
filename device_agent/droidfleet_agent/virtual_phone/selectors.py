"""uiautomator2 selectors over the view tree."""

from __future__ import annotations

from droidfleet_shared.errors import InvalidInputError


class SelectorError(InvalidInputError):
    """A selector that the phone cannot use (a broken pattern, a wrong type)."""
