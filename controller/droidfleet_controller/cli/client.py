"""The one gRPC client of the command line: every call has a deadline, every failure leaves as a domain error.

Owns the channel, deadlines, pages and the resumption of streams; knows nothing of terminals. Messages are passed on as
they are: the command line is one of the doors at which protobuf types may stop.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TypeVar

import grpc

from droidfleet.v1 import (
    device_pb2,
    device_pb2_grpc,
    execution_pb2,
    execution_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
)
from droidfleet_controller.cli.access import Access
from droidfleet_controller.cli.failures import from_rpc
from droidfleet_shared.errors import UnavailableError
from droidfleet_shared.net import parse_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

CALL_S = 10.0
"""Deadline of a call that reads or changes one thing."""

RUN_S = 60.0
"""Deadline of a run: one transaction for up to 10,000 devices."""

LOOK_S = 30.0
"""Deadline of a look at a phone: the first one may have to start what the phone answers with."""

STEP_S = 120.0
"""Deadline of one live step, which the agent bounds at 100 seconds."""

STREAM_S = 60.0
"""How long one stream stays open before it is opened anew, so that a dead peer is noticed; a watch has no end."""

RECONNECT_S = 30.0
"""How long a stream that worked once may be without its controller (a restart takes seconds)."""

RETRY_S = 0.5
"""Pause between two attempts to open a stream again."""

PAGE_SIZE = 1000
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""A full page of executions with their outputs; the default of 4 MiB is too small for it."""

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A proxy meant for web traffic would swallow calls to loopback and to machines beside us.
    ("grpc.enable_http_proxy", 0),
)

T = TypeVar("T")


