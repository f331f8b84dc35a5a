"""Values, secrets and artifacts through the real API, database and broker, to an agent with a phone in memory."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sqlite3
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import grpc
import pytest
import structlog

from droidfleet.v1 import execution_pb2
from droidfleet_agent.driver.memory import SMALLEST_JPEG
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.documents import execution_document
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import ArtifactStored, DesiredState
from droidfleet_shared.logging import configure_logging
from droidfleet_shared.protocol.result import ArtifactModel
from support.bus import running_link
from support.controller import CALL_S, Api, ScriptedAgent, document, running_controller, scripted_agent
from support.memory_agent import memory_agent
from support.screens import PACKAGE
from support.waiting import until

pytestmark = pytest.mark.integration

PHONE = "phone-01"
SECRET = "correct-horse-battery"
"""Long enough to be looked for in everything that is written."""

DECLARED = {"item": {"type": "string"}, "password": {"type": "secret"}}
SIGN_IN = json.dumps({
    "schemaVersion": 1,
    "taskId": "sign-in",
    "inputs": DECLARED,
    "steps": [
        {
            "id": "password",
            "action": "INPUT",
            "selector": {"resourceId": "password"},
            "value": "${inputs.password}",
        },
        {"id": "search", "action": "INPUT", "selector": {"resourceId": "search"}, "value": "${inputs.password}"},
        {"id": "read", "action": "EXTRACT_TEXT", "selector": {"resourceId": "search"}, "outputField": "typed"},
        {"id": "page", "action": "SCREENSHOT", "name": "page"},
        {"id": "never", "action": "WAIT", "selector": {"text": "${inputs.item}"}, "timeoutMs": 300},
    ],
})  # fmt: skip


async def run(
    api: Api, text: str, values: Mapping[str, object], *, seed: int | None = None, request_id: str = ""
) -> execution_pb2.Execution:
    request = execution_pb2.RunTaskRequest(
        document_json=text,
        devices=[PHONE],
        input_values_json=json.dumps(values),
        random_seed=seed,
        request_id=request_id,
    )
    return (await api.executions.RunTask(request, timeout=CALL_S)).executions[0]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that programs log in the test, as programs write it to a file."""
    before, handlers = structlog.get_config(), logging.getLogger().handlers[:]
    stream = io.StringIO()
    configure_logging("debug", stream=stream)
    yield stream
    structlog.configure(**before)
    logging.getLogger().handlers[:] = handlers


async def test_a_secret_reaches_the_phone_and_nothing_that_is_written_or_shown(
    tmp_path: Path, log: io.StringIO
) -> None:
    data = tmp_path / "data"
    async with running_controller(data) as api:
        async with memory_agent(api.nats, PHONE) as phone:
            begun = await run(api, SIGN_IN, {"item": "never there", "password": SECRET}, seed=7)
            ended = await api.until_state(begun.execution_id, "FAILED")
            assert [done.text for done in phone.done if done.call == "set_focused_text"] == [SECRET, SECRET]
            assert ended.result.failed_step_id == "never"
            assert json.loads(ended.result.outputs_json) == {"typed": "[secret]"}
            shown = await api.execution(begun.execution_id)
            assert json.loads(shown.input_values_json) == {"item": "never there", "password": "[secret]"}
            assert [artifact.artifact.name for artifact in shown.artifacts] == ["page"]
            said = [str(shown), str(ended), json.dumps(execution_document(shown))]
            said += [str(event) for event in await api.events()]
            assert not any(SECRET in text for text in said)
        # The agent is gone: what the database forgot and the broker does not list any more is nowhere.
        async with running_link(api.nats) as link:
            stored = await link.get_last(subjects.DESIRED_STREAM, subjects.desired(PHONE), timeout_s=CALL_S)
            assert stored is not None
            assert DesiredState.decode(stored.data).executions == ()
        dump = "\n".join(sqlite3.connect(data / "droidfleet.db").iterdump())
        assert "never there" in dump
        assert SECRET not in dump
        assert _files_with(data, SECRET) == []
    assert "execution_finished" in log.getvalue()
    assert SECRET not in log.getvalue()
    assert _files_with(data, SECRET) == []


