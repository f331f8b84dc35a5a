"""The task document (protocol section 1) and its template."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from droidfleet_shared.protocol.names import MAX_NAME_LENGTH, NAME_PATTERN, InputName, Text
from droidfleet_shared.protocol.selector import ProtocolModel
from droidfleet_shared.protocol.steps import Step
from droidfleet_shared.protocol.steps.flow import MAX_STEPS

SCHEMA_VERSION = 1
MAX_REVISION = 2**31 - 1
"""What the API's int32 holds."""

MAX_DOCUMENT_BYTES = 256 * 1024
"""A desired-state document holds several tasks and must fit one bus message (1 MiB)."""

ADDRESS_BYTES = 1024
"""More than what dispatch writes into a template: an agent's name (128 characters) and a revision."""

TaskId = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=NAME_PATTERN)]
AgentName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=NAME_PATTERN)]


MAX_INPUTS = 100
MAX_VALUE_CHARACTERS = 16_384
MAX_ARTIFACTS = 20
MAX_ARTIFACT_CHARACTERS = 64 * 1024
"""Of one picture in base64: a button of 48 KB of PNG, while the whole document stays within `MAX_DOCUMENT_BYTES`."""

MAX_SEED = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""

Value = Annotated[str, Field(max_length=MAX_VALUE_CHARACTERS)] | int | float | bool
"""The value of an input. The rules compare it with the declared type."""

ArtifactName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=NAME_PATTERN)]


class InputDeclaration(ProtocolModel):
    """A value that a task needs from outside. Without a default it must be given."""

    type: Literal["string", "integer", "number", "boolean", "secret"] = Field(
        description="What the value is. A `secret` is a text that no event, log or result ever shows.",
        examples=["string"],
    )
    default: Value | None = Field(None, description="The value when none is given.", examples=["green tea"])
    description: Text | None = Field(None, description="A text for people.", examples=["What to buy"])


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
    inputs: Annotated[dict[InputName, InputDeclaration], Field(max_length=MAX_INPUTS)] = Field(
        default_factory=dict, description="The values that the task needs.", examples=[{"item": {"type": "string"}}]
    )
    input_values: Annotated[dict[InputName, Value], Field(max_length=MAX_INPUTS)] = Field(
        default_factory=dict, description="Values for the declared inputs.", examples=[{"item": "green tea"}]
    )
    random_seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = Field(
        None, description="Drives `probability` and random delays; left out: drawn and reported.", examples=[7]
    )
    artifacts: Annotated[
        dict[ArtifactName, Annotated[str, Field(min_length=1, max_length=MAX_ARTIFACT_CHARACTERS)]],
        Field(max_length=MAX_ARTIFACTS),
    ] = Field(
        default_factory=dict,
        description="Pictures that `image` selectors compare with, PNG or JPEG in base64.",
        examples=[{"cart_icon": "iVBORw0KGgo="}],
    )
    max_duration_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] | None = Field(
        None, description="Bound on the whole task.", examples=[60_000]
    )
    repeatable: bool = Field(
        False, description="Running the task again does no harm, even where it has acted already.", examples=[True]
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
