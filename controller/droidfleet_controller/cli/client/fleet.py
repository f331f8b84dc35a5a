"""Calls of FleetService."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import fleet_pb2, fleet_pb2_grpc
from droidfleet_controller.cli.client.channel import CALL_S, STREAM_S, Channel, Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class FleetCalls(Channel):
    """Devices and what happens in the fleet."""

    @cached_property
    def _fleet(self) -> fleet_pb2_grpc.FleetServiceStub:
        return fleet_pb2_grpc.FleetServiceStub(self.channel)

    def devices(self, states: Sequence[fleet_pb2.DeviceState.ValueType] = ()) -> Iterator[fleet_pb2.Device]:
        """All devices in these states (all when empty), by name."""

        def fetch(token: str, size: int) -> Page[fleet_pb2.Device]:
            request = fleet_pb2.ListDevicesRequest(page_size=size, page_token=token, states=states)
            page = self._fleet.ListDevices(request, timeout=CALL_S, metadata=self.metadata)
            return page.devices, page.next_page_token

        return self.paged(fetch)

    def device(self, name: str) -> fleet_pb2.Device:
        """One device."""
        with self.errors():
            return self._fleet.GetDevice(
                fleet_pb2.GetDeviceRequest(name=name), timeout=CALL_S, metadata=self.metadata
            ).device

    def events(
        self, *, after: int = 0, device: str = "", execution_id: str = "", follow: bool = False
    ) -> Iterator[fleet_pb2.FleetEvent]:
        """Stored events after this one, in order; then, with ``follow``, live ones without end."""
        cursor = after

        def opened() -> Iterator[fleet_pb2.WatchEventsResponse]:
            request = fleet_pb2.WatchEventsRequest(
                after_event_id=cursor, device=device, execution_id=execution_id, follow=follow
            )
            return self._fleet.WatchEvents(request, timeout=STREAM_S, metadata=self.metadata)

        for response in self.resumed(opened, quiet=follow):
            cursor = response.event.event_id
            yield response.event
