"""A controller made of canned answers, behind a real gRPC server: what the command line's tests talk to.

`FakeFleet` is what a test fills in; `running` serves it on a free port of loopback. It knows no rules of the real one.
"""

# ruff: noqa: N802 - the generated servicers spell their methods as the API does

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message

from droidfleet.v1 import (
    admin_pb2,
    device_pb2,
    device_pb2_grpc,
    draft_pb2,
    execution_pb2,
    execution_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    rollout_pb2,
    schedule_pb2,
    task_pb2,
    task_pb2_grpc,
)
from droidfleet_controller.api.errors import hint_metadata

THREADS = 8
STOP_S = 1.0


@dataclass
class Refusal(Exception):  # noqa: N818 - it is an answer, not an error of the tests
    """Makes a call fail as the real controller does: status, stable code, message, hint, issues."""

    status: grpc.StatusCode
    code: str = ""
    message: str = ""
    hint: str = ""
    issues: list[dict[str, str]] = field(default_factory=list)

    def apply(self, context: grpc.ServicerContext) -> None:
        metadata: list[tuple[str, str | bytes]] = []
        if self.code:
            metadata.append(("droidfleet-code", self.code))
        if self.hint:
            metadata.append(hint_metadata(self.hint))
        if self.issues:
            metadata.append(("droidfleet-issues-bin", json.dumps(self.issues).encode()))
        context.set_trailing_metadata(tuple(metadata))
        context.abort(self.status, self.message)