class ControllerClient:
    """A context manager around one channel to the controller at ``address`` (``host:port``).

    Raises `InvalidInputError` (``BAD_ADDRESS``) for another form. Every method raises a `DroidfleetError` and nothing
    else: `UnavailableError` with code ``CONTROLLER_UNAVAILABLE`` when nobody answers, else what the controller said.
    """

    def __init__(self, address: str, *, access: Access | None = None, reconnect_s: float = RECONNECT_S) -> None:
        self.address = str(parse_endpoint(address, setting="--api"))
        self._reconnect_s = reconnect_s
        access = access or Access.of_environment()
        self._metadata = access.metadata(self.address)
        self._channel = access.channel(self.address, options=_OPTIONS)
        self._fleet = fleet_pb2_grpc.FleetServiceStub(self._channel)
        self._devices = device_pb2_grpc.DeviceServiceStub(self._channel)
        self._tasks = task_pb2_grpc.TaskServiceStub(self._channel)
        self._executions = execution_pb2_grpc.ExecutionServiceStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise from_rpc(error, address=self.address) from error

    # --- fleet

    def devices(self, states: Sequence[fleet_pb2.DeviceState.ValueType] = ()) -> Iterator[fleet_pb2.Device]:
        """All devices in these states (all when empty), by name."""
        token = ""
        while True:
            request = fleet_pb2.ListDevicesRequest(page_size=PAGE_SIZE, page_token=token, states=states)
            with self._errors():
                page = self._fleet.ListDevices(request, timeout=CALL_S, metadata=self._metadata)
            yield from page.devices
            token = page.next_page_token
            if not token:
                return

    def device(self, name: str) -> fleet_pb2.Device:
        """One device."""
        with self._errors():
            return self._fleet.GetDevice(
                fleet_pb2.GetDeviceRequest(name=name), timeout=CALL_S, metadata=self._metadata
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
            return self._fleet.WatchEvents(request, timeout=STREAM_S, metadata=self._metadata)

        for response in self._resumed(opened, quiet=follow):
            cursor = response.event.event_id
            yield response.event

    # --- one device, live

    def tree(self, device: str, *, with_xml: bool = False) -> device_pb2.GetTreeResponse:
        """What the device's active window shows."""
        request = device_pb2.GetTreeRequest(device=device, with_xml=with_xml)
        with self._errors():
            return self._devices.GetTree(request, timeout=LOOK_S, metadata=self._metadata)

    def screenshot(self, device: str) -> device_pb2.GetScreenshotResponse:
        """A picture of the device's display."""
        request = device_pb2.GetScreenshotRequest(device=device)
        with self._errors():
            return self._devices.GetScreenshot(request, timeout=LOOK_S, metadata=self._metadata)

    def open_session(self, device: str, *, holder: str, ttl: timedelta) -> str:
        """The id of a session, which holds for ``ttl`` unless it is renewed."""
        request = device_pb2.OpenSessionRequest(device=device, holder=holder)
        request.ttl.FromTimedelta(ttl)
        with self._errors():
            return self._devices.OpenSession(request, timeout=CALL_S, metadata=self._metadata).session_id

    def renew_session(self, device: str, session_id: str) -> None:
        """Keeps a session open for as long again."""
        request = device_pb2.RenewSessionRequest(device=device, session_id=session_id)
        with self._errors():
            self._devices.RenewSession(request, timeout=CALL_S, metadata=self._metadata)

    def close_session(self, device: str, session_id: str) -> None:
        """Ends a session."""
        request = device_pb2.CloseSessionRequest(device=device, session_id=session_id)
        with self._errors():
            self._devices.CloseSession(request, timeout=CALL_S, metadata=self._metadata)

    def run_step(self, device: str, session_id: str, step: str, *, request_id: str) -> execution_pb2.TaskResult:
        """The result of one step, which is run once for each ``request_id``."""
        request = device_pb2.RunStepRequest(device=device, session_id=session_id, step_json=step, request_id=request_id)
        with self._errors():
            return self._devices.RunStep(request, timeout=STEP_S, metadata=self._metadata).result

    # --- tasks

    def validate_task(self, document: str) -> task_pb2.ValidateTaskResponse:
        """Everything that the controller finds wrong with a document."""
        request = task_pb2.ValidateTaskRequest(document_json=document)
        with self._errors():
            return self._tasks.ValidateTask(request, timeout=CALL_S, metadata=self._metadata)

    def save_task(self, document: str) -> task_pb2.SaveTaskResponse:
        """Stores a task template under its own id."""
        with self._errors():
            return self._tasks.SaveTask(
                task_pb2.SaveTaskRequest(document_json=document), timeout=CALL_S, metadata=self._metadata
            )

    def task(self, task_id: str, *, revision: int = 0) -> task_pb2.TaskTemplate:
        """One stored revision with its text; 0 for the newest."""
        request = task_pb2.GetTaskRequest(task_id=task_id, revision=revision)
        with self._errors():
            return self._tasks.GetTask(request, timeout=CALL_S, metadata=self._metadata).task

    def tasks(self) -> Iterator[task_pb2.TaskTemplate]:
        """The newest revision of each task, without texts, by id."""
        token = ""
        while True:
            request = task_pb2.ListTasksRequest(page_size=PAGE_SIZE, page_token=token)
            with self._errors():
                page = self._tasks.ListTasks(request, timeout=CALL_S, metadata=self._metadata)
            yield from page.tasks
            token = page.next_page_token
            if not token:
                return

    # --- executions

    def run_task(
        self,
        task: execution_pb2.TaskRef | str,
        *,
        devices: Sequence[str],
        request_id: str,
        expires_in: timedelta | None = None,
        values: Mapping[str, object] | None = None,
        random_seed: int | None = None,
    ) -> execution_pb2.RunTaskResponse:
        """Creates one execution a device, all or none; ``task`` is a reference or a document's text, ``values`` are for
        its inputs."""
        request = execution_pb2.RunTaskRequest(devices=devices, request_id=request_id, random_seed=random_seed)
        if values:
            request.input_values_json = json.dumps(values, ensure_ascii=False)
        if isinstance(task, execution_pb2.TaskRef):
            request.ref.CopyFrom(task)
        else:
            request.document_json = task
        if expires_in is not None:
            request.expires_in.FromTimedelta(expires_in)
        with self._errors():
            return self._executions.RunTask(request, timeout=RUN_S, metadata=self._metadata)

    def execution(self, execution_id: str) -> execution_pb2.Execution:
        """One execution with its result."""
        request = execution_pb2.GetExecutionRequest(execution_id=execution_id)
        with self._errors():
            return self._executions.GetExecution(request, timeout=CALL_S, metadata=self._metadata).execution

    def artifact(self, execution_id: str, sha256: str) -> bytes:
        """The content of an artifact, as its digest says.

        Raises:
            UnavailableError: ``ARTIFACT_BROKEN``, what came is something else.
        """
        request = execution_pb2.GetArtifactRequest(execution_id=execution_id, sha256=sha256)
        with self._errors():
            pieces = self._executions.GetArtifact(request, timeout=CALL_S, metadata=self._metadata)
            data = b"".join(piece.data for piece in pieces)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise UnavailableError("ARTIFACT_BROKEN", "the artifact did not arrive as it is.", hint="Fetch it again.")
        return data

    def executions(
        self,
        *,
        limit: int,
        device: str = "",
        task_id: str = "",
        run_id: str = "",
        states: Sequence[execution_pb2.ExecutionState.ValueType] = (),
    ) -> Iterator[execution_pb2.Execution]:
        """At most ``limit`` executions, newest first, results without their steps."""
        token = ""
        left = limit
        while left > 0:
            request = execution_pb2.ListExecutionsRequest(
                page_size=min(left, PAGE_SIZE),
                page_token=token,
                device=device,
                task_id=task_id,
                run_id=run_id,
                states=states,
            )
            with self._errors():
                page = self._executions.ListExecutions(request, timeout=CALL_S, metadata=self._metadata)
            yield from page.executions
            left -= len(page.executions)
            token = page.next_page_token
            if not token:
                return

    def watch(self, execution_ids: Sequence[str] = (), *, run_id: str = "") -> Iterator[execution_pb2.Execution]:
        """Each execution as it is and after every change, until all are terminal; survives a controller's restart."""
        request = execution_pb2.WatchExecutionsRequest(execution_ids=execution_ids, run_id=run_id)
        versions: dict[str, int] = {}

        def opened() -> Iterator[execution_pb2.WatchExecutionsResponse]:
            return self._executions.WatchExecutions(request, timeout=STREAM_S, metadata=self._metadata)

        for response in self._resumed(opened, quiet=False):
            execution = response.execution
            if versions.get(execution.execution_id) != execution.version:
                versions[execution.execution_id] = execution.version
                yield execution

    def cancel(self, execution_id: str, *, reason: str = "") -> execution_pb2.Execution:
        """Asks for the end of an execution."""
        request = execution_pb2.CancelExecutionRequest(execution_id=execution_id, reason=reason)
        with self._errors():
            return self._executions.CancelExecution(request, timeout=CALL_S, metadata=self._metadata).execution

    def _resumed(self, opened: Callable[[], Iterator[T]], *, quiet: bool) -> Iterator[T]:
        """A stream that is opened again at its deadline, and for ``reconnect_s`` after its controller went away.

        ``quiet``: a whole period without an item is normal. Otherwise each opening must bring one.
        """
        worked = False
        lost_at: float | None = None
        while True:
            brought = False
            try:
                for item in opened():
                    worked = brought = True
                    lost_at = None
                    yield item
            except grpc.RpcError as error:
                status = error.code()
                if status is grpc.StatusCode.DEADLINE_EXCEEDED and (brought or quiet):
                    worked = True
                    continue
                now = time.monotonic()
                lost_at = now if lost_at is None else lost_at
                if status is not grpc.StatusCode.UNAVAILABLE or not worked or now - lost_at >= self._reconnect_s:
                    raise from_rpc(error, address=self.address) from error
                time.sleep(RETRY_S)
            else:
                return
