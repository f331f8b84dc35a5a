"""A plan on a clock of its own, for tests that tell it what happens and look at what it decides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from droidfleet_controller.dispatch.execution import TaskText
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts import waves
from droidfleet_controller.rollouts.planner.plan import (
    Decided,
    Joined,
    Left,
    OpeningTimes,
    RetryBudget,
    RolloutPlan,
    TryEnded,
)
from droidfleet_controller.rollouts.rollout import Member, Rollout, Rule, Signature, Subject, Wait
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.states import Control, ReasonCode, RolloutState

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
ROLLOUT_ID = "r-1"

S = ExecutionState


class Planning:
    """A rollout over phones p1, p2, ... in the order of their numbers. ``document``: fields of the rollout document."""

    def __init__(
        self, phones: int, *, repeatable: bool = False, opening: OpeningTimes | None = None, **document: object
    ) -> None:
        devices = [f"p{number}" for number in range(1, phones + 1)]
        self.spec = RolloutSpec.model_validate(
            {"task": "t", "target": {"devices": devices}, "order": "LISTED", **document}
        )
        found = waves.sizes(self.spec.waves, phones)
        assert not found.issues
        rollout = Rollout(
            rollout_id=ROLLOUT_ID,
            spec=self.spec,
            subject=Subject(
                task_id="t",
                revision=1,
                text=TaskText(sha256="", add_name=False, add_revision=False),
                step_count=1,
                bound_s=60,
                repeatable=repeatable,
            ),
            state=RolloutState.RUNNING,
            wave_sizes=found.sizes,
            created_at=START,
            updated_at=START,
            moved_at=START,
        )
        members = [
            Member(device=place.device, place=place.place, wave=place.wave)
            for place in waves.layout(waves.places(ROLLOUT_ID, devices, self.spec.order), found.sizes)
        ]
        if self.spec.dry_run is not None:
            members.insert(0, Member(device=self.spec.dry_run.device, place=0, wave=0))
        self.now = START
        self.offline: set[str] = set()
        self.budget = RetryBudget()
        self.started: list[str] = []
        """Devices in the order in which they began, once for each try."""
        self.executions: dict[str, str] = {}
        self.last: Decided
        self.ids = 0
        self.plan = RolloutPlan(rollout, members, new_id=self._new_id, opening=opening)
        self.decide()

    def _new_id(self) -> str:
        self.ids += 1
        return f"x-{self.ids}"

    def decide(self, *, limit: int | None = None) -> Decided:
        """What follows now."""
        self.last = self.plan.decide(self.now, offline=self.offline, budget=self.budget, limit=limit)
        self.started += [start.device for start in self.last.starts]
        self.executions.update((start.device, start.execution_id) for start in self.last.starts)
        return self.last

    def wait(self, seconds: float) -> Decided:
        """Time passes."""
        self.now += timedelta(seconds=seconds)
        return self.decide()

    def end(
        self,
        *devices: str,
        state: ExecutionState = S.SUCCEEDED,
        code: str = "",
        acted: bool = False,
        step: str = "",
        execution_id: str | None = None,
    ) -> Decided:
        """The last tries of these phones end, and it is decided."""
        for device in devices:
            self.plan.take(
                TryEnded(
                    device=device,
                    execution_id=execution_id or self.executions[device],
                    state=state,
                    signature=Signature(code or state.value, step),
                    may_have_acted=acted,
                    reason=code,
                    at=self.now,
                )
            )
        return self.decide()

    def fail(self, *devices: str, code: str = "TARGET_NOT_FOUND", acted: bool = False, step: str = "s1") -> Decided:
        """They fail."""
        return self.end(*devices, state=S.FAILED, code=code, acted=acted, step=step)

    def join(self, device: str) -> Decided:
        self.plan.take(Joined(device=device, values_id="", at=self.now))
        return self.decide()

    def leave(self, *devices: str) -> Decided:
        for device in devices:
            self.plan.take(Left(device=device, at=self.now))
        return self.decide()

    def command(self, control: Control, *, version: int | None = None) -> Decided:
        """Somebody who has seen the rollout as it is asks for something; the answer is what was done at once."""
        decided = self.plan.command(
            control,
            version=self.rollout.version if version is None else version,
            now=self.now,
            actor="ann",
            reason="",
        )
        self.decide()
        return decided

    @property
    def rollout(self) -> Rollout:
        return self.plan.rollout

    @property
    def stands(self) -> tuple[RolloutState, ReasonCode, int]:
        """State, why, and the open wave."""
        return self.rollout.state, self.rollout.reason_code, self.rollout.wave

    def member(self, device: str) -> Member:
        found = self.plan.member(device)
        assert found is not None
        return found

    def said(self, rule: Rule) -> list[str]:
        """The sentences of the last decision by this rule."""
        return [decision.sentence for decision in self.last.decisions if decision.rule is rule]

    def waits(self) -> list[Wait]:
        return [wait.why for wait in self.last.waits]


def devices(decided: Decided) -> Sequence[str]:
    """Whose executions a decision begins."""
    return [start.device for start in decided.starts]