@dataclass
class FakeFleet:
    """The canned answers, and every request in order."""

    devices: list[fleet_pb2.Device] = field(default_factory=list)
    groups: list[fleet_pb2.Group] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a preview remarks."""
    tasks: list[task_pb2.TaskTemplate] = field(default_factory=list)
    executions: list[execution_pb2.Execution] = field(default_factory=list)
    changes: list[execution_pb2.Execution | Refusal] = field(default_factory=list)
    events: list[fleet_pb2.FleetEvent | Refusal] = field(default_factory=list)
    issues: list[task_pb2.ValidationIssue] = field(default_factory=list)
    screens: list[device_pb2.GetTreeResponse] = field(default_factory=list)
    """What the phone shows, one after the other with each step that succeeds; the last one stays."""
    snapshot: str = ""
    picture: device_pb2.GetScreenshotResponse = field(default_factory=device_pb2.GetScreenshotResponse)
    step_results: list[execution_pb2.TaskResult] = field(default_factory=list)
    """Results of live steps, in order; then every step succeeds."""
    artifacts: dict[str, list[bytes]] = field(default_factory=dict)
    """Contents in pieces, by digest."""
    answers: dict[str, list[Message | Refusal]] = field(default_factory=dict)
    """What calls of rollouts, schedules, drafts and admin are answered with, by the call's name, one after the other;
    the last answer of a call that is no stream stays."""
    refusals: dict[str, Refusal] = field(default_factory=dict)
    page_size: int = 1000
    requests: list[object] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)

    def last(self, kind: type[object]) -> object:
        """The newest request of this kind."""
        return next(request for request in reversed(self.requests) if isinstance(request, kind))


class _Servicer:
    def __init__(self, fleet: FakeFleet) -> None:
        self.fleet = fleet

    def _take(self, request: object, context: grpc.ServicerContext) -> None:
        self.fleet.requests.append(request)
        self.fleet.authorizations.append(str(dict(context.invocation_metadata()).get("authorization", "")))
        refusal = self.fleet.refusals.get(type(request).__name__.removesuffix("Request"))
        if refusal is not None:
            refusal.apply(context)

    def _page(self, token: str, count: int) -> tuple[slice, str]:
        start = int(token or 0)
        end = start + self.fleet.page_size
        return slice(start, end), str(end) if end < count else ""


class _FleetService(_Servicer, fleet_pb2_grpc.FleetServiceServicer):
    def ListDevices(
        self, request: fleet_pb2.ListDevicesRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.ListDevicesResponse:
        self._take(request, context)
        found = [item for item in self.fleet.devices if not request.states or item.state in request.states]
        part, token = self._page(request.page_token, len(found))
        return fleet_pb2.ListDevicesResponse(devices=found[part], next_page_token=token)

    def GetDevice(
        self, request: fleet_pb2.GetDeviceRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.GetDeviceResponse:
        self._take(request, context)
        return fleet_pb2.GetDeviceResponse(device=next(i for i in self.fleet.devices if i.name == request.name))

    def SetLabels(
        self, request: fleet_pb2.SetLabelsRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.SetLabelsResponse:
        self._take(request, context)
        return fleet_pb2.SetLabelsResponse(devices=self.fleet.devices)

    def CreateGroup(
        self, request: fleet_pb2.CreateGroupRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.CreateGroupResponse:
        self._take(request, context)
        return fleet_pb2.CreateGroupResponse(group=self.fleet.groups[0])

    def GetGroup(self, request: fleet_pb2.GetGroupRequest, context: grpc.ServicerContext) -> fleet_pb2.GetGroupResponse:
        self._take(request, context)
        return fleet_pb2.GetGroupResponse(group=next(i for i in self.fleet.groups if i.name == request.name))

    def ListGroups(
        self, request: fleet_pb2.ListGroupsRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.ListGroupsResponse:
        self._take(request, context)
        part, token = self._page(request.page_token, len(self.fleet.groups))
        return fleet_pb2.ListGroupsResponse(groups=self.fleet.groups[part], next_page_token=token)

    def UpdateGroup(
        self, request: fleet_pb2.UpdateGroupRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.UpdateGroupResponse:
        self._take(request, context)
        return fleet_pb2.UpdateGroupResponse(group=self.fleet.groups[0])

    def DeleteGroup(
        self, request: fleet_pb2.DeleteGroupRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.DeleteGroupResponse:
        self._take(request, context)
        return fleet_pb2.DeleteGroupResponse()

    def PreviewTarget(
        self, request: fleet_pb2.PreviewTargetRequest, context: grpc.ServicerContext
    ) -> fleet_pb2.PreviewTargetResponse:
        self._take(request, context)
        return fleet_pb2.PreviewTargetResponse(devices=self.fleet.devices, notes=self.fleet.notes)

    def WatchEvents(
        self, request: fleet_pb2.WatchEventsRequest, context: grpc.ServicerContext
    ) -> Iterator[fleet_pb2.WatchEventsResponse]:
        self._take(request, context)
        while self.fleet.events:
            event = self.fleet.events.pop(0)
            if isinstance(event, Refusal):
                event.apply(context)
            elif event.event_id > request.after_event_id:
                yield fleet_pb2.WatchEventsResponse(event=event)


class _DeviceService(_Servicer, device_pb2_grpc.DeviceServiceServicer):
    def GetTree(self, request: device_pb2.GetTreeRequest, context: grpc.ServicerContext) -> device_pb2.GetTreeResponse:
        self._take(request, context)
        return self.fleet.screens[0]

    def GetSnapshot(
        self, request: device_pb2.GetSnapshotRequest, context: grpc.ServicerContext
    ) -> device_pb2.GetSnapshotResponse:
        self._take(request, context)
        return device_pb2.GetSnapshotResponse(snapshot_json=self.fleet.snapshot)

    def GetScreenshot(
        self, request: device_pb2.GetScreenshotRequest, context: grpc.ServicerContext
    ) -> device_pb2.GetScreenshotResponse:
        self._take(request, context)
        return self.fleet.picture

    def OpenSession(
        self, request: device_pb2.OpenSessionRequest, context: grpc.ServicerContext
    ) -> device_pb2.OpenSessionResponse:
        self._take(request, context)
        return device_pb2.OpenSessionResponse(session_id="session-1")

    def RenewSession(
        self, request: device_pb2.RenewSessionRequest, context: grpc.ServicerContext
    ) -> device_pb2.RenewSessionResponse:
        self._take(request, context)
        return device_pb2.RenewSessionResponse()

    def CloseSession(
        self, request: device_pb2.CloseSessionRequest, context: grpc.ServicerContext
    ) -> device_pb2.CloseSessionResponse:
        self._take(request, context)
        return device_pb2.CloseSessionResponse()

    def RunStep(self, request: device_pb2.RunStepRequest, context: grpc.ServicerContext) -> device_pb2.RunStepResponse:
        self._take(request, context)
        results = self.fleet.step_results
        result = results.pop(0) if results else execution_pb2.TaskResult(successful=True, code="OK")
        if result.successful and len(self.fleet.screens) > 1:
            self.fleet.screens.pop(0)
        return device_pb2.RunStepResponse(result=result)


class _TaskService(_Servicer, task_pb2_grpc.TaskServiceServicer):
    def SaveTask(self, request: task_pb2.SaveTaskRequest, context: grpc.ServicerContext) -> task_pb2.SaveTaskResponse:
        self._take(request, context)
        return task_pb2.SaveTaskResponse(task=self.fleet.tasks[0], created=True)

    def ValidateTask(
        self, request: task_pb2.ValidateTaskRequest, context: grpc.ServicerContext
    ) -> task_pb2.ValidateTaskResponse:
        self._take(request, context)
        return task_pb2.ValidateTaskResponse(errors=self.fleet.issues)

    def GetTask(self, request: task_pb2.GetTaskRequest, context: grpc.ServicerContext) -> task_pb2.GetTaskResponse:
        self._take(request, context)
        return task_pb2.GetTaskResponse(task=self.fleet.tasks[0])

    def ListTasks(
        self, request: task_pb2.ListTasksRequest, context: grpc.ServicerContext
    ) -> task_pb2.ListTasksResponse:
        self._take(request, context)
        part, token = self._page(request.page_token, len(self.fleet.tasks))
        return task_pb2.ListTasksResponse(tasks=self.fleet.tasks[part], next_page_token=token)


class _ExecutionService(_Servicer, execution_pb2_grpc.ExecutionServiceServicer):
    def RunTask(
        self, request: execution_pb2.RunTaskRequest, context: grpc.ServicerContext
    ) -> execution_pb2.RunTaskResponse:
        self._take(request, context)
        return execution_pb2.RunTaskResponse(run_id="run-1", executions=self.fleet.executions)

    def GetExecution(
        self, request: execution_pb2.GetExecutionRequest, context: grpc.ServicerContext
    ) -> execution_pb2.GetExecutionResponse:
        self._take(request, context)
        return execution_pb2.GetExecutionResponse(execution=self.fleet.executions[0])

    def ListExecutions(
        self, request: execution_pb2.ListExecutionsRequest, context: grpc.ServicerContext
    ) -> execution_pb2.ListExecutionsResponse:
        self._take(request, context)
        part, token = self._page(request.page_token, len(self.fleet.executions))
        found = self.fleet.executions[part][: request.page_size]
        return execution_pb2.ListExecutionsResponse(executions=found, next_page_token=token)

    def WatchExecutions(
        self, request: execution_pb2.WatchExecutionsRequest, context: grpc.ServicerContext
    ) -> Iterator[execution_pb2.WatchExecutionsResponse]:
        self._take(request, context)
        while self.fleet.changes:
            change = self.fleet.changes.pop(0)
            if isinstance(change, Refusal):
                change.apply(context)
            else:
                yield execution_pb2.WatchExecutionsResponse(execution=change)

    def CancelExecution(
        self, request: execution_pb2.CancelExecutionRequest, context: grpc.ServicerContext
    ) -> execution_pb2.CancelExecutionResponse:
        self._take(request, context)
        return execution_pb2.CancelExecutionResponse(execution=self.fleet.executions[0])

    def PauseExecution(
        self, request: execution_pb2.PauseExecutionRequest, context: grpc.ServicerContext
    ) -> execution_pb2.PauseExecutionResponse:
        self._take(request, context)
        return execution_pb2.PauseExecutionResponse(execution=self.fleet.executions[0])

    def ResumeExecution(
        self, request: execution_pb2.ResumeExecutionRequest, context: grpc.ServicerContext
    ) -> execution_pb2.ResumeExecutionResponse:
        self._take(request, context)
        return execution_pb2.ResumeExecutionResponse(execution=self.fleet.executions[0])

    def GetArtifact(
        self, request: execution_pb2.GetArtifactRequest, context: grpc.ServicerContext
    ) -> Iterator[execution_pb2.GetArtifactResponse]:
        self._take(request, context)
        for piece in self.fleet.artifacts.get(request.sha256, ()):
            yield execution_pb2.GetArtifactResponse(data=piece)


def _canned(fleet: FakeFleet, service: ServiceDescriptor) -> grpc.GenericRpcHandler:
    """A service whose calls are answered with what `FakeFleet.answers` holds for them."""
    base = _Servicer(fleet)

    def unary(name: str) -> Callable[[Message, grpc.ServicerContext], Message]:
        def call(request: Message, context: grpc.ServicerContext) -> Message:
            base._take(request, context)
            answers = fleet.answers[name]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, Refusal):
                answer.apply(context)
                raise AssertionError("abort raises")
            return answer

        return call

    def stream(name: str) -> Callable[[Message, grpc.ServicerContext], Iterator[Message]]:
        def call(request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
            base._take(request, context)
            while fleet.answers.get(name):
                answer = fleet.answers[name].pop(0)
                if isinstance(answer, Refusal):
                    answer.apply(context)
                else:
                    yield answer

        return call

    handlers = {}
    for method in service.methods:
        deserializer = message_factory.GetMessageClass(method.input_type).FromString
        if method.server_streaming:
            made = grpc.unary_stream_rpc_method_handler(
                stream(method.name), request_deserializer=deserializer, response_serializer=_bytes
            )
        else:
            made = grpc.unary_unary_rpc_method_handler(
                unary(method.name), request_deserializer=deserializer, response_serializer=_bytes
            )
        handlers[method.name] = made
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def _bytes(message: Message) -> bytes:
    return message.SerializeToString()


@contextmanager
def running(fleet: FakeFleet) -> Iterator[str]:
    """Serves the fleet; gives the address."""
    server = grpc.server(ThreadPoolExecutor(THREADS))
    fleet_pb2_grpc.add_FleetServiceServicer_to_server(_FleetService(fleet), server)
    device_pb2_grpc.add_DeviceServiceServicer_to_server(_DeviceService(fleet), server)
    task_pb2_grpc.add_TaskServiceServicer_to_server(_TaskService(fleet), server)
    execution_pb2_grpc.add_ExecutionServiceServicer_to_server(_ExecutionService(fleet), server)
    for file, name in (
        (rollout_pb2, "RolloutService"),
        (schedule_pb2, "ScheduleService"),
        (admin_pb2, "AdminService"),
        (draft_pb2, "DraftService"),
    ):
        server.add_generic_rpc_handlers((_canned(fleet, file.DESCRIPTOR.services_by_name[name]),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(STOP_S).wait()


def execution(
    device: str = "phone-01",
    state: execution_pb2.ExecutionState.ValueType = execution_pb2.EXECUTION_STATE_SUCCEEDED,
    *,
    version: int = 1,
    steps_done: int = 0,
    step: str = "",
    result: execution_pb2.TaskResult | None = None,
) -> execution_pb2.Execution:
    """An execution of `shop-order` on a device, in run `run-1`."""
    return execution_pb2.Execution(
        execution_id=f"x-{device}",
        run_id="run-1",
        device=device,
        task_id="shop-order",
        revision=2,
        state=state,
        attempt=1,
        version=version,
        steps_done=steps_done,
        step_count=4,
        current_step_id=step,
        result=result,
    )
