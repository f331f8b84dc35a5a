"""People who ask things of the controller, patiently: what failed for want of it is asked again, under the same id."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

from droidfleet_controller.dispatch.runs import RunTask
from droidfleet_controller.fleet.groups import Update
from droidfleet_controller.rollouts.states import Control
from droidfleet_controller.rollouts.views import StartRollout
from droidfleet_shared.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    UnavailableError,
)
from simulation.scenario import (
    GROUP,
    TASKS,
    CancelCommand,
    Command,
    ControlCommand,
    GroupCommand,
    RolloutCommand,
    RunCommand,
)

if TYPE_CHECKING:
    from simulation.controllers import Controller
    from simulation.world import World

RETRY_S = 1.0
PATIENCE_S = 60.0
"""How long after the troubles a phone is still expected to report for the first time."""

CALL_S = 10.0
"""A call that has no answer by then is asked again: its controller has died, or its disk hangs."""


class Operators:
    """Gives the scenario's commands. ``runs``: the run that each request became."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.runs: dict[str, str] = {}
        self._prepared = False

    async def run(self) -> None:
        """Until every command is carried out."""
        async with asyncio.TaskGroup() as group:
            for command in self._world.scenario.commands:
                group.create_task(self._give(command), name=f"operator at {command.at_s:.1f}")

    async def _give(self, command: Command) -> None:
        await asyncio.sleep(command.at_s)
        if isinstance(command, RolloutCommand | GroupCommand) and not self._prepared:
            await self._patiently(self._prepare)
        await self._patiently(lambda controller: self._ask(controller, command))

    async def _patiently(self, ask: Callable[[Controller], Awaitable[None]]) -> None:
        history = self._world.history
        while True:
            controller = self._world.controller
            try:
                if controller is not None and controller.ready.is_set() and not controller.dead:
                    async with asyncio.timeout(CALL_S):
                        await ask(controller)
                    return
            except (UnavailableError, NotFoundError, TimeoutError) as error:
                # Not found: the agent has not reported for the first time, and one that is gone never will.
                patient = asyncio.get_running_loop().time() < self._world.scenario.troubled_s + PATIENCE_S
                tries_again = patient or not isinstance(error, NotFoundError)
                history.note("operator", f"is told {type(error).__name__}{', and tries again' if tries_again else ''}")
                if not tries_again:
                    return
            except (ConflictError, PreconditionError, InvalidInputError) as error:
                history.note("operator", f"is refused: {error.code}")
                return
            await asyncio.sleep(RETRY_S)

    async def _prepare(self, controller: Controller) -> None:
        """The tasks and the group that rollouts name; nothing happens where they are there."""
        try:
            controller.groups.get(GROUP)
        except NotFoundError:
            await controller.groups.create(GROUP, devices=self._world.scenario.phones, actor="simulation")
        for text in TASKS:
            await controller.library.save(text, actor="simulation")
        self._prepared = True

    async def end_rollouts(self) -> None:
        """Cancels what waits for a person, so that the world can come to an end."""
        for stage in self._world.stages.going_on():
            rollout_id = stage.rollout_id

            async def cancel(controller: Controller, rollout_id: str = rollout_id) -> None:
                await self._control(controller, rollout_id, Control.CANCEL)

            await self._patiently(cancel)

    async def _ask(self, controller: Controller, command: Command) -> None:
        history = self._world.history
        match command:
            case RunCommand():
                started = await controller.runs.start(
                    RunTask(
                        task=command.task,
                        devices=command.phones,
                        request_id=command.request_id,
                        expires_in=timedelta(seconds=command.expires_s),
                        actor="simulation",
                    )
                )
                known = self.runs.setdefault(command.request_id, started.run_id)
                history.note("operator", f"{command.request_id} is {started.run_id} on {len(started.executions)}")
                history.expect(known == started.run_id, f"{command.request_id} became two runs")
                devices = tuple(execution.device for execution in started.executions)
                history.expect(devices == command.phones, f"{command.request_id} was started on {devices}")
            case CancelCommand():
                live = self._world.ledger.live()
                if live:
                    chosen = live[command.choice % len(live)]
                    history.note("operator", f"cancels {chosen.execution_id}")
                    await controller.cancels.cancel(chosen.execution_id, reason="", actor="simulation")
            case RolloutCommand():
                asked = StartRollout(spec_json=command.spec, request_id=command.request_id, actor="simulation")
                begun = await controller.rollouts.start(asked)
                rollout_id = begun.view.rollout.rollout_id
                known = self.runs.setdefault(command.request_id, rollout_id)
                history.note("operator", f"{command.request_id} is {rollout_id}: {command.spec}")
                history.expect(known == rollout_id, f"{command.request_id} became two rollouts")
            case ControlCommand():
                going_on = self._world.stages.going_on()
                if going_on:
                    chosen_rollout = going_on[command.choice % len(going_on)].rollout_id
                    await self._control(controller, chosen_rollout, command.control)
            case GroupCommand():
                group = controller.groups.get(GROUP)
                add, gone = set(command.phones) - set(group.devices), set(group.devices) - set(command.phones)
                changes = Update(add=tuple(sorted(add)), remove=tuple(sorted(gone)))
                history.note("operator", f"the group is {', '.join(command.phones)}")
                await controller.groups.update(GROUP, changes, version=group.version, actor="simulation")
            case _:
                assert_never(command)

    async def _control(self, controller: Controller, rollout_id: str, control: Control) -> None:
        view = await controller.rollouts.get(rollout_id)
        self._world.history.note("operator", f"{control} of {rollout_id} in version {view.rollout.version}")
        await controller.rollouts.control(
            rollout_id, control, version=view.rollout.version, reason="", actor="simulation"
        )
