"""`Engine`: runs the steps of one task in order and reports how each went."""

from __future__ import annotations

from droidfleet_shared.clock import Clock
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import Task

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.control import RunControl, RunObserver


class Engine:
    """Runs validated tasks against one phone, one at a time."""

    def __init__(self, phone: Phone, *, clock: Clock) -> None:
        self._phone = phone
        self._clock = clock

    async def run(
        self, task: Task, *, execution_id: str, agent_name: str, observer: RunObserver, control: RunControl
    ) -> TaskResult:
        """Runs a task to its end and returns what happened; a failing task is a result, never an exception.

        A task for another agent is answered with ``AGENT_MISMATCH`` and the phone is not asked anything.

        Raises:
            Whatever ``observer`` raises, and defects of the engine itself.
        """
        raise NotImplementedError
