"""A task through the real API, database and broker to a scripted agent and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.controller import document, running_controller, scripted_agent

pytestmark = pytest.mark.integration


async def test_a_document_reaches_the_agent_and_its_result_comes_back(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        started = await api.run(document(), "phone-01")
        execution_id = started.executions[0].execution_id
        await agent.run(execution_id)
        ended = await api.until_state(execution_id, "SUCCEEDED")
        assert [step.id for step in ended.result.steps] == ["back-0", "back-1"]
        assert ended.result.successful
        await agent.until_recorded(execution_id)