async def test_a_failing_task_leaves_a_picture_that_can_be_fetched(tmp_path: Path) -> None:
    steps = [{"id": "never", "action": "WAIT", "selector": {"text": "never there"}, "timeoutMs": 300}]
    text = json.dumps({"schemaVersion": 1, "taskId": "look", "steps": steps})
    async with running_controller(tmp_path / "data") as api, memory_agent(api.nats, PHONE):
        begun = await run(api, text, {})
        ended = await api.until_state(begun.execution_id, "FAILED")
        assert (ended.result.failed_screen, ended.result.acted) == (f"{PACKAGE}/.MainActivity", False)
        [kept] = (await api.execution(begun.execution_id)).artifacts
        assert (kept.artifact.name, kept.step_id, kept.available) == ("failure", "never", True)
        with ControllerClient(api.address) as client:
            picture = await asyncio.to_thread(client.artifact, begun.execution_id, kept.artifact.sha256)
        assert picture == SMALLEST_JPEG


def _files_with(folder: Path, text: str) -> list[str]:
    """Files that hold the text, those of the broker left out: it keeps what it deleted until it needs the place
    (docs/operations.md says so)."""
    files = [file for file in folder.rglob("*") if file.is_file() and "nats" not in file.relative_to(folder).parts]
    return [file.name for file in files if text.encode() in file.read_bytes()]


async def test_the_data_folder_belongs_to_its_user_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    async with running_controller(data):
        assert data.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "values",
    [{}, {"item": "x", "password": SECRET, "itme": "x"}, {"item": 7, "password": SECRET}, {"item": "x", "password": 7}],
    ids=["missing", "unknown", "wrong type", "a secret of the wrong type"],
)
async def test_values_that_do_not_fit_create_nothing_and_are_issues_with_places(
    tmp_path: Path, values: dict[str, object]
) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, PHONE):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await run(api, document(inputs=DECLARED), values)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        metadata = {str(key): value for key, value in caught.value.trailing_metadata() or ()}
        assert metadata["droidfleet-code"] == "INVALID_TASK"
        [*issues] = json.loads(metadata["droidfleet-issues-bin"])
        # A missing value is an error of the object that lacks it.
        assert all(issue["path"].startswith("/inputValues") or not values for issue in issues)
        assert SECRET not in repr(caught.value) + repr(metadata)
        listed = await api.executions.ListExecutions(execution_pb2.ListExecutionsRequest(), timeout=CALL_S)
        assert len(listed.executions) == 0


async def test_the_same_request_with_other_values_is_refused(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, PHONE):
        values = {"item": "tea", "password": SECRET}
        first = await run(api, document(inputs=DECLARED), values, request_id="once")
        again = await run(api, document(inputs=DECLARED), values, request_id="once")
        assert again.execution_id == first.execution_id
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await run(api, document(inputs=DECLARED), values | {"password": "another"}, request_id="once")
        assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS


async def send_artifact(agent: ScriptedAgent, execution_id: str, data: bytes, *, name: str = "page") -> str:
    digest = sha256(data).hexdigest()
    model = ArtifactModel(name=name, media_type="image/jpeg", sha256=digest, size_bytes=len(data))
    await agent.send(
        ArtifactStored.model_validate(
            {
                **agent._next(execution_id, 1, None),
                "step_id": "back-0",
                "path": "/steps/0",
                "artifact": model.model_dump(),
                "data": b64encode(data).decode(),
            }
        )
    )
    return digest


async def test_many_large_artifacts_arrive_and_can_be_fetched(tmp_path: Path) -> None:
    pictures = [bytes([number]) * 590_000 for number in range(30)]
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, PHONE) as agent:
        begun = (await api.run(document(), PHONE)).executions[0]
        await agent.assigned(begun.execution_id)
        await agent.accept(begun.execution_id)
        await agent.start(begun.execution_id)
        digests = [await send_artifact(agent, begun.execution_id, picture) for picture in pictures]
        await agent.finish(begun.execution_id)
        await api.until_state(begun.execution_id, "SUCCEEDED")
        shown = await api.execution(begun.execution_id)
        assert [each.artifact.sha256 for each in shown.artifacts] == digests
        client = ControllerClient(api.address)
        with client:
            assert await asyncio.to_thread(client.artifact, begun.execution_id, digests[7]) == pictures[7]
        request = execution_pb2.GetArtifactRequest(execution_id=begun.execution_id, sha256="../../droidfleet.db")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            _ = [piece async for piece in api.executions.GetArtifact(request, timeout=CALL_S)]
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_what_a_crash_left_is_swept_at_the_start(tmp_path: Path) -> None:
    stray = tmp_path / "data" / "artifacts" / "aa" / ("a" * 64)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"nobody knows it")
    async with running_controller(tmp_path / "data"):
        await until(lambda: not stray.exists())
