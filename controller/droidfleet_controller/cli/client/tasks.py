"""Calls of TaskService."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from droidfleet.v1 import task_pb2, task_pb2_grpc
from droidfleet_controller.cli.client.channel import CALL_S, Channel, Page

if TYPE_CHECKING:
    from collections.abc import Iterator


class TaskCalls(Channel):
    """The library."""

    @cached_property
    def _tasks(self) -> task_pb2_grpc.TaskServiceStub:
        return task_pb2_grpc.TaskServiceStub(self.channel)

    def validate_task(self, document: str) -> task_pb2.ValidateTaskResponse:
        """Everything that the controller finds wrong with a document."""
        request = task_pb2.ValidateTaskRequest(document_json=document)
        with self.errors():
            return self._tasks.ValidateTask(request, timeout=CALL_S, metadata=self.metadata)

    def save_task(self, document: str) -> task_pb2.SaveTaskResponse:
        """Stores a task template under its own id."""
        with self.errors():
            return self._tasks.SaveTask(
                task_pb2.SaveTaskRequest(document_json=document), timeout=CALL_S, metadata=self.metadata
            )

    def task(self, task_id: str, *, revision: int = 0) -> task_pb2.TaskTemplate:
        """One stored revision with its text; 0 for the newest."""
        request = task_pb2.GetTaskRequest(task_id=task_id, revision=revision)
        with self.errors():
            return self._tasks.GetTask(request, timeout=CALL_S, metadata=self.metadata).task

    def tasks(self) -> Iterator[task_pb2.TaskTemplate]:
        """The newest revision of each task, without texts, by id."""

        def fetch(token: str, size: int) -> Page[task_pb2.TaskTemplate]:
            request = task_pb2.ListTasksRequest(page_size=size, page_token=token)
            page = self._tasks.ListTasks(request, timeout=CALL_S, metadata=self.metadata)
            return page.tasks, page.next_page_token

        return self.paged(fetch)
