"""ExecutionService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from grpc import aio

from droidfleet.v1 import execution_pb2, execution_pb2_grpc
from droidfleet_controller.api import convert, pages
from droidfleet_controller.api.tasks import revision
from droidfleet_controller.dispatch.artifacts import Artifacts
from droidfleet_controller.dispatch.cancel import Cancels
from droidfleet_controller.dispatch.execution import NORMAL_PRIORITY, Execution
from droidfleet_controller.dispatch.pausing import Pauses
from droidfleet_controller.dispatch.reading import Executions
from droidfleet_controller.dispatch.runs import DEFAULT_EXPIRY, MAX_DEVICES, Runs, RunTask, TaskRef
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.store.executions import Filter
from droidfleet_controller.tasks.values import RunValues, read_values
from droidfleet_shared.errors import InvalidInputError

Context = aio.ServicerContext[Any, Any]

PIECE_BYTES = 64 * 1024
"""Of an artifact in one message: small beside every limit on the way."""


class ExecutionServicer(execution_pb2_grpc.ExecutionServiceServicer):
    """The service over dispatch."""

    def __init__(
        self,
        *,
        runs: Runs,
        executions: Executions,
        cancels: Cancels,
        pauses: Pauses,
        artifacts: Artifacts,
        broadcast: Broadcast,
    ) -> None:
        self._runs = runs
        self._executions = executions
        self._cancels = cancels
        self._pauses = pauses
        self._artifacts = artifacts
        self._broadcast = broadcast

    async def RunTask(self, request: execution_pb2.RunTaskRequest, context: Context) -> execution_pb2.RunTaskResponse:
        started = await self._runs.start(
            RunTask(
                task=_task(request),
                devices=tuple(request.devices),
                values=_values(request),
                request_id=request.request_id,
                expires_in=_expiry(request),
                priority=request.priority if request.HasField("priority") else NORMAL_PRIORITY,
                actor=context.peer(),
            )
        )
        return execution_pb2.RunTaskResponse(
            run_id=started.run_id, executions=[self._to_pb(execution) for execution in started.executions]
        )

    async def GetExecution(
        self, request: execution_pb2.GetExecutionRequest, context: Context
    ) -> execution_pb2.GetExecutionResponse:
        detailed = await self._executions.detailed(request.execution_id)
        return execution_pb2.GetExecutionResponse(execution=convert.detailed_to_pb(detailed))

    async def ListExecutions(
        self, request: execution_pb2.ListExecutionsRequest, context: Context
    ) -> execution_pb2.ListExecutionsResponse:
        wanted = Filter(
            device=request.device,
            task_id=request.task_id,
            run_id=request.run_id,
            states=tuple(sorted({_state(value) for value in request.states})),
        )
        scope = f"executions {wanted}"
        limit = pages.size(request.page_size)
        before = pages.number_place(request.page_token, scope=scope)
        rows = await self._executions.page(wanted, before=before, limit=limit + 1)
        shown, token = pages.cut(rows, limit=limit, scope=scope, place=lambda each: each[0])
        return execution_pb2.ListExecutionsResponse(
            executions=[convert.execution_to_pb(execution) for _, execution in shown],
            next_page_token=token,
        )

    async def WatchExecutions(
        self, request: execution_pb2.WatchExecutionsRequest, context: Context
    ) -> AsyncIterator[execution_pb2.WatchExecutionsResponse]:
        ids = await self._watched(request)
        with self._broadcast.watching(ids) as watch:
            # Subscribed first and read then, so that no change falls between the two.
            changed = await self._executions.require(ids)
            sent: dict[str, int] = {}
            going = set(ids)
            while True:
                for execution in changed:
                    if execution.version <= sent.get(execution.execution_id, 0):
                        continue
                    sent[execution.execution_id] = execution.version
                    yield execution_pb2.WatchExecutionsResponse(execution=await self._whole(execution))
                    if execution.terminal:
                        going.discard(execution.execution_id)
                if not going:
                    return
                changed = await watch.take()

    async def CancelExecution(
        self, request: execution_pb2.CancelExecutionRequest, context: Context
    ) -> execution_pb2.CancelExecutionResponse:
        execution = await self._cancels.cancel(request.execution_id, reason=request.reason, actor=context.peer())
        return execution_pb2.CancelExecutionResponse(execution=self._to_pb(execution))

    async def PauseExecution(
        self, request: execution_pb2.PauseExecutionRequest, context: Context
    ) -> execution_pb2.PauseExecutionResponse:
        execution = await self._pauses.pause(request.execution_id, reason=request.reason, actor=context.peer())
        return execution_pb2.PauseExecutionResponse(execution=self._to_pb(execution))

    async def ResumeExecution(
        self, request: execution_pb2.ResumeExecutionRequest, context: Context
    ) -> execution_pb2.ResumeExecutionResponse:
        execution = await self._pauses.resume(request.execution_id, actor=context.peer())
        return execution_pb2.ResumeExecutionResponse(execution=self._to_pb(execution))

    async def GetArtifact(
        self, request: execution_pb2.GetArtifactRequest, context: Context
    ) -> AsyncIterator[execution_pb2.GetArtifactResponse]:
        data = await self._artifacts.read(request.execution_id, request.sha256)
        for start in range(0, len(data), PIECE_BYTES):
            yield execution_pb2.GetArtifactResponse(data=data[start : start + PIECE_BYTES])

    def _to_pb(self, execution: Execution) -> execution_pb2.Execution:
        return convert.execution_to_pb(self._executions.explained(execution))

    async def _whole(self, execution: Execution) -> execution_pb2.Execution:
        if execution.result is not None and not execution.result.steps:
            execution = replace(execution, result=(await self._executions.get(execution.execution_id)).result)
        return self._to_pb(execution)

    async def _watched(self, request: execution_pb2.WatchExecutionsRequest) -> frozenset[str]:
        ids = frozenset(request.execution_ids)
        if bool(ids) == bool(request.run_id):
            raise InvalidInputError("BAD_WATCH", "either execution_ids or run_id.")
        if len(ids) > MAX_DEVICES:
            raise InvalidInputError("BAD_WATCH", f"at most {MAX_DEVICES} executions, not {len(ids)}.")
        if request.run_id:
            ids = await self._executions.ids_of_run(request.run_id)
        return ids


def _task(request: execution_pb2.RunTaskRequest) -> TaskRef | str:
    match request.WhichOneof("task"):
        case "ref":
            return TaskRef(task_id=request.ref.task_id, revision=revision(request.ref.revision))
        case "document_json":
            return request.document_json
        case _:
            raise InvalidInputError("MISSING_TASK", "either ref or document_json must be set.")


def _values(request: execution_pb2.RunTaskRequest) -> RunValues:
    seed = request.random_seed if request.HasField("random_seed") else None
    return read_values(request.input_values_json, random_seed=seed)


def _expiry(request: execution_pb2.RunTaskRequest) -> timedelta:
    if not request.HasField("expires_in"):
        return DEFAULT_EXPIRY
    try:
        return request.expires_in.ToTimedelta()
    except (OverflowError, ValueError):
        raise InvalidInputError("BAD_EXPIRY", "expires_in is not a duration that can be.") from None


def _state(value: execution_pb2.ExecutionState.ValueType) -> ExecutionState:
    try:
        return convert.execution_state_from(value)
    except ValueError:
        raise InvalidInputError("BAD_STATE", f"states: {value} is not a state of an execution.") from None
