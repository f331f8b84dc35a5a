"""Events as an agent would send them, for tests without an agent."""

from __future__ import annotations

from base64 import b64encode
from datetime import timedelta
from hashlib import sha256
from typing import TypeVar

from droidfleet_shared.bus.messages import (
    ArtifactStored,
    EventBase,
    ExecutionAccepted,
    ExecutionFinished,
    ExecutionRejected,
    ExecutionStarted,
    StepFinished,
    StepStarted,
)
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import ArtifactModel
from support.controller import step_result, task_result
from unit.controller.builders import NOW

E = TypeVar("E", bound=EventBase)


def _event(kind: type[E], execution_id: str, sequence: int, attempt: int, agent: str, **fields: object) -> E:
    base = {
        "agent": agent,
        "execution_id": execution_id,
        "attempt": attempt,
        "sequence": sequence,
        "at": NOW + timedelta(seconds=sequence % 1_000),
    }
    return kind.model_validate({**base, **fields})


def accepted(execution_id: str, *, sequence: int = 1, attempt: int = 1, agent: str = "phone-01") -> ExecutionAccepted:
    return _event(ExecutionAccepted, execution_id, sequence, attempt, agent)


def started(execution_id: str, *, sequence: int = 2, attempt: int = 1, agent: str = "phone-01") -> ExecutionStarted:
    return _event(ExecutionStarted, execution_id, sequence, attempt, agent)


def step_started(execution_id: str, step_id: str, *, sequence: int) -> StepStarted:
    return _event(StepStarted, execution_id, sequence, 1, "phone-01", step_id=step_id, path="/steps/0")


def step_finished(execution_id: str, step_id: str, *, sequence: int) -> StepFinished:
    return _event(StepFinished, execution_id, sequence, 1, "phone-01", result=step_result(step_id).model_dump())


def artifact(
    execution_id: str,
    data: bytes,
    *,
    sequence: int,
    attempt: int = 1,
    agent: str = "phone-01",
    name: str = "page",
    digest: str = "",
) -> ArtifactStored:
    stored = ArtifactModel(
        name=name, media_type="image/png", sha256=digest or sha256(data).hexdigest(), size_bytes=len(data)
    )
    return _event(
        ArtifactStored,
        execution_id,
        sequence,
        attempt,
        agent,
        step_id="look",
        path="/steps/0",
        artifact=stored.model_dump(),
        data=b64encode(data).decode(),
    )


def rejected(execution_id: str, code: str, *, sequence: int = 1, agent: str = "phone-01") -> ExecutionRejected:
    return _event(ExecutionRejected, execution_id, sequence, 1, agent, code=code, message="no")


def finished(
    execution_id: str,
    *,
    code: StepCode = StepCode.OK,
    sequence: int = 9,
    attempt: int = 1,
    agent: str = "phone-01",
    steps: int = 2,
) -> ExecutionFinished:
    result = task_result(agent, execution_id, code=code, steps=steps)
    return _event(ExecutionFinished, execution_id, sequence, attempt, agent, result=result.model_dump())
