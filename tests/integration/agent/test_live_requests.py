"""Live requests over a real nats-server, with no more permissions than an agent has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.session import Leased, Method, OpenSession, ReadTree, RunStep, SeenTree, StepRan
from integration.agent.test_agent_on_a_broker import running_agent
from support.assignments import AGENT, TAP_TEA
from support.bus import running_link
from support.nats import NatsServer
from support.stub_controller import stub_controller
from support.waiting import until

pytestmark = pytest.mark.integration


async def test_the_agents_own_permissions_are_enough_to_answer_live_requests(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "guarded", permissions={AGENT: subjects.agent_permissions(AGENT)})
    server.start()
    async with (
        stub_controller(server),
        running_agent(server) as running,
        running_link(server.url, user="controller") as link,
    ):
        await until(running.agent.granted.is_set)

        async def ask(method: Method, request: bytes) -> bytes:
            return (await link.request(subjects.rpc(AGENT, method), request, timeout_s=10)).data

        assert SeenTree.decode(await ask(Method.TREE, ReadTree().encode())).nodes
        lease = Leased.decode(await ask(Method.OPEN, OpenSession(holder="anna").encode()))
        step = RunStep(lease_id=lease.lease_id, request_id="one", step=json.dumps(TAP_TEA))
        ran = StepRan.decode(await ask(Method.STEP, step.encode()))
        assert ran.result is not None
        assert ran.result.code == "OK"
        assert len(running.phone.done) == 1
    server.stop()
