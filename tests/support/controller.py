"""A real controller in this process, a client of its API, and scripted agents that only speak the bus's messages."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import grpc

from droidfleet.v1 import (
    device_pb2_grpc,
    execution_pb2,
    execution_pb2_grpc,
    fleet_pb2,
    fleet_pb2_grpc,
    task_pb2_grpc,
)
from droidfleet_controller.app import SERVE_FILE, serve
from droidfleet_controller.settings import ServeSettings
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import (
    Assignment,
    DesiredState,
    Event,
    ExecutionAccepted,
    ExecutionFinished,
    ExecutionRejected,
    ExecutionStarted,
    Heartbeat,
    HeartbeatReply,
    PhoneState,
    StepFinished,
    StepStarted,
    Wanted,
)
from droidfleet_shared.bus.port import BusMessage
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.errors import UnavailableError
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import StepResult, TaskResult
from support.bus import running_link
from support.waiting import until

READY_S = 20.0
CALL_S = 30.0
READ_AGAIN_S = 0.05


def document(task_id: str = "tea", *, agent: str = "", steps: int = 2, **fields: object) -> str:
    """The text of a small valid document."""
    body: dict[str, object] = {"schemaVersion": 1, "taskId": task_id}
    if agent:
        body["assignedAgentName"] = agent
    body |= fields
    body["steps"] = [{"id": f"back-{number}", "action": "BACK"} for number in range(steps)]
    return json.dumps(body)


@dataclass
class Api:
    """Stubs of a running controller's API, and where it keeps its things."""

    channel: grpc.aio.Channel
    data: Path
    nats: str
    http: str
    address: str
    settings: ServeSettings

    def __post_init__(self) -> None:
        self.fleet: fleet_pb2_grpc.FleetServiceAsyncStub = fleet_pb2_grpc.FleetServiceStub(self.channel)
        self.devices: device_pb2_grpc.DeviceServiceAsyncStub = device_pb2_grpc.DeviceServiceStub(self.channel)
        self.tasks: task_pb2_grpc.TaskServiceAsyncStub = task_pb2_grpc.TaskServiceStub(self.channel)
        self.executions: execution_pb2_grpc.ExecutionServiceAsyncStub = execution_pb2_grpc.ExecutionServiceStub(
            self.channel
        )

    async def run(
        self, text: str, *devices: str, request_id: str = "", ref: tuple[str, int] | None = None
    ) -> execution_pb2.RunTaskResponse:
        """Runs a document, or a stored task."""
        request = execution_pb2.RunTaskRequest(devices=devices, request_id=request_id)
        if ref is None:
            request.document_json = text
        else:
            request.ref.CopyFrom(execution_pb2.TaskRef(task_id=ref[0], revision=ref[1]))
        return await self.executions.RunTask(request, timeout=CALL_S)

    async def execution(self, execution_id: str) -> execution_pb2.Execution:
        """One execution."""
        request = execution_pb2.GetExecutionRequest(execution_id=execution_id)
        return (await self.executions.GetExecution(request, timeout=CALL_S)).execution

    async def state(self, execution_id: str) -> str:
        """An execution's state, without its prefix."""
        value = (await self.execution(execution_id)).state
        return execution_pb2.ExecutionState.Name(value).removeprefix("EXECUTION_STATE_")

    async def until_state(self, execution_id: str, wanted: str, *, within_s: float = 30.0) -> execution_pb2.Execution:
        """Waits until an execution is in a state, and returns it."""
        found = await self.execution(execution_id)
        request = execution_pb2.WatchExecutionsRequest(execution_ids=[execution_id])
        async for item in self.executions.WatchExecutions(request, timeout=within_s):
            found = item.execution
            if found.state == execution_pb2.ExecutionState.Value(f"EXECUTION_STATE_{wanted}"):
                return found
        raise AssertionError(
            f"{execution_id} ended as {execution_pb2.ExecutionState.Name(found.state)}: {found.reason}"
        )

    async def device(self, name: str) -> fleet_pb2.Device:
        """One device."""
        return (await self.fleet.GetDevice(fleet_pb2.GetDeviceRequest(name=name), timeout=CALL_S)).device

    async def get(self, path: str, *, token: str = "") -> tuple[int, str]:
        """Status and body of the HTTP side."""
        return await asyncio.to_thread(_http_get, f"http://{self.http}{path}", token)

    async def events(self, *, execution_id: str = "", device: str = "") -> list[fleet_pb2.FleetEvent]:
        """The stored events."""
        request = fleet_pb2.WatchEventsRequest(execution_id=execution_id, device=device)
        return [item.event async for item in self.fleet.WatchEvents(request, timeout=CALL_S)]


