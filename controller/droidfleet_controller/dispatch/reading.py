"""Reading executions, and saying why one waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.store import artifacts, executions, run_values
from droidfleet_controller.store.artifacts import StoredArtifact
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.executions import Filter
from droidfleet_controller.tasks.values import RunValues
from droidfleet_shared.bus.port import Bus
from droidfleet_shared.errors import NotFoundError
from droidfleet_shared.protocol.pointers import Json

LEFT = "AGENT_ENDED: its agent was ended in order and has left it; the next process of the agent goes on with it."


@dataclass(frozen=True, slots=True)
class Detailed:
    """An execution with what is kept beside it. ``values``: of its run, by input, without secrets."""

    execution: Execution
    values: Mapping[str, Json]
    artifacts: Sequence[StoredArtifact]


class Executions:
    """Questions about executions. What is read says why it waits, as things are at this moment."""

    def __init__(self, *, database: Database, registry: Registry, bus: Bus) -> None:
        self._database = database
        self._registry = registry
        self._bus = bus

    async def get(self, execution_id: str) -> Execution:
        """One execution with its whole result.

        Raises:
            NotFoundError: ``EXECUTION_NOT_FOUND``.
        """
        return self.explained(await self._database.run(lambda connection: _find(connection, execution_id)))

    async def detailed(self, execution_id: str) -> Detailed:
        """One execution with its whole result, the values of its run and its artifacts.

        Raises:
            NotFoundError: ``EXECUTION_NOT_FOUND``.
        """

        def read(connection: Connection) -> Detailed:
            found = _find(connection, execution_id)
            values = run_values.load(connection, [found.text.values_id]).get(found.text.values_id, RunValues())
            return Detailed(found, values.shown(), artifacts.of_execution(connection, execution_id))

        detailed = await self._database.run(read)
        return replace(detailed, execution=self.explained(detailed.execution))

    async def page(self, wanted: Filter, *, before: int | None, limit: int) -> list[tuple[int, Execution]]:
        """Executions with their row numbers, newest first; results without their steps."""
        rows = await self._database.run(
            lambda connection: executions.page(connection, wanted, before=before, limit=limit)
        )
        return [(number, self.explained(execution)) for number, execution in rows]

    async def ids_of_run(self, run_id: str) -> frozenset[str]:
        """The ids of a run's executions.

        Raises:
            NotFoundError: ``RUN_NOT_FOUND``.
        """
        # A run without executions does not exist: they are created together.
        ids = await self._database.run(lambda connection: executions.ids_of_run(connection, run_id))
        if not ids:
            raise NotFoundError(
                "RUN_NOT_FOUND", f"no run {run_id!r}.", hint="List executions with: droidfleet execution list"
            )
        return frozenset(ids)

    async def require(self, execution_ids: frozenset[str]) -> list[Execution]:
        """These executions; results without their steps.

        Raises:
            NotFoundError: ``EXECUTION_NOT_FOUND`` for the first unknown one.
        """
        found = await self._database.run(lambda connection: executions.find(connection, execution_ids))
        for execution_id in sorted(execution_ids - found.keys()):
            raise not_found(execution_id)
        return list(found.values())

    async def backlog(self, devices: list[str]) -> dict[str, int]:
        """How many executions wait for each device; devices with none are left out."""
        return await self._database.run(lambda connection: executions.backlog(connection, devices))

    def explained(self, execution: Execution) -> Execution:
        """The execution with the reason of its waiting, where it waits and none is recorded."""
        device = self._registry.find(execution.device)
        if execution.reason:
            return execution
        if execution.state in {ExecutionState.RUNNING, ExecutionState.PAUSED}:
            left = device is not None and device.has_left(execution.execution_id)
            return replace(execution, reason=LEFT) if left else execution
        if execution.state not in {ExecutionState.QUEUED, ExecutionState.ASSIGNED}:
            return execution
        state = self._registry.state(device) if device else DeviceState.OFFLINE
        reason = waiting_reason(execution.state, device=state, broker=self._bus.connected)
        return replace(execution, reason=reason)


def _find(connection: Connection, execution_id: str) -> Execution:
    found = executions.find(connection, [execution_id]).get(execution_id)
    if found is None:
        raise not_found(execution_id)
    return replace(found, result=executions.result(connection, execution_id))


def waiting_reason(state: ExecutionState, *, device: DeviceState, broker: bool) -> str:
    """Why an execution in QUEUED or ASSIGNED waits, a stable code first; empty when it should start right away."""
    if not broker:
        return "BROKER_UNAVAILABLE: it is recorded, and goes out when the broker is back."
    if device is DeviceState.OFFLINE:
        return "DEVICE_OFFLINE: it waits until the agent is heard again, or expires."
    if device is DeviceState.PHONE_OFFLINE:
        return "PHONE_OFFLINE: the agent is heard, its phone is not connected or not authorized."
    if state is ExecutionState.QUEUED:
        return "QUEUED_BEHIND: others run on this device first."
    if device is DeviceState.BUSY:
        return "DEVICE_BUSY: the agent works on another execution."
    return ""


def not_found(execution_id: str) -> NotFoundError:
    """The error for an execution that does not exist."""
    return NotFoundError(
        "EXECUTION_NOT_FOUND",
        f"no execution {execution_id!r}.",
        hint="List executions with: droidfleet execution list",
    )
