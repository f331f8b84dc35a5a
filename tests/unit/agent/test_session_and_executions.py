"""A lease and an execution exclude each other, in one whole agent."""

from __future__ import annotations

from droidfleet_agent.session.session import TICK_S
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import Message
from droidfleet_shared.bus.session import CloseSession, Leased, OpenSession
from support.assignments import AGENT, TAP_TEA, WAIT_FOR_NOTHING, assignment, document, task_text
from support.clock import settle
from support.waiting import until
from unit.agent.test_agent import Fleet, running

TTL_S = 30.0


async def ask(fleet: Fleet, method: str, request: Message) -> Leased:
    """The agent's answer, by way of the bus."""
    inbox = f"inbox.{len(fleet.bus.published)}"
    await fleet.bus.publish(subjects.rpc(AGENT, method), request.encode(), reply=inbox)
    await settle()
    (answer,) = [each for each in fleet.bus.published if each.subject == inbox]
    return Leased.decode(answer.data)


async def lease(fleet: Fleet) -> Leased:
    return await ask(fleet, "open", OpenSession(holder="anna", ttl_s=TTL_S))


async def test_an_assigned_execution_waits_for_the_end_of_a_session() -> None:
    async with running(Fleet()) as fleet:
        held = await lease(fleet)
        await fleet.assign(document(1, assignment("a", task=task_text(TAP_TEA))))
        assert fleet.kinds() == ["ExecutionAccepted"]
        await ask(fleet, "close", CloseSession(lease_id=held.lease_id))
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_an_execution_begins_after_the_lease_of_a_holder_that_was_killed() -> None:
    async with running(Fleet()) as fleet:
        await lease(fleet)
        await fleet.assign(document(1, assignment("a", task=task_text(TAP_TEA))))
        await fleet.clock.move(TTL_S - 1)
        assert fleet.kinds() == ["ExecutionAccepted"]
        await fleet.clock.move(1 + TICK_S)
        assert fleet.kinds()[-1] == "ExecutionFinished"


async def test_no_session_begins_while_an_execution_runs() -> None:
    async with running(Fleet()) as fleet:
        await fleet.assign(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING))))
        refused = await lease(fleet)
        assert refused.fault is not None
        assert refused.fault.code == "DEVICE_BUSY"
        await fleet.clock.move(30)
        # A picture of the failure is made in a thread.
        await until(lambda: fleet.kinds()[-1:] == ["ExecutionFinished"])
        assert (await lease(fleet)).fault is None
