"""Ports of loopback that a test keeps for itself, where it needs one before anybody listens on it, or nobody to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def bound_socket() -> socket.socket:
    """A socket that keeps a port: connecting there is refused, and nobody else is given it.

    A program that is told of the port may listen on it: all that we start set SO_REUSEADDR, as this does.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    return bound


@contextmanager
def keeping_port() -> Iterator[int]:
    """Such a port, while the block lasts."""
    with bound_socket() as bound:
        yield int(bound.getsockname()[1])


@pytest.fixture
def kept_port() -> Iterator[int]:
    """Such a port, for one test."""
    with keeping_port() as port:
        yield port
