"""FleetService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from sqlalchemy import Connection

from droidfleet.v1 import fleet_pb2, fleet_pb2_grpc
from droidfleet_controller.api import convert, pages
from droidfleet_controller.dispatch.reading import Executions
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.store import events
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import FleetEvent
from droidfleet_shared.errors import InvalidInputError

Context = aio.ServicerContext[Any, Any]

EVENTS_PAGE = 500
"""Events read at a time for one watcher."""


class FleetServicer(fleet_pb2_grpc.FleetServiceServicer):
    """The service over the registry and the event log."""

    def __init__(self, *, registry: Registry, executions: Executions, database: Database, broadcast: Broadcast) -> None:
        self._registry = registry
        self._executions = executions
        self._database = database
        self._broadcast = broadcast

    async def ListDevices(
        self, request: fleet_pb2.ListDevicesRequest, context: Context
    ) -> fleet_pb2.ListDevicesResponse:
        states = frozenset(_state(value) for value in request.states)
        scope = f"devices {sorted(states)}"
        limit = pages.size(request.page_size)
        after = pages.text_place(request.page_token, scope=scope)
        found = self._registry.page(after=after, limit=limit + 1, states=states)
        shown, more = found[:limit], len(found) > limit
        backlog = await self._executions.backlog([device.name for device in shown])
        return fleet_pb2.ListDevicesResponse(
            devices=[
                convert.device_to_pb(device, state=self._registry.state(device), backlog=backlog.get(device.name, 0))
                for device in shown
            ],
            next_page_token=pages.encode(shown[-1].name, scope=scope) if more else "",
        )

    async def GetDevice(self, request: fleet_pb2.GetDeviceRequest, context: Context) -> fleet_pb2.GetDeviceResponse:
        device = self._registry.get(request.name)
        backlog = await self._executions.backlog([device.name])
        return fleet_pb2.GetDeviceResponse(
            device=convert.device_to_pb(device, state=self._registry.state(device), backlog=backlog.get(device.name, 0))
        )

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


def _state(value: fleet_pb2.DeviceState.ValueType) -> DeviceState:
    try:
        return convert.device_state_from(value)
    except ValueError:
        raise InvalidInputError("BAD_STATE", f"states: {value} is not a state of a device.") from None
