"""What a run reports (protocol section 3). Read success from ``successful`` alone."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from droidfleet_shared.protocol.codes import Detail, StepCode


class ResultModel(BaseModel):
    """Base of result models: camelCase in JSON, immutable; unknown fields of a newer agent are dropped."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", use_enum_values=False
    )


OutputValue = str | list[str | None]
"""What a task read: one text, or a list; null in it where a row had no such node."""


class BoundsModel(ResultModel):
    """A rectangle in display pixels of the rotation at that look; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int


class TargetModel(ResultModel):
    """What a node looked like when it was decided on. Texts are as the phone gave them, cut at 256 characters."""

    text: str = ""
    description: str = ""
    resource_id: str = ""
    class_name: str = ""
    bounds: BoundsModel


class ArtifactModel(ResultModel):
    """Something too large for a result, kept beside it and named by its digest."""

    name: str
    media_type: str
    sha256: str
    size_bytes: int
    inline: str | None = Field(None, description="The content itself where it is small text, cut with a marker.")


class StepResult(ResultModel):
    """How one step went."""

    id: str
    action: str
    path: str = Field(description="JSON Pointer of the step in the task, e.g. `/steps/2`.")
    iteration: int = Field(
        0, description="How many rounds of the innermost REPEAT around it began before this one, in the whole run."
    )
    successful: bool
    code: StepCode
    detail: Detail = Detail.NONE
    message: str = ""
    started_at: datetime
    duration_ms: int
    looks: int = Field(description="How many snapshots of the screen the step took.")
    dispatched: int = Field(description="How many times the phone was told to do something.")
    target: TargetModel | None = None
    candidates: tuple[TargetModel, ...] = Field((), max_length=5)
    artifacts: tuple[ArtifactModel, ...] = ()


class TaskResult(ResultModel):
    """How the whole task went."""

    task_id: str
    revision: int
    agent_name: str
    execution_id: str
    successful: bool
    code: StepCode
    detail: Detail = Detail.NONE
    message: str = ""
    failed_step_id: str | None = None
    failed_screen: str = Field(
        "", description="What was in front when that step failed: `package/.Activity`, or the package alone."
    )
    acted: bool | None = Field(
        None,
        description="Whether the phone was told anything that may have changed something; null: it may have been.",
    )
    outputs: dict[str, OutputValue] = Field(default_factory=dict)
    steps: tuple[StepResult, ...] = ()
    steps_omitted: int = Field(
        0, description="How many step results of a long run were left out between the first and the last."
    )
    agent_restarts: int = Field(0, description="How often the agent broke off and went on with it.")
    random_seed: int | None = None
    started_at: datetime
    duration_ms: int
