"""Each rule finds its breach, and a database as the controller writes it breaks none."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from droidfleet_controller.admin import invariants
from droidfleet_controller.admin.invariants import MAX_OF_A_KIND
from unit.controller.dispatching import Dispatch, dispatching
from unit.controller.said import accepted, finished, started

BREACHES = {
    "LIVE_WITHOUT_DEADLINE": "UPDATE executions SET check_at = NULL WHERE state = 'ASSIGNED'",
    "ENDED_WITH_DEADLINE": "UPDATE executions SET check_at = 1 WHERE state = 'SUCCEEDED'",
    "DEVICE_UNKNOWN": "DELETE FROM devices",
    "DOCUMENT_NOT_MADE": "DELETE FROM agent_documents",
    "TEXT_MISSING": "DELETE FROM texts WHERE sha256 = (SELECT sha256 FROM executions WHERE state = 'ASSIGNED')",
    "TASK_TEXT_MISSING": "DELETE FROM texts WHERE sha256 = (SELECT sha256 FROM tasks)",
    "VALUES_MISSING": "UPDATE executions SET values_id = 'gone' WHERE state = 'ASSIGNED'",
    "SECRETS_KEPT": "INSERT INTO run_values VALUES ('v', '{}', '{\"pin\": \"4711\"}', '')",
    "RESULT_MISSING": "DELETE FROM results",
    "COUNTED_TWICE": "INSERT INTO results SELECT execution_id, 2, device, label, received_at, body FROM results",
    "TWO_RUNNING": "UPDATE executions SET state = 'RUNNING' WHERE check_at IS NOT NULL",
    "PUBLISHED_AHEAD": "UPDATE agent_documents SET published_generation = generation + 1",
}


async def lived_in(dispatch: Dispatch) -> None:
    """One execution that ended, two that wait, a task in the library."""
    await dispatch.library.save(
        '{"schemaVersion": 1, "taskId": "kept", "steps": [{"id": "a", "action": "BACK"}]}', actor="t"
    )
    ended = (await dispatch.run("phone-01")).executions[0].execution_id
    await dispatch.deliver(accepted(ended), started(ended), finished(ended))
    for _ in range(2):
        await dispatch.run("phone-01")


async def codes(dispatch: Dispatch) -> set[str]:
    return {finding.code for finding in await dispatch.database.run(invariants.broken)}


async def test_what_the_controller_writes_breaks_no_rule(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await lived_in(dispatch)
        assert await codes(dispatch) == set()


@pytest.mark.parametrize("code", BREACHES)
async def test_a_breach_is_found(tmp_path: Path, code: str) -> None:
    async with dispatching(tmp_path) as dispatch:
        await lived_in(dispatch)
        await dispatch.database.run(lambda connection: connection.execute(text(BREACHES[code])))
        assert code in await codes(dispatch)


async def test_many_breaches_of_a_kind_are_counted_and_some_are_named(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        for _ in range(MAX_OF_A_KIND + 5):
            await dispatch.run("phone-01")
        await dispatch.database.run(lambda connection: connection.execute(text("DELETE FROM texts")))
        found = await dispatch.database.run(invariants.broken)
        assert len(found) == MAX_OF_A_KIND
        assert found[-1].message.endswith("(5 more like it)")


def test_every_rule_but_those_tested_elsewhere_has_its_breach_here() -> None:
    assert set(invariants.RULES) - set(BREACHES) == {"DATABASE_DAMAGED", "MEMBER_WITHOUT_EXECUTION"}
