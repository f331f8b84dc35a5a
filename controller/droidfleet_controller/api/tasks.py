"""TaskService."""

from __future__ import annotations

from typing import Any

from grpc import aio

from droidfleet.v1 import task_pb2, task_pb2_grpc
from droidfleet_controller.api import convert, pages
from droidfleet_controller.tasks.library import Library
from droidfleet_shared.errors import InvalidInputError

Context = aio.ServicerContext[Any, Any]

_SCOPE = "tasks"


class TaskServicer(task_pb2_grpc.TaskServiceServicer):
    """The service over the library."""

    def __init__(self, *, library: Library) -> None:
        self._library = library

    async def ValidateTask(
        self, request: task_pb2.ValidateTaskRequest, context: Context
    ) -> task_pb2.ValidateTaskResponse:
        validation = self._library.validate(request.document_json)
        return task_pb2.ValidateTaskResponse(
            valid=validation.valid,
            errors=convert.issues_to_pb(validation.errors),
            warnings=convert.issues_to_pb(validation.warnings),
        )

    async def SaveTask(self, request: task_pb2.SaveTaskRequest, context: Context) -> task_pb2.SaveTaskResponse:
        saved = await self._library.save(request.document_json, actor=context.peer())
        return task_pb2.SaveTaskResponse(
            task=convert.task_to_pb(saved.task),
            created=saved.created,
            warnings=convert.issues_to_pb(saved.warnings),
        )

    async def GetTask(self, request: task_pb2.GetTaskRequest, context: Context) -> task_pb2.GetTaskResponse:
        task = await self._library.get(request.task_id, revision(request.revision))
        return task_pb2.GetTaskResponse(task=convert.task_to_pb(task))

    async def ListTasks(self, request: task_pb2.ListTasksRequest, context: Context) -> task_pb2.ListTasksResponse:
        limit = pages.size(request.page_size)
        after = pages.text_place(request.page_token, scope=_SCOPE)
        found = await self._library.page(after=after, limit=limit + 1)
        shown, token = pages.cut(found, limit=limit, scope=_SCOPE, place=lambda each: each.task_id)
        return task_pb2.ListTasksResponse(
            tasks=[convert.task_to_pb(task) for task in shown],
            next_page_token=token,
        )


def revision(asked: int) -> int | None:
    """The revision asked for; None for the newest.

    Raises:
        InvalidInputError: ``BAD_REVISION``.
    """
    if asked < 0:
        raise InvalidInputError("BAD_REVISION", f"revision: 1 or more, or 0 for the newest, not {asked}.")
    return asked or None
