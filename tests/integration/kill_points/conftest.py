"""Fixtures of the kill points."""

from support.nats import nats_server

__all__ = ["nats_server"]
