"""Runs with values: what agents get, what stays, and what is forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from droidfleet_controller.dispatch.runs import TaskRef
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.store import run_values
from droidfleet_controller.tasks.values import RunValues
from droidfleet_shared.bus.messages import WINDOW, ExecutionFinished
from droidfleet_shared.errors import ConflictError, InvalidInputError
from droidfleet_shared.protocol.pointers import Json
from support.controller import document, task_result
from unit.controller.builders import NOW
from unit.controller.dispatching import Dispatch, dispatching

SECRET = "hunter2-is-a-bad-one"
DECLARED = {"item": {"type": "string"}, "pin": {"type": "secret"}}
BODY = document(inputs=DECLARED)
VALUES: dict[str, Json] = {"item": "green tea", "pin": SECRET}


def task_of(dispatch: Dispatch, agent: str = "phone-01", place: int = 0) -> dict[str, Json]:
    """The task in the agent's newest document."""
    read: dict[str, Json] = json.loads(dispatch.document(agent).executions[place].task)
    return read


async def stored(dispatch: Dispatch, run_id: str) -> RunValues:
    return (await dispatch.database.run(lambda connection: run_values.load(connection, [run_id])))[run_id]


def finished(agent: str, execution_id: str) -> ExecutionFinished:
    return ExecutionFinished(
        agent=agent, execution_id=execution_id, attempt=1, sequence=1, at=NOW, result=task_result(agent, execution_id)
    )


async def test_values_and_seed_are_in_what_each_agent_gets(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "a", "b") as dispatch:
        await dispatch.run("a", "b", text=BODY, values=VALUES, random_seed=7)
        for agent in ("a", "b"):
            task = task_of(dispatch, agent)
            assert (task["inputValues"], task["randomSeed"], task["assignedAgentName"]) == (VALUES, 7, agent)


async def test_values_of_a_stored_task_are_in_what_the_agent_gets(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.library.save(BODY, actor="test")
        await dispatch.run("phone-01", text=TaskRef(task_id="tea"), values=VALUES)
        task = task_of(dispatch)
        assert (task["inputValues"], task["revision"]) == (VALUES, 1)


async def test_what_waited_behind_others_gets_its_values_when_its_turn_comes(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        first = [await dispatch.run("phone-01") for _ in range(WINDOW)]
        await dispatch.run("phone-01", text=BODY, values=VALUES)
        await dispatch.deliver(finished("phone-01", first[0].executions[0].execution_id))
        assert task_of(dispatch, place=WINDOW - 1)["inputValues"] == VALUES


async def test_nothing_is_created_for_values_that_are_refused(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.library.save(BODY, actor="test")
        for text in (BODY, TaskRef(task_id="tea")):
            with pytest.raises(InvalidInputError) as caught:
                await dispatch.run("phone-01", text=text, values={"itme": "tea", "pin": SECRET})
            assert caught.value.code == "INVALID_TASK"
            assert SECRET not in str(caught.value)
        assert (await dispatch.all(), dispatch.publisher.submitted) == ([], [])


async def test_the_same_call_again_has_the_same_answer_and_other_values_are_refused(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        begun = await dispatch.run("phone-01", text=BODY, values=VALUES, request_id="once")
        again = await dispatch.run("phone-01", text=BODY, values=VALUES, request_id="once")
        assert again.run_id == begun.run_id
        for other in (VALUES | {"pin": "another one"}, VALUES | {"item": "coffee"}):
            with pytest.raises(ConflictError):
                await dispatch.run("phone-01", text=BODY, values=other, request_id="once")
        with pytest.raises(ConflictError):
            await dispatch.run("phone-01", text=BODY, values=VALUES, random_seed=1, request_id="once")


async def test_a_secret_is_forgotten_when_the_last_execution_of_its_run_has_ended(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "a", "b") as dispatch:
        begun = await dispatch.run("a", "b", text=BODY, values=VALUES, request_id="once")
        ids = {each.device: each.execution_id for each in begun.executions}
        await dispatch.deliver(finished("a", ids["a"]))
        assert (await stored(dispatch, begun.run_id)).secrets == {"pin": SECRET}
        await dispatch.cancels.cancel(ids["b"], reason="", actor="test")
        await dispatch.deliver(finished("b", ids["b"]))
        left = await stored(dispatch, begun.run_id)
        assert (left.values, left.secrets) == ({"item": "green tea"}, {"pin": None})
        again = await dispatch.run("a", "b", text=BODY, values=VALUES, request_id="once")
        assert again.run_id == begun.run_id


@pytest.mark.parametrize("in_document", [False, True], ids=["given", "in the document"])
async def test_no_byte_of_a_secret_is_left_in_the_files_of_the_database(tmp_path: Path, in_document: bool) -> None:
    async with dispatching(tmp_path) as dispatch:
        if in_document:
            begun = await dispatch.run("phone-01", text=document(inputs=DECLARED, inputValues=VALUES))
        else:
            begun = await dispatch.run("phone-01", text=BODY, values=VALUES)
        assert SECRET in dispatch.document().executions[0].task
        assert _files_with(tmp_path, SECRET)
        await dispatch.deliver(finished("phone-01", begun.executions[0].execution_id))
        assert (await dispatch.get(begun.executions[0].execution_id)).state is ExecutionState.SUCCEEDED
        assert _files_with(tmp_path, SECRET) == []
    assert _files_with(tmp_path, SECRET) == []


def _files_with(folder: Path, text: str) -> list[str]:
    return [file.name for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


async def test_a_secret_is_forgotten_also_when_its_execution_expires(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        for _ in range(WINDOW):
            await dispatch.run("phone-01")
        begun = await dispatch.run("phone-01", text=BODY, values=VALUES)
        [waiting] = begun.executions
        assert waiting.state is ExecutionState.QUEUED
        dispatch.clock.advance(7_200)
        await dispatch.sweeper.sweep()
        assert (await stored(dispatch, begun.run_id)).secrets == {"pin": None}