def _http_get(url: str, token: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=CALL_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def settings_for(data: Path, **overrides: object) -> ServeSettings:
    """Settings with ports that the system chooses."""
    ports: dict[str, object] = {"listen": "127.0.0.1:0", "http": "127.0.0.1:0", "broker_listen": "127.0.0.1:0"}
    return ServeSettings.model_validate({**ports, "data": data, **overrides})


@asynccontextmanager
async def running_controller(data: Path, **overrides: object) -> AsyncIterator[Api]:
    """A controller that is ready, and a client of it. Ends it in good order."""
    settings = settings_for(data, **overrides)
    ready = asyncio.Event()
    failure: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(serve(settings, ready=ready), name="controller")
            try:
                async with asyncio.timeout(READY_S):
                    await ready.wait()
                where = json.loads((data / SERVE_FILE).read_text())
                async with grpc.aio.insecure_channel(where["api"]) as channel:
                    yield Api(
                        channel=channel,
                        data=data,
                        nats=where["nats"],
                        http=where["http"],
                        address=where["api"],
                        settings=settings,
                    )
            except BaseException as error:
                failure = error
                raise
            finally:
                task.cancel()
    except BaseExceptionGroup as group_error:
        raise (failure or group_error.exceptions[0]) from None


Script = Callable[["ScriptedAgent", Assignment], None]


@dataclass
class ScriptedAgent:
    """An agent without a phone: it keeps the last document and says what a test tells it to say."""

    name: str
    link: BusLink
    instance: str = "instance-1"
    host_id: str = "host-1"
    documents: list[DesiredState] = field(default_factory=list)
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)
    reported_generation: int | None = None
    phone: PhoneState = PhoneState.ONLINE

    @property
    def document(self) -> DesiredState:
        """The newest document. Those of another database have no order with it: there the last one counts."""
        newest = self.documents[0]
        for each in self.documents[1:]:
            if each.epoch != newest.epoch or each.generation >= newest.generation:
                newest = each
        return newest

    @property
    def assignments(self) -> dict[str, Assignment]:
        """What the newest document wants."""
        if not self.documents:
            return {}
        return {each.execution_id: each for each in self.document.executions}

    @property
    def recorded(self) -> set[tuple[str, int]]:
        """The receipts of the newest document."""
        return {(each.execution_id, each.attempt) for each in self.document.recorded} if self.documents else set()

    async def receive(self, message: BusMessage) -> None:
        """Takes a live document."""
        self.documents.append(DesiredState.decode(message.data))

    async def read(self) -> None:
        """Reads the stored document, as an agent does after every connect."""
        stored = await self.link.get_last(subjects.DESIRED_STREAM, subjects.desired(self.name), timeout_s=5)
        if stored is not None:
            self.documents.append(DesiredState.decode(stored.data))

    def heartbeat(self, *, hello: bool = False) -> Heartbeat:
        """A sign of life."""
        return Heartbeat(
            agent=self.name,
            instance=self.instance,
            host_id=self.host_id,
            host="testhost",
            pid=4711,
            hello=hello,
            serial=f"serial-{self.name}",
            phone=self.phone,
            version="0.1.0",
            model="Pixel",
            android="14",
            battery_percent=77,
            epoch=self.document.epoch if self.documents else "",
            generation=self.reported_generation
            if self.reported_generation is not None
            else (self.document.generation if self.documents else 0),
            sent_at=datetime.now(UTC),
        )

    async def hello(self) -> HeartbeatReply:
        """Asks for the name."""
        message = await self.link.request(
            subjects.heartbeat(self.name), self.heartbeat(hello=True).encode(), timeout_s=5
        )
        return HeartbeatReply.decode(message.data)

    async def beat(self) -> None:
        """Says that it is alive."""
        await self.link.publish(subjects.heartbeat(self.name), self.heartbeat().encode())

    async def assigned(self, execution_id: str, *, wanted: Wanted = Wanted.RUN, within_s: float = 10.0) -> Assignment:
        """Waits until the newest document wants this of an execution."""

        def there() -> bool:
            found = self.assignments.get(execution_id)
            return found is not None and found.wanted is wanted

        await until(there, within_s=within_s, what=f"{execution_id} assigned to {self.name} ({wanted})")
        return self.assignments[execution_id]

    async def until_recorded(self, execution_id: str, attempt: int = 1, *, within_s: float = 10.0) -> None:
        """Waits for the receipt."""
        await until(lambda: (execution_id, attempt) in self.recorded, within_s=within_s, what="the receipt")

    def _next(self, execution_id: str, attempt: int, sequence: int | None) -> dict[str, object]:
        key = (execution_id, attempt)
        number = sequence or self.sequences.get(key, 0) + 1
        self.sequences[key] = max(number, self.sequences.get(key, 0))
        return {
            "agent": self.name,
            "execution_id": execution_id,
            "attempt": attempt,
            "sequence": number,
            "at": datetime.now(UTC),
        }

    async def send(self, event: Event) -> None:
        """Publishes an event and waits for the broker's confirmation."""
        await self.link.js_publish(
            subjects.event(self.name, event.execution_id), event.encode(), stream=subjects.EVENTS_STREAM, timeout_s=5
        )

    async def accept(self, execution_id: str, attempt: int = 1, *, sequence: int | None = None) -> ExecutionAccepted:
        """Takes an execution."""
        event = ExecutionAccepted.model_validate(self._next(execution_id, attempt, sequence))
        await self.send(event)
        return event

    async def reject(self, execution_id: str, code: str, message: str = "no") -> ExecutionRejected:
        """Refuses an execution."""
        event = ExecutionRejected.model_validate(
            {**self._next(execution_id, 1, None), "code": code, "message": message}
        )
        await self.send(event)
        return event

    async def start(self, execution_id: str, attempt: int = 1) -> ExecutionStarted:
        """Begins an execution."""
        event = ExecutionStarted.model_validate(self._next(execution_id, attempt, None))
        await self.send(event)
        return event

    async def step(self, execution_id: str, step_id: str, attempt: int = 1) -> None:
        """Begins and ends a step."""
        await self.send(
            StepStarted.model_validate(
                {**self._next(execution_id, attempt, None), "step_id": step_id, "path": "/steps/0"}
            )
        )
        await self.send(
            StepFinished.model_validate({**self._next(execution_id, attempt, None), "result": step_result(step_id)})
        )

    async def finish(
        self,
        execution_id: str,
        attempt: int = 1,
        *,
        code: StepCode = StepCode.OK,
        steps: int = 2,
        sequence: int | None = None,
    ) -> ExecutionFinished:
        """Ends an execution."""
        result = task_result(self.name, execution_id, code=code, steps=steps)
        event = ExecutionFinished.model_validate(
            {**self._next(execution_id, attempt, sequence), "result": result.model_dump()}
        )
        await self.send(event)
        return event

    async def run_when_assigned(self, execution_id: str, *, within_s: float = 60.0) -> None:
        """Reads its document again and again, as an agent does now and then, until it can run the execution."""
        async with asyncio.timeout(within_s):
            while execution_id not in self.assignments:
                try:
                    await self.read()
                except UnavailableError:
                    await self.link.wait_connected(SystemClock().deadline(within_s))
                await asyncio.sleep(READ_AGAIN_S)
        await self.run(execution_id)

    async def run(self, execution_id: str) -> None:
        """The whole life of an execution that succeeds."""
        await self.assigned(execution_id)
        await self.accept(execution_id)
        await self.start(execution_id)
        await self.step(execution_id, "back-0")
        await self.step(execution_id, "back-1")
        await self.finish(execution_id)


