"""The gRPC server: services, health, reflection, message sizes, TLS."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from droidfleet.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    device_pb2,
    device_pb2_grpc,
    draft_pb2,
    draft_pb2_grpc,
    execution_pb2,
    execution_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    rollout_pb2,
    rollout_pb2_grpc,
    schedule_pb2,
    schedule_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
)
from droidfleet_controller.api.admin import AdminServicer
from droidfleet_controller.api.devices import DeviceServicer
from droidfleet_controller.api.drafts import DraftServicer
from droidfleet_controller.api.errors import Door
from droidfleet_controller.api.executions import ExecutionServicer
from droidfleet_controller.api.fleet import FleetServicer
from droidfleet_controller.api.rollouts import RolloutServicer
from droidfleet_controller.api.schedules import ScheduleServicer
from droidfleet_controller.api.tasks import TaskServicer
from droidfleet_shared.errors import ConflictError
from droidfleet_shared.net import Endpoint

MAX_RECEIVED_BYTES = 16 * 1024 * 1024
"""Larger than any valid document, so that the validator can say what is wrong with one that is too large."""

MAX_SENT_BYTES = 64 * 1024 * 1024
"""A full page of executions with their outputs."""

STOP_GRACE_S = 2.0
"""For unary calls to end; watches are ended then, and clients open them again."""

SERVICES = (
    fleet_pb2.DESCRIPTOR.services_by_name["FleetService"].full_name,
    device_pb2.DESCRIPTOR.services_by_name["DeviceService"].full_name,
    task_pb2.DESCRIPTOR.services_by_name["TaskService"].full_name,
    execution_pb2.DESCRIPTOR.services_by_name["ExecutionService"].full_name,
    rollout_pb2.DESCRIPTOR.services_by_name["RolloutService"].full_name,
    schedule_pb2.DESCRIPTOR.services_by_name["ScheduleService"].full_name,
    draft_pb2.DESCRIPTOR.services_by_name["DraftService"].full_name,
    admin_pb2.DESCRIPTOR.services_by_name["AdminService"].full_name,
)

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_RECEIVED_BYTES),
    ("grpc.max_send_message_length", MAX_SENT_BYTES),
    # Another process on the same port would get a part of the calls.
    ("grpc.so_reuseport", 0),
)


class ApiServer:
    """The server; `start` binds, `stop` ends what is under way."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        door: Door,
        fleet: FleetServicer,
        devices: DeviceServicer,
        tasks: TaskServicer,
        executions: ExecutionServicer,
        rollouts: RolloutServicer,
        schedules: ScheduleServicer,
        drafts: DraftServicer,
        admin: AdminServicer,
        credentials: grpc.ServerCredentials | None,
    ) -> None:
        self.endpoint = endpoint
        self._credentials = credentials
        self._server = aio.server(interceptors=[door], options=_OPTIONS)
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]  # exported by assignment
        fleet_pb2_grpc.add_FleetServiceServicer_to_server(fleet, self._server)
        device_pb2_grpc.add_DeviceServiceServicer_to_server(devices, self._server)
        task_pb2_grpc.add_TaskServiceServicer_to_server(tasks, self._server)
        execution_pb2_grpc.add_ExecutionServiceServicer_to_server(executions, self._server)
        rollout_pb2_grpc.add_RolloutServiceServicer_to_server(rollouts, self._server)
        schedule_pb2_grpc.add_ScheduleServiceServicer_to_server(schedules, self._server)
        draft_pb2_grpc.add_DraftServiceServicer_to_server(drafts, self._server)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(admin, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)  # type: ignore[no-untyped-call]  # its stubs are untyped
        names: Sequence[str] = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)  # type: ignore[no-untyped-call]  # untyped

    async def start(self) -> None:
        """Binds and serves.

        Raises:
            ConflictError: ``PORT_TAKEN``.
        """
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(str(self.endpoint))
            else:
                port = self._server.add_secure_port(str(self.endpoint), self._credentials)
        except RuntimeError as error:
            raise port_taken(self.endpoint, setting="listen") from error
        self.endpoint = Endpoint(self.endpoint.host, port)
        await self._server.start()
        for name in ("", *SERVICES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        """Refuses new calls, lets unary ones end, ends watches."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(STOP_GRACE_S)


def port_taken(endpoint: Endpoint, *, setting: str) -> ConflictError:
    """The error for an address that cannot be bound."""
    return ConflictError(
        "PORT_TAKEN",
        f"{setting}: {endpoint} cannot be listened on; another program has it, or this machine has no such address.",
        hint=f"End the other program, or choose another address with --{setting} (port 0: the system chooses).",
    )
