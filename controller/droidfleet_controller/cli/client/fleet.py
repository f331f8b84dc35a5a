"""Calls of FleetService: devices, their labels, groups, events."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import fleet_pb2, fleet_pb2_grpc
from droidfleet_controller.cli.client.channel import CALL_S, RUN_S, STREAM_S, Channel, Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class FleetCalls(Channel):
    """Devices and what happens in the fleet."""

    @cached_property
    def _fleet(self) -> fleet_pb2_grpc.FleetServiceStub:
        return fleet_pb2_grpc.FleetServiceStub(self.channel)

    def devices(
        self, states: Sequence[fleet_pb2.DeviceState.ValueType] = (), *, query: str = ""
    ) -> Iterator[fleet_pb2.Device]:
        """All devices in these states (all when empty) that match the query, by name."""

        def fetch(token: str, size: int) -> Page[fleet_pb2.Device]:
            request = fleet_pb2.ListDevicesRequest(page_size=size, page_token=token, states=states, query=query)
            page = self._fleet.ListDevices(request, timeout=CALL_S, metadata=self.metadata)
            return page.devices, page.next_page_token

        return self.paged(fetch)

    def device(self, name: str) -> fleet_pb2.Device:
        """One device."""
        with self.errors():
            return self._fleet.GetDevice(
                fleet_pb2.GetDeviceRequest(name=name), timeout=CALL_S, metadata=self.metadata
            ).device

    def set_labels(
        self,
        *,
        devices: Sequence[str] = (),
        query: str = "",
        labels: Mapping[str, str],
        remove: Sequence[str] = (),
    ) -> Sequence[fleet_pb2.Device]:
        """Writes and removes labels of devices, or of those that match the query; gives the devices that changed."""
        request = fleet_pb2.SetLabelsRequest(devices=devices, query=query, set=labels, remove=remove)
        with self.errors():
            return self._fleet.SetLabels(request, timeout=RUN_S, metadata=self.metadata).devices

    def create_group(
        self, name: str, *, query: str = "", devices: Sequence[str] = (), description: str = ""
    ) -> fleet_pb2.Group:
        """A new group: dynamic with a query, else static with these devices."""
        request = fleet_pb2.CreateGroupRequest(name=name, query=query, devices=devices, description=description)
        with self.errors():
            return self._fleet.CreateGroup(request, timeout=RUN_S, metadata=self.metadata).group

    def group(self, name: str) -> fleet_pb2.Group:
        """One group."""
        request = fleet_pb2.GetGroupRequest(name=name)
        with self.errors():
            return self._fleet.GetGroup(request, timeout=CALL_S, metadata=self.metadata).group

    def groups(self) -> Iterator[fleet_pb2.Group]:
        """All groups, by name."""

        def fetch(token: str, size: int) -> Page[fleet_pb2.Group]:
            request = fleet_pb2.ListGroupsRequest(page_size=size, page_token=token)
            page = self._fleet.ListGroups(request, timeout=CALL_S, metadata=self.metadata)
            return page.groups, page.next_page_token

        return self.paged(fetch)

    def update_group(
        self,
        name: str,
        *,
        version: int,
        query: str | None = None,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        description: str | None = None,
    ) -> fleet_pb2.Group:
        """Changes a group that is in this version; what is ``None`` stays."""
        request = fleet_pb2.UpdateGroupRequest(
            name=name, version=version, query=query, add=add, remove=remove, description=description
        )
        with self.errors():
            return self._fleet.UpdateGroup(request, timeout=RUN_S, metadata=self.metadata).group

    def delete_group(self, name: str, *, version: int) -> None:
        """Removes a group that is in this version."""
        request = fleet_pb2.DeleteGroupRequest(name=name, version=version)
        with self.errors():
            self._fleet.DeleteGroup(request, timeout=CALL_S, metadata=self.metadata)

    def preview_target(self, *, group: str = "", query: str = "") -> fleet_pb2.PreviewTargetResponse:
        """Who belongs to a group, or matches a query, now."""
        request = fleet_pb2.PreviewTargetRequest(group=group, query=query)
        with self.errors():
            return self._fleet.PreviewTarget(request, timeout=RUN_S, metadata=self.metadata)

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
