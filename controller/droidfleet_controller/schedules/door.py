"""What schedules need of rollouts."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from droidfleet_controller.rollouts.rollout import Rollout
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.starting import Prepared
from droidfleet_controller.rollouts.states import ReasonCode


class RolloutDoor(Protocol):
    """`Rollouts`, as schedules use it; what each does is said there."""

    async def prepare(self, spec: RolloutSpec) -> Prepared: ...

    def create(
        self,
        connection: Connection,
        prepared: Prepared,
        *,
        now: datetime,
        request_id: str,
        actor: str,
        schedule_id: str = "",
        intended_at: datetime | None = None,
    ) -> Rollout: ...

    def adopt(self, rollout: Rollout) -> None: ...

    async def end(self, rollout_id: str, *, reason_code: ReasonCode, reason: str, actor: str) -> None: ...