def step_result(step_id: str, *, code: StepCode = StepCode.OK) -> StepResult:
    """A step's result."""
    return StepResult(
        id=step_id,
        action="BACK",
        path="/steps/0",
        successful=code is StepCode.OK,
        code=code,
        started_at=datetime.now(UTC),
        duration_ms=30,
        looks=1,
        dispatched=1,
    )


def task_result(agent: str, execution_id: str, *, code: StepCode = StepCode.OK, steps: int = 2) -> TaskResult:
    """A task's result."""
    return TaskResult(
        task_id="tea",
        revision=1,
        agent_name=agent,
        execution_id=execution_id,
        successful=code is StepCode.OK,
        code=code,
        message="" if code is StepCode.OK else "it did not work",
        steps=tuple(step_result(f"back-{number}") for number in range(steps)),
        random_seed=42,
        started_at=datetime.now(UTC),
        duration_ms=60,
    )


@asynccontextmanager
async def scripted_agent(
    url: str, name: str, *, instance: str = "instance-1", host_id: str = "host-1", hello: bool = True
) -> AsyncIterator[ScriptedAgent]:
    """A connected agent that holds its name (unless told not to ask) and follows its documents."""
    async with running_link(url, inbox_prefix=subjects.inbox_prefix(name)) as link:
        agent = ScriptedAgent(name, link, instance=instance, host_id=host_id)
        link.subscribe(subjects.live(name), agent.receive)
        if hello:
            reply = await agent.hello()
            assert reply.granted, reply.holder
            await agent.read()
        yield agent
