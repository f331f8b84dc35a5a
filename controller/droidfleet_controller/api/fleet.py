"""FleetService."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from grpc import aio
from sqlalchemy import Connection

from droidfleet.v1 import fleet_pb2, fleet_pb2_grpc
from droidfleet_controller.api import convert, pages
from droidfleet_controller.api.convert_fleet import device_to_pb, group_to_pb
from droidfleet_controller.dispatch.reading import Executions
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.fleet.device import Device, DeviceState
from droidfleet_controller.fleet.groups import Groups, Update
from droidfleet_controller.fleet.labels import Changes, Labels
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.rollouts.spec import Target
from droidfleet_controller.store import events
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import FleetEvent
from droidfleet_shared.errors import InvalidInputError

Context = aio.ServicerContext[Any, Any]

EVENTS_PAGE = 500
"""Events read at a time for one watcher."""


class FleetServicer(fleet_pb2_grpc.FleetServiceServicer):
    """The service over the registry, the labels, the groups and the event log."""

    def __init__(
        self,
        *,
        registry: Registry,
        labels: Labels,
        groups: Groups,
        targets: Targets,
        executions: Executions,
        database: Database,
        broadcast: Broadcast,
    ) -> None:
        self._registry = registry
        self._labels = labels
        self._groups = groups
        self._targets = targets
        self._executions = executions
        self._database = database
        self._broadcast = broadcast

    async def ListDevices(
        self, request: fleet_pb2.ListDevicesRequest, context: Context
    ) -> fleet_pb2.ListDevicesResponse:
        states = frozenset(_state(value) for value in request.states)
        scope = f"devices {sorted(states)} {request.query}"
        limit = pages.size(request.page_size)
        after = pages.text_place(request.page_token, scope=scope)
        among = self._targets.matching(request.query) if request.query else None
        found = self._registry.page(after=after, limit=limit + 1, states=states, among=among)
        shown, token = pages.cut(found, limit=limit, scope=scope, place=lambda each: each.name)
        return fleet_pb2.ListDevicesResponse(
            devices=await self._devices(shown),
            next_page_token=token,
        )

    async def GetDevice(self, request: fleet_pb2.GetDeviceRequest, context: Context) -> fleet_pb2.GetDeviceResponse:
        (device,) = await self._devices([self._registry.get(request.name)])
        return fleet_pb2.GetDeviceResponse(device=device)

    async def SetLabels(self, request: fleet_pb2.SetLabelsRequest, context: Context) -> fleet_pb2.SetLabelsResponse:
        named = self._targets.members(_target(devices=request.devices, query=request.query))
        changes = Changes(set=dict(request.set), remove=tuple(request.remove))
        changed = await self._labels.change(named, changes, actor=context.peer())
        return fleet_pb2.SetLabelsResponse(devices=await self._devices(map(self._registry.get, changed)))

    async def CreateGroup(
        self, request: fleet_pb2.CreateGroupRequest, context: Context
    ) -> fleet_pb2.CreateGroupResponse:
        group = await self._groups.create(
            request.name,
            query=request.query,
            devices=request.devices,
            description=request.description,
            actor=context.peer(),
        )
        return fleet_pb2.CreateGroupResponse(group=group_to_pb(group))

    async def GetGroup(self, request: fleet_pb2.GetGroupRequest, context: Context) -> fleet_pb2.GetGroupResponse:
        return fleet_pb2.GetGroupResponse(group=group_to_pb(self._groups.get(request.name)))

    async def ListGroups(self, request: fleet_pb2.ListGroupsRequest, context: Context) -> fleet_pb2.ListGroupsResponse:
        limit = pages.size(request.page_size)
        found = self._groups.page(after=pages.text_place(request.page_token, scope="groups"), limit=limit + 1)
        shown, token = pages.cut(found, limit=limit, scope="groups", place=lambda each: each.name)
        return fleet_pb2.ListGroupsResponse(
            groups=map(group_to_pb, shown),
            next_page_token=token,
        )

    async def UpdateGroup(
        self, request: fleet_pb2.UpdateGroupRequest, context: Context
    ) -> fleet_pb2.UpdateGroupResponse:
        changes = Update(
            query=request.query if request.HasField("query") else None,
            add=tuple(request.add),
            remove=tuple(request.remove),
            description=request.description if request.HasField("description") else None,
        )
        group = await self._groups.update(request.name, changes, version=request.version, actor=context.peer())
        return fleet_pb2.UpdateGroupResponse(group=group_to_pb(group))

    async def DeleteGroup(
        self, request: fleet_pb2.DeleteGroupRequest, context: Context
    ) -> fleet_pb2.DeleteGroupResponse:
        await self._groups.delete(request.name, version=request.version, actor=context.peer())
        return fleet_pb2.DeleteGroupResponse()

    async def PreviewTarget(
        self, request: fleet_pb2.PreviewTargetRequest, context: Context
    ) -> fleet_pb2.PreviewTargetResponse:
        target = _target(group=request.group, query=request.query)
        found = sorted(self._targets.matches(target))
        devices = await self._devices(map(self._registry.get, found))
        return fleet_pb2.PreviewTargetResponse(devices=devices, notes=self._targets.notes(target))

    async def _devices(self, devices: Iterable[Device]) -> list[fleet_pb2.Device]:
        """Devices as they are now."""
        devices = list(devices)
        backlog = await self._executions.backlog([device.name for device in devices])
        return [
            device_to_pb(
                device,
                state=self._registry.state(device),
                backlog=backlog.get(device.name, 0),
                labels=self._labels.of(device.name),
                clock_offset_s=self._registry.clocks.offset_s(device.name),
            )
            for device in devices
        ]

    async def WatchEvents(
        self, request: fleet_pb2.WatchEventsRequest, context: Context
    ) -> AsyncIterator[fleet_pb2.WatchEventsResponse]:
        with self._broadcast.listening() as woken:
            cursor = request.after_event_id
            if cursor < 0:
                cursor = await self._database.run(events.newest)
            while True:
                woken.clear()
                page = await self._page(request, cursor)
                for event in page:
                    yield fleet_pb2.WatchEventsResponse(event=convert.event_to_pb(event))
                    cursor = event.event_id
                if len(page) == EVENTS_PAGE:
                    continue
                if not request.follow:
                    return
                await woken.wait()

    async def _page(self, request: fleet_pb2.WatchEventsRequest, cursor: int) -> list[FleetEvent]:
        def read(connection: Connection) -> list[FleetEvent]:
            return events.after(
                connection, cursor, device=request.device, execution_id=request.execution_id, limit=EVENTS_PAGE
            )

        return await self._database.run(read)


def _target(*, devices: Iterable[str] = (), group: str = "", query: str = "") -> Target:
    """The one of them that is given."""
    listed = tuple(devices)
    if sum(map(bool, (listed, group, query))) != 1:
        raise InvalidInputError("BAD_TARGET", "expected exactly one: devices, a group or a query.")
    # Not checked as in a document: what looks the parts up says what is wrong with them.
    return Target.model_construct(devices=listed or None, group=group or None, query=query or None)


def _state(value: fleet_pb2.DeviceState.ValueType) -> DeviceState:
    try:
        return convert.device_state_from(value)
    except ValueError:
        raise InvalidInputError("BAD_STATE", f"states: {value} is not a state of a device.") from None
