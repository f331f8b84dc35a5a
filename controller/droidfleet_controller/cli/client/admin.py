"""Calls of AdminService."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import admin_pb2, admin_pb2_grpc
from droidfleet_controller.cli.client.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

REBUILD_S = 3600.0
"""Deadline of a rebuild; the controller itself gives up a minute after it stops to go on."""

CHECK_S = 300.0
"""Deadline of all checks: a large database is read to its end."""


class AdminCalls(Channel):
    """Rebuilding and checks."""

    @cached_property
    def _admin(self) -> admin_pb2_grpc.AdminServiceStub:
        return admin_pb2_grpc.AdminServiceStub(self.channel)

    def rebuild_bus(self) -> Iterator[admin_pb2.RebuildBusResponse]:
        """Makes the broker's content anew; how far it is, until it is done."""
        with self.errors():
            yield from self._admin.RebuildBus(admin_pb2.RebuildBusRequest(), timeout=REBUILD_S, metadata=self.metadata)

    def check_fleet(self) -> admin_pb2.CheckFleetResponse:
        """What is not as it should be."""
        with self.errors():
            return self._admin.CheckFleet(admin_pb2.CheckFleetRequest(), timeout=CHECK_S, metadata=self.metadata)
