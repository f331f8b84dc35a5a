"""DeviceService."""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration
from grpc import aio

from droidfleet.v1 import device_pb2, device_pb2_grpc
from droidfleet_controller.api import convert, convert_screen
from droidfleet_controller.fleet.live import Live
from droidfleet_controller.ids import new_id
from droidfleet_shared.bus.session import DEFAULT_TTL_S
from droidfleet_shared.errors import InvalidInputError

Context = aio.ServicerContext[Any, Any]


class DeviceServicer(device_pb2_grpc.DeviceServiceServicer):
    """The service over live requests."""

    def __init__(self, *, live: Live) -> None:
        self._live = live

    async def GetTree(self, request: device_pb2.GetTreeRequest, context: Context) -> device_pb2.GetTreeResponse:
        return convert_screen.tree_to_pb(await self._live.tree(request.device, with_xml=request.with_xml))

    async def GetSnapshot(
        self, request: device_pb2.GetSnapshotRequest, context: Context
    ) -> device_pb2.GetSnapshotResponse:
        snapshot = await self._live.look(request.device)
        return device_pb2.GetSnapshotResponse(snapshot_json=snapshot.model_dump_json(by_alias=True))

    async def GetScreenshot(
        self, request: device_pb2.GetScreenshotRequest, context: Context
    ) -> device_pb2.GetScreenshotResponse:
        return convert_screen.picture_to_pb(await self._live.screenshot(request.device))

    async def OpenSession(
        self, request: device_pb2.OpenSessionRequest, context: Context
    ) -> device_pb2.OpenSessionResponse:
        leased = await self._live.open(request.device, holder=request.holder, ttl_s=_ttl_s(request))
        return device_pb2.OpenSessionResponse(session_id=leased.lease_id, expires_in=_seconds(leased.expires_in_s))

    async def RenewSession(
        self, request: device_pb2.RenewSessionRequest, context: Context
    ) -> device_pb2.RenewSessionResponse:
        leased = await self._live.renew(request.device, request.session_id)
        return device_pb2.RenewSessionResponse(expires_in=_seconds(leased.expires_in_s))

    async def CloseSession(
        self, request: device_pb2.CloseSessionRequest, context: Context
    ) -> device_pb2.CloseSessionResponse:
        await self._live.close(request.device, request.session_id)
        return device_pb2.CloseSessionResponse()

    async def RunStep(self, request: device_pb2.RunStepRequest, context: Context) -> device_pb2.RunStepResponse:
        result = await self._live.step(
            request.device,
            request.session_id,
            step=request.step_json,
            request_id=request.request_id or new_id("s"),
        )
        return device_pb2.RunStepResponse(result=convert.result_to_pb(result))


def _ttl_s(request: device_pb2.OpenSessionRequest) -> float:
    if not request.HasField("ttl"):
        return DEFAULT_TTL_S
    try:
        return request.ttl.ToTimedelta().total_seconds()
    except (OverflowError, ValueError):
        raise InvalidInputError("BAD_TTL", "ttl is not a duration that can be.") from None


def _seconds(seconds: float) -> Duration:
    message = Duration()
    message.FromMilliseconds(round(seconds * 1000))
    return message
