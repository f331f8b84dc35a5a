"""Fixtures of the agent tests."""

from support.nats import nats_server

__all__ = ["nats_server"]
