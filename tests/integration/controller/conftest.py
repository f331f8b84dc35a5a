"""Fixtures of the controller's integration tests."""

from __future__ import annotations

from support.nats import nats_server

__all__ = ["nats_server"]
