"""Other AI clients at the fleet, by the real client of the protocol, over both transports; a real controller behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, TextContent

from droidfleet.v1 import device_pb2
from droidfleet_agent.driver.memory import MemoryPhone
from support.assignments import AGENT
from support.controller import CALL_S, Api, running_controller
from support.memory_agent import memory_agent
from support.waiting import POLL_S

pytestmark = pytest.mark.integration

PROGRAM = Path(sys.executable).with_name("droidfleet")
START_S = 30.0


@dataclass
class Fleet:
    """A controller with one phone."""

    api: Api
    phone: MemoryPhone

    async def free(self) -> bool:
        """Whether nobody holds the phone: it is taken and given back."""
        request = device_pb2.OpenSessionRequest(device=AGENT, holder="the test")
        try:
            opened = await self.api.devices.OpenSession(request, timeout=CALL_S)
        except Exception:
            return False
        close = device_pb2.CloseSessionRequest(device=AGENT, session_id=opened.session_id)
        await self.api.devices.CloseSession(close, timeout=CALL_S)
        return True


class Client:
    """A client of the protocol."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def call(self, tool: str, **arguments: object) -> CallToolResult:
        """Calls a tool."""
        async with asyncio.timeout(START_S):
            return await self._session.call_tool(tool, arguments)

    async def lease(self) -> str:
        """Takes the phone."""
        answer = await self.call("lease_device", device=AGENT)
        assert not answer.is_error, answer
        return str(answer.structured_content["lease"])

    async def tools(self) -> set[str]:
        """The names of the tools."""
        return {each.name for each in (await self._session.list_tools()).tools}


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Asks until it holds."""
    async with asyncio.timeout(START_S):
        while not await holds():  # noqa: ASYNC110 - what is asked for is another process's
            await asyncio.sleep(POLL_S)


def text_of(answer: CallToolResult) -> str:
    """What an answer says."""
    return "\n".join(each.text for each in answer.content if isinstance(each, TextContent))


@asynccontextmanager
async def a_fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with running_controller(tmp_path) as api, memory_agent(api.nats, AGENT) as phone:
        yield Fleet(api, phone)


def environment(fleet: Fleet) -> dict[str, str]:
    return {**os.environ, "DROIDFLEET_API": fleet.api.address}


@asynccontextmanager
async def by_stdio(fleet: Fleet) -> AsyncIterator[Client]:
    program = StdioServerParameters(command=str(PROGRAM), args=["mcp"], env=environment(fleet))
    async with stdio_client(program) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        yield Client(session)


@asynccontextmanager
async def http_server(fleet: Fleet, *options: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM), "mcp", "--http", "127.0.0.1:0", *options, env=environment(fleet), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(START_S):
            line = (await process.stderr.readline()).decode().strip()
        assert line.startswith("serving http://"), line
        yield line.removeprefix("serving "), process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(START_S):
                await process.wait()


@asynccontextmanager
async def by_http(url: str, *, token: str = "") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=START_S) as http,
        streamable_http_client(url, http_client=http) as (incoming, outgoing, *_),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        yield Client(session)


async def work(client: Client, fleet: Fleet) -> None:
    """Takes the phone, taps once, looks, gives it back."""
    assert {"lease_device", "tap", "run_task"} <= await client.tools()
    lease = await client.lease()
    assert "Tea" in text_of(await client.call("screen", lease=lease))
    number = 1 + next(
        place
        for place, line in enumerate(text_of(await client.call("screen", lease=lease)).splitlines()[2:])
        if '"Tea"' in line
    )
    tapped = await client.call("tap", lease=lease, screen=2, element=number)
    assert "Green tea" in text_of(tapped), tapped
    picture = await client.call("screenshot", device=AGENT)
    assert any(isinstance(each, ImageContent) for each in picture.content)
    await client.call("release_device", lease=lease)
    assert [each.call for each in fleet.phone.done] == ["tap"]
    assert await fleet.free()


async def test_a_client_works_a_phone_over_standard_input(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet, by_stdio(fleet) as client:
        await work(client, fleet)


async def test_a_client_works_a_phone_by_http(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet, http_server(fleet) as (url, _), by_http(url) as client:
        await work(client, fleet)


async def test_two_clients_do_not_work_one_phone(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet, http_server(fleet) as (url, _), AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(by_http(url)) for _ in range(2)]
        lease = await one.lease()
        refused = await two.call("lease_device", device=AGENT)
        assert (refused.is_error, refused.structured_content["code"]) == (True, "DEVICE_BUSY")
        run = await two.call("run_task", device=AGENT, task=HARMLESS)
        assert run.structured_content["code"] == "DEVICE_BUSY"
        assert "Tea" in text_of(await one.call("screen", lease=lease))
        broken = await one.call("run_task", device=AGENT, lease=lease, task=HARMLESS, inputs={"none": 1})
        assert broken.is_error
        assert "Tea" in text_of(await one.call("screen", lease=lease)), "a run that was refused costs no lease"
        await one.call("release_device", lease=lease)
        assert await two.lease()


async def test_a_phone_is_given_back_when_its_client_ends_or_the_server_does(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet:
        async with by_stdio(fleet) as client:
            await client.lease()
            assert not await fleet.free()
        await eventually(fleet.free)
        async with http_server(fleet) as (url, process), by_http(url) as client:
            await client.lease()
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
        await eventually(fleet.free)


async def test_a_task_runs_once_on_the_phone_that_its_client_holds(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet:
        task = {
            "schemaVersion": 1,
            "taskId": "read",
            "steps": [
                {"id": "tea", "action": "CLICK", "selector": {"text": "Tea"}},
                {"id": "name", "action": "EXTRACT_TEXT", "selector": {"text": "Green tea"}, "outputField": "name"},
            ],
        }
        async with by_stdio(fleet) as client:
            lease = await client.lease()
            for _ in range(2):
                ran = await client.call("run_task", device=AGENT, lease=lease, task=task, request_id="once")
                assert not ran.is_error, ran
                assert ran.structured_content["result"]["outputs"] == {"name": "Green tea"}
                lease = ran.structured_content["lease"]
            assert len(fleet.phone.done) == 1
            found = await client.call("get_execution", execution_id=ran.structured_content["executionId"])
            assert found.structured_content["state"] == "SUCCEEDED"


async def test_a_task_that_cannot_be_undone_is_withheld_unless_a_person_allowed_it(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet:
        step = {"id": "away", "action": "CLICK", "selector": {"text": "Delete", "index": 0}}
        task = {"schemaVersion": 1, "taskId": "away", "steps": [step]}
        async with http_server(fleet) as (url, _), by_http(url) as client:
            refused = await client.call("run_task", device=AGENT, task=task)
            assert refused.structured_content["code"] == "NEEDS_APPROVAL"
            lease = await client.lease()
            seen = text_of(await client.call("screen", lease=lease)).splitlines()[2:]
            number = 1 + next(place for place, line in enumerate(seen) if '"Delete"' in line)
            withheld = await client.call("tap", lease=lease, screen=1, element=number)
            assert withheld.structured_content["code"] == "NEEDS_APPROVAL"
            assert not fleet.phone.done
        async with http_server(fleet, "--allow-effects") as (url, _), by_http(url) as client:
            assert not (await client.call("run_task", device=AGENT, task=task)).is_error
            assert len(fleet.phone.done) == 1


async def test_a_call_that_is_cancelled_ends_its_execution(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet:
        wait = {"id": "wait", "action": "WAIT", "selector": {"text": "never"}, "timeoutMs": 30_000}
        async with by_stdio(fleet) as client:
            task = {"schemaVersion": 1, "taskId": "wait", "steps": [wait]}
            call = asyncio.ensure_future(client.call("run_task", device=AGENT, task=task))  # noqa: TID251 - cancelled below

            async def state() -> str:
                listed = text_of(await client.call("list_executions"))
                return listed.split()[4] if "wait" in listed else ""

            async def runs() -> bool:
                return await state() == "RUNNING"

            async def ended() -> bool:
                return await state() == "CANCELLED"

            await eventually(runs)
            call.cancel()
            await eventually(ended)


HARMLESS = {"schemaVersion": 1, "taskId": "back", "steps": [{"id": "back", "action": "BACK"}]}

REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("tap", {"lease": "l-nothing", "screen": 1, "element": 1}, "LEASE_LOST"),
    ("tap", {"screen": 1}, "BAD_ARGUMENTS"),
    ("lease_device", {}, "BAD_ARGUMENTS"),
    ("lease_device", {"device": 7}, "BAD_ARGUMENTS"),
    ("lease_device", {"device": "phone-9"}, "DEVICE_NOT_FOUND"),
    ("run_task", {"device": AGENT}, "BAD_ARGUMENTS"),
    ("run_task", {"device": AGENT, "task": {"steps": []}}, "INVALID_TASK"),
    ("get_task", {"task_id": "none"}, "TASK_NOT_FOUND"),
    ("submit_task", {}, "UNKNOWN_TOOL"),
]


async def test_a_call_that_cannot_be_carried_out_says_why(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet, by_stdio(fleet) as client:
        for tool, arguments, code in REFUSED:
            answer = await client.call(tool, **arguments)
            assert answer.is_error
            assert answer.structured_content["code"] == code, text_of(answer)


async def test_without_its_controller_a_call_says_so(tmp_path: Path) -> None:
    program = StdioServerParameters(
        command=str(PROGRAM), args=["mcp"], env={**os.environ, "DROIDFLEET_API": "127.0.0.1:1"}
    )
    async with stdio_client(program) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        await session.initialize()
        answer = await Client(session).call("list_devices")
        assert answer.structured_content["code"] == "CONTROLLER_UNAVAILABLE"


async def test_http_asks_for_the_token_and_lets_no_web_page_in(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet:
        file = tmp_path / "token"
        file.write_text("a-token\n")
        async with http_server(fleet, "--token-file", str(file)) as (url, _), httpx2.AsyncClient() as http:
            assert (await http.post(url, json={})).status_code == 401
            bearer = {"Authorization": "Bearer a-token"}
            page = {**bearer, "Origin": "http://evil.example"}
            assert (await http.post(url, json={}, headers=page)).status_code == 403
            other = {**bearer, "Host": "evil.example"}
            assert (await http.post(url, json={}, headers=other)).status_code in (403, 421)
            assert (await http.get(url.replace("/mcp", "/"), headers=bearer)).status_code == 404
            async with by_http(url, token="a-token") as client:
                assert await client.tools()


async def test_an_address_that_others_reach_is_refused(tmp_path: Path) -> None:
    async with a_fleet(tmp_path / "data") as fleet:
        process = await asyncio.create_subprocess_exec(
            str(PROGRAM), "mcp", "--http", "0.0.0.0:0", env=environment(fleet), stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(START_S):
            _, said = await process.communicate()
        assert process.returncode == 4
        assert b"UNSAFE_ADDRESS" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_though_its_client_says_nothing(number: signal.Signals) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(str(PROGRAM), "mcp", stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    async with asyncio.timeout(START_S):
        answer = json.loads(await process.stdout.readline())
        assert answer["result"]["serverInfo"]["name"] == "droidfleet"
        process.send_signal(number)
        _, said = await process.communicate()
    assert (process.returncode, said) == (0, b"")
