"""The task document (protocol section 1) and its template."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from droidfleet_shared.protocol.selector import ProtocolModel
from droidfleet_shared.protocol.steps import Step

MAX_STEPS = 200
MAX_DEPTH = 5
MAX_DOCUMENT_BYTES = 256 * 1024
"""A desired-state document holds several tasks and must fit one bus message (1 MiB)."""

TaskId = Annotated[str, Field(min_length=1, max_length=128)]
AgentName = Annotated[str, Field(min_length=1, max_length=128)]


class TaskTemplate(ProtocolModel):
    """A task without an agent: what the library stores. Dispatch makes one `Task` for each agent."""

    schema_version: Literal[1] = Field(description="Always the integer 1.")
    task_id: TaskId = Field(description="Names the task in the library and in results.")
    revision: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(1, description="Grows with each change of the task.")
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=MAX_STEPS)] = Field(
        description="What to do, in order."
    )
    max_duration_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] | None = Field(
        None, description="Bound on the whole task."
    )


class Task(TaskTemplate):
    """A task that bears the name of the one agent that may run it."""

    assigned_agent_name: AgentName = Field(description="Compared with the agent's own name, exactly.")
