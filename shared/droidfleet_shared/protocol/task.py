"""The task document (protocol section 1) and its template."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from droidfleet_shared.protocol.selector import ProtocolModel
from droidfleet_shared.protocol.steps import NAME_PATTERN, Step

SCHEMA_VERSION = 1
MAX_STEPS = 200
MAX_DEPTH = 5
MAX_REVISION = 2**31 - 1
"""What the API's int32 holds."""

MAX_DOCUMENT_BYTES = 256 * 1024
"""A desired-state document holds several tasks and must fit one bus message (1 MiB)."""

ADDRESS_BYTES = 1024
"""More than what dispatch writes into a template: an agent's name (128 characters) and a revision."""

TaskId = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME_PATTERN)]
AgentName = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME_PATTERN)]


class TaskTemplate(ProtocolModel):
    """A task without an agent: what the library stores. Dispatch makes one `Task` for each agent."""

    schema_version: Annotated[int, Field(ge=SCHEMA_VERSION, le=SCHEMA_VERSION)] = Field(
        description="Always the integer 1.", examples=[SCHEMA_VERSION]
    )
    task_id: TaskId = Field(description="Names the task in the library and in results.", examples=["buy-tea"])
    revision: Annotated[int, Field(ge=1, le=MAX_REVISION)] = Field(
        1, description="Grows with each change of the task.", examples=[1]
    )
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=MAX_STEPS, strict=False)] = Field(
        description="What to do, in order.", examples=[[{"id": "back", "action": "BACK"}]]
    )
    max_duration_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] | None = Field(
        None, description="Bound on the whole task.", examples=[60_000]
    )


class Task(TaskTemplate):
    """A task that bears the name of the one agent that may run it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "schemaVersion": 1,
                    "taskId": "go-back",
                    "assignedAgentName": "phone-01",
                    "steps": [{"id": "back", "action": "BACK"}],
                }
            ]
        }
    )

    assigned_agent_name: AgentName = Field(
        description="Compared with the agent's own name, exactly.", examples=["phone-01"]
    )
