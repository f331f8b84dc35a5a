"""People who ask things of the controller, patiently: what failed for want of it is asked again, under the same id."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from droidfleet_controller.dispatch.runs import RunTask
from droidfleet_shared.errors import NotFoundError, UnavailableError
from simulation.scenario import CancelCommand, Command, RunCommand

if TYPE_CHECKING:
    from simulation.controllers import Controller
    from simulation.world import World

RETRY_S = 1.0
CALL_S = 10.0
"""A call that has no answer by then is asked again: its controller has died, or its disk hangs."""


class Operators:
    """Gives the scenario's commands. ``runs``: the run that each request became."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.runs: dict[str, str] = {}

    async def run(self) -> None:
        """Until every command is carried out."""
        async with asyncio.TaskGroup() as group:
            for command in self._world.scenario.commands:
                group.create_task(self._give(command), name=f"operator at {command.at_s:.1f}")

    async def _give(self, command: Command) -> None:
        await asyncio.sleep(command.at_s)
        while True:
            controller = self._world.controller
            try:
                if controller is not None and controller.ready.is_set() and not controller.dead:
                    async with asyncio.timeout(CALL_S):
                        await self._ask(controller, command)
                    return
            except (UnavailableError, NotFoundError, TimeoutError) as error:
                # Not found: the agent has not reported for the first time.
                self._world.history.note("operator", f"is told {type(error).__name__}")
            await asyncio.sleep(RETRY_S)

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
