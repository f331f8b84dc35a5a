"""`droidfleet serve`: the controller on this machine. Reads settings and starts it; everything else is `app`'s."""

from __future__ import annotations


def serve() -> None:
    """Run the controller."""
    raise NotImplementedError
