"""Calls of DeviceService: one device, live."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property

from droidfleet.v1 import device_pb2, device_pb2_grpc, execution_pb2
from droidfleet_controller.cli.client.channel import CALL_S, Channel

LOOK_S = 30.0
"""Deadline of a look at a phone: the first one may have to start what the phone answers with."""

STEP_S = 120.0
"""Deadline of one live step, which the agent bounds at 100 seconds."""


class DeviceCalls(Channel):
    """Looks at a phone, sessions, live steps."""

    @cached_property
    def _devices(self) -> device_pb2_grpc.DeviceServiceStub:
        return device_pb2_grpc.DeviceServiceStub(self.channel)

    def tree(self, device: str, *, with_xml: bool = False) -> device_pb2.GetTreeResponse:
        """What the device's active window shows."""
        request = device_pb2.GetTreeRequest(device=device, with_xml=with_xml)
        with self.errors():
            return self._devices.GetTree(request, timeout=LOOK_S, metadata=self.metadata)

    def snapshot(self, device: str) -> str:
        """The same look as a value, as JSON text."""
        request = device_pb2.GetSnapshotRequest(device=device)
        with self.errors():
            return self._devices.GetSnapshot(request, timeout=LOOK_S, metadata=self.metadata).snapshot_json

    def screenshot(self, device: str) -> device_pb2.GetScreenshotResponse:
        """A picture of the device's display."""
        request = device_pb2.GetScreenshotRequest(device=device)
        with self.errors():
            return self._devices.GetScreenshot(request, timeout=LOOK_S, metadata=self.metadata)

    def open_session(self, device: str, *, holder: str, ttl: timedelta) -> str:
        """The id of a session, which holds for ``ttl`` unless it is renewed."""
        request = device_pb2.OpenSessionRequest(device=device, holder=holder)
        request.ttl.FromTimedelta(ttl)
        with self.errors():
            return self._devices.OpenSession(request, timeout=CALL_S, metadata=self.metadata).session_id

    def renew_session(self, device: str, session_id: str) -> None:
        """Keeps a session open for as long again."""
        request = device_pb2.RenewSessionRequest(device=device, session_id=session_id)
        with self.errors():
            self._devices.RenewSession(request, timeout=CALL_S, metadata=self.metadata)

    def close_session(self, device: str, session_id: str) -> None:
        """Ends a session."""
        request = device_pb2.CloseSessionRequest(device=device, session_id=session_id)
        with self.errors():
            self._devices.CloseSession(request, timeout=CALL_S, metadata=self.metadata)

    def run_step(self, device: str, session_id: str, step: str, *, request_id: str) -> execution_pb2.TaskResult:
        """The result of one step, which is run once for each ``request_id``."""
        request = device_pb2.RunStepRequest(device=device, session_id=session_id, step_json=step, request_id=request_id)
        with self.errors():
            return self._devices.RunStep(request, timeout=STEP_S, metadata=self.metadata).result
