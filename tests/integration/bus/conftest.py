"""Fixtures of the bus tests."""

from support.nats import nats_server

__all__ = ["nats_server"]
