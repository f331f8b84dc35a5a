"""Rollouts over a real SQLite file with the real parts of dispatch; agents are what a test says, time is moved by hand.

Nothing runs in the background: `settle` decides until nothing is due.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.states import LIVE
from droidfleet_controller.fleet.groups import Groups
from droidfleet_controller.fleet.labels import Labels
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.rollouts.states import Control, Outcome
from droidfleet_controller.rollouts.views import MemberFilter, MemberView, RolloutView, StartRollout
from droidfleet_controller.store import schema
from droidfleet_controller.store.database import Database
from droidfleet_shared.bus.messages import Event
from droidfleet_shared.protocol.codes import StepCode
from support.controller import document
from unit.controller.builders import beat
from unit.controller.dispatching import Dispatch, dispatching
from unit.controller.said import accepted, finished, started

MAX_ROUNDS = 200
"""Rounds of deciding after which a test that does not come to rest fails."""


def phones(count: int) -> tuple[str, ...]:
    """Names of so many phones."""
    return tuple(f"phone-{number:02}" for number in range(1, count + 1))


def spec(*devices: str, **fields: object) -> str:
    """A rollout document of the stored task `tea`, in the order listed."""
    target: Mapping[str, object] = {"devices": list(devices)}
    return json.dumps({"task": "tea", "target": target, "order": "LISTED", **fields})


@dataclass
class Rolling:
    """The parts, and shorthands for what tests ask of them."""

    dispatch: Dispatch
    labels: Labels
    groups: Groups
    targets: Targets
    rollouts: Rollouts

    async def start(self, text: str, *, request_id: str = "") -> RolloutView:
        """StartRollout, and what follows at once."""
        begun = await self.rollouts.start(StartRollout(spec_json=text, request_id=request_id, actor="test"))
        await self.settle()
        return await self.rollouts.get(begun.view.rollout.rollout_id)

    async def settle(self) -> None:
        """Decides until nothing is due."""
        await settle(self.rollouts)

    async def pass_time(self, seconds: float) -> None:
        """Lets time pass, and decides."""
        self.dispatch.clock.advance(seconds)
        for name, device in self.dispatch.registry.known.items():
            if device.heartbeat.leaving is False:
                await self.dispatch.heard(beat(agent=name))
        await self.dispatch.sweeper.sweep()
        self.rollouts._following.look()
        await self.settle()

    async def view(self, rollout_id: str) -> RolloutView:
        """GetRollout."""
        return await self.rollouts.get(rollout_id)

    async def control(self, rollout_id: str, control: Control, *, version: int | None = None) -> RolloutView:
        """ControlRollout with the newest version, and what follows at once."""
        seen = version or (await self.view(rollout_id)).rollout.version
        await self.rollouts.control(rollout_id, control, version=seen, reason="because", actor="test")
        await self.settle()
        return await self.view(rollout_id)

    async def members(self, rollout_id: str) -> Sequence[MemberView]:
        """All members."""
        return await self.rollouts.members(rollout_id, MemberFilter(), after=-1, limit=20_000)

    async def outcomes(self, rollout_id: str) -> dict[str, Outcome]:
        """How the members ended, by device, the dry run aside."""
        members = await self.members(rollout_id)
        return {view.member.device: view.member.outcome for view in members if view.member.wave > 0}

    async def live(self, rollout_id: str) -> dict[str, Execution]:
        """The live executions of a rollout, by device."""
        found = [each for each in await self.dispatch.all() if each.run_id == rollout_id and each.state in LIVE]
        assert len({each.device for each in found}) == len(found), "two executions at a time on one phone"
        return {each.device: each for each in found}

    async def tries(self, rollout_id: str) -> list[Execution]:
        """All executions of a rollout, oldest first."""
        return [each for each in reversed(await self.dispatch.all()) if each.run_id == rollout_id]

    async def begin(self, *executions: Execution) -> None:
        """The agents take them and begin."""
        said: list[Event] = []
        for each in executions:
            said += [accepted(each.execution_id, agent=each.device), started(each.execution_id, agent=each.device)]
        await self.dispatch.deliver(*said)
        await self.settle()

    async def finish(
        self, *executions: Execution, code: StepCode = StepCode.OK, acted: bool | None = False, screen: str = ""
    ) -> None:
        """The agents end them."""
        said: list[Event] = []
        for each in executions:
            event = finished(each.execution_id, agent=each.device, code=code)
            step = None if code is StepCode.OK else "back-1"
            said_of_it = {"acted": acted, "failed_screen": screen, "failed_step_id": step}
            result = event.result.model_copy(update=said_of_it)
            said += [
                accepted(each.execution_id, agent=each.device),
                started(each.execution_id, agent=each.device),
                event.model_copy(update={"result": result}),
            ]
        await self.dispatch.deliver(*said)
        await self.settle()

    async def run_all(self, rollout_id: str, *, code: StepCode = StepCode.OK) -> None:
        """The agents end everything that is live, again and again, until nothing is."""
        for _ in range(MAX_ROUNDS):
            live = await self.live(rollout_id)
            if not live:
                return
            await self.finish(*live.values(), code=code)
        raise AssertionError("the rollout does not come to rest")

    async def kept(self) -> dict[str, tuple[str, str]]:
        """What is kept of values: given and secrets, by id."""
        return await self.dispatch.database.run(_kept)

    async def count(self) -> int:
        """Rows in every table that a rollout writes."""

        def read(connection: Connection) -> int:
            tables = (
                schema.rollouts,
                schema.rollout_members,
                schema.rollout_decisions,
                schema.run_values,
                schema.executions,
            )
            return sum(len(connection.execute(select(table)).all()) for table in tables)

        return await self.dispatch.database.run(read)

    def second(self, database: Database | None = None) -> Rollouts:
        """Another planner of the same database, as a controller that was started again, or a second one."""
        return rollouts_of(self.dispatch, self.targets, database=database)


def _kept(connection: Connection) -> dict[str, tuple[str, str]]:
    rows = connection.execute(select(schema.run_values))
    return {row.values_id: (row.given, row.secrets) for row in rows}


async def settle(rollouts: Rollouts) -> None:
    """Decides until nothing is due."""
    following = rollouts._following
    for _ in range(MAX_ROUNDS):
        if not following._stragglers and not any(each.is_due for each in following._open.values()):
            return
        await following.decide()
    raise AssertionError("the rollouts do not come to rest")


def rollouts_of(dispatch: Dispatch, targets: Targets, *, database: Database | None = None) -> Rollouts:
    """The use cases over these parts."""
    return Rollouts(
        database=database or dispatch.database,
        clock=dispatch.clock,
        registry=dispatch.registry,
        targets=targets,
        publisher=dispatch.publisher,
        broadcast=dispatch.broadcast,
        cancels=dispatch.cancels,
        metrics=dispatch.metrics,
    )


@asynccontextmanager
async def rolling(folder: Path, *names: str, task: str = "", offline: Sequence[str] = ()) -> AsyncIterator[Rolling]:
    """Rollouts with these phones online, and the task stored."""
    async with dispatching(folder, *names) as dispatch:
        stored = dispatch.broadcast.events
        database, clock = dispatch.database, dispatch.clock
        all_labels = Labels(database=database, clock=clock, stored=stored)
        groups = Groups(database=database, clock=clock, registry=dispatch.registry, stored=stored)
        targets = Targets(registry=dispatch.registry, labels=all_labels, groups=groups)
        await dispatch.library.save(task or document(), actor="test")
        for name in offline:
            await dispatch.heard(beat(agent=name).model_copy(update={"leaving": True}))
        yield Rolling(
            dispatch=dispatch,
            labels=all_labels,
            groups=groups,
            targets=targets,
            rollouts=rollouts_of(dispatch, targets),
        )
