"""Calls of ExecutionService."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import execution_pb2, execution_pb2_grpc
from droidfleet_controller.cli.client.channel import CALL_S, RUN_S, STREAM_S, Channel, Page
from droidfleet_shared.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta


class ExecutionCalls(Channel):
    """Runs of tasks, their results and artifacts."""

    @cached_property
    def _executions(self) -> execution_pb2_grpc.ExecutionServiceStub:
        return execution_pb2_grpc.ExecutionServiceStub(self.channel)

    def run_task(
        self,
        task: execution_pb2.TaskRef | str,
        *,
        devices: Sequence[str],
        request_id: str,
        expires_in: timedelta | None = None,
        values: Mapping[str, object] | None = None,
        random_seed: int | None = None,
        priority: int | None = None,
    ) -> execution_pb2.RunTaskResponse:
        """Creates one execution a device, all or none; ``task`` is a reference or a document's text, ``values`` are for
        its inputs."""
        request = execution_pb2.RunTaskRequest(
            devices=devices, request_id=request_id, random_seed=random_seed, priority=priority
        )
        if values:
            request.input_values_json = json.dumps(values, ensure_ascii=False)
        if isinstance(task, execution_pb2.TaskRef):
            request.ref.CopyFrom(task)
        else:
            request.document_json = task
        if expires_in is not None:
            request.expires_in.FromTimedelta(expires_in)
        with self.errors():
            return self._executions.RunTask(request, timeout=RUN_S, metadata=self.metadata)

    def execution(self, execution_id: str) -> execution_pb2.Execution:
        """One execution with its result."""
        request = execution_pb2.GetExecutionRequest(execution_id=execution_id)
        with self.errors():
            return self._executions.GetExecution(request, timeout=CALL_S, metadata=self.metadata).execution

    def artifact(self, execution_id: str, sha256: str) -> bytes:
        """The content of an artifact, as its digest says.

        Raises:
            UnavailableError: ``ARTIFACT_BROKEN``, what came is something else.
        """
        request = execution_pb2.GetArtifactRequest(execution_id=execution_id, sha256=sha256)
        with self.errors():
            pieces = self._executions.GetArtifact(request, timeout=CALL_S, metadata=self.metadata)
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

        def fetch(token: str, size: int) -> Page[execution_pb2.Execution]:
            request = execution_pb2.ListExecutionsRequest(
                page_size=size, page_token=token, device=device, task_id=task_id, run_id=run_id, states=states
            )
            page = self._executions.ListExecutions(request, timeout=CALL_S, metadata=self.metadata)
            return page.executions, page.next_page_token

        return self.paged(fetch, limit=limit)

    def watch(self, execution_ids: Sequence[str] = (), *, run_id: str = "") -> Iterator[execution_pb2.Execution]:
        """Each execution as it is and after every change, until all are terminal; survives a controller's restart."""
        request = execution_pb2.WatchExecutionsRequest(execution_ids=execution_ids, run_id=run_id)
        versions: dict[str, int] = {}

        def opened() -> Iterator[execution_pb2.WatchExecutionsResponse]:
            return self._executions.WatchExecutions(request, timeout=STREAM_S, metadata=self.metadata)

        for response in self.resumed(opened, quiet=False):
            execution = response.execution
            if versions.get(execution.execution_id) != execution.version:
                versions[execution.execution_id] = execution.version
                yield execution

    def cancel(self, execution_id: str, *, reason: str = "") -> execution_pb2.Execution:
        """Asks for the end of an execution."""
        request = execution_pb2.CancelExecutionRequest(execution_id=execution_id, reason=reason)
        with self.errors():
            return self._executions.CancelExecution(request, timeout=CALL_S, metadata=self.metadata).execution

    def pause(self, execution_id: str, *, reason: str = "") -> execution_pb2.Execution:
        """Asks for an execution to be held."""
        request = execution_pb2.PauseExecutionRequest(execution_id=execution_id, reason=reason)
        with self.errors():
            return self._executions.PauseExecution(request, timeout=CALL_S, metadata=self.metadata).execution

    def resume(self, execution_id: str) -> execution_pb2.Execution:
        """Lets an execution go on."""
        request = execution_pb2.ResumeExecutionRequest(execution_id=execution_id)
        with self.errors():
            return self._executions.ResumeExecution(request, timeout=CALL_S, metadata=self.metadata).execution
