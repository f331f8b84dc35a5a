"""What the fleet's own tools are called with. `tools.md` says what the fields mean; here is what they may be."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from droidfleet_designer.tools.arguments import Arguments

MAX_LISTED = 100
DEFAULT_LISTED = 20

Name = Annotated[str, Field(min_length=1, max_length=128)]


class LeaseDevice(Arguments):
    """Of `lease_device`."""

    device: Name


class ReleaseDevice(Arguments):
    """Of `release_device`."""

    lease: Name


class Screenshot(Arguments):
    """Of `screenshot`."""

    device: Name


class Tree(Arguments):
    """Of `tree`."""

    device: Name


class ValidateTask(Arguments):
    """Of `validate_task`."""

    task: dict[str, JsonValue]


class RunTask(Arguments):
    """Of `run_task`: a task of the library, or a document."""

    device: Name
    lease: Name | None = None
    task_id: Name | None = None
    task: dict[str, JsonValue] | None = None
    inputs: dict[str, JsonValue] = Field(default_factory=dict)
    request_id: Annotated[str, Field(max_length=200)] = ""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.task_id is None) == (self.task is None):
            raise ValueError("exactly one of task_id and task")
        return self


class ListTasks(Arguments):
    """Of `list_tasks`."""


class GetTask(Arguments):
    """Of `get_task`."""

    task_id: Name


class ListExecutions(Arguments):
    """Of `list_executions`."""

    device: str = ""
    task_id: str = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = DEFAULT_LISTED


class GetExecution(Arguments):
    """Of `get_execution`."""

    execution_id: Name


class ProtocolReference(Arguments):
    """Of `protocol_reference`."""
