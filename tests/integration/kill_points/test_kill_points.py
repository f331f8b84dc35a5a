"""An agent that is killed at each point between "written" and "done": at most one effect each, and a true result.

A real agent process, real adb and broker, a virtual phone whose effect log is the judge. A first run writes down the
points that it passes; then one execution after the other meets its end at one of them, and the next process goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from droidfleet_agent.virtual_phone.effects import Effect
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.bus.messages import Assignment, ExecutionFinished, ExecutionRef, ExecutionResumed, Wanted
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import TaskResult
from support.adb import AdbServer, ConnectedPhones, RunningPhone
from support.assignments import task_text
from support.nats import NatsServer
from support.stub_controller import StubController, stub_controller
from support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

PHONES = 4
"""Side by side: an agent is idle for most of its time."""

LEAST_POINTS = 50
WITHIN_S = 60.0
LAST_POINT_S = 1.0

SCENARIO = """
format: 1
name: post
start: com.example.post
apps:
  - package: com.example.post
    label: Post
    home: main
    variables: {draft: "", sent: ""}
    screens:
      main:
        activity: .MainActivity
        root:
          type: column
          height: fill
          children:
            - {type: field, name: draft, hint: Draft, bind: draft}
            - {type: button, text: Tick, on_click: [{effect: ticked}]}
            - {type: button, text: Round, on_click: [{effect: rounded}]}
            - type: button
              text: Send
              on_click: [{effect: posted, details: {text: "{{draft}}"}}, {set: {sent: "{{draft}}"}}]
            - {type: text, text: "Sent {{sent}}"}
"""

EFFECTS = {"open": "start_app", "write": "set_text", "tick": "ticked", "round": "rounded", "send": "posted"}
"""What each step with an action leaves in the phone's log."""

ROUNDS = 2


def task(execution_id: str, agent: str) -> str:
    """Opens the app afresh, types, ticks within an IF, goes two rounds, and sends, which `after` verifies."""
    return task_text(
        {"id": "open", "action": "OPEN", "packageName": "com.example.post", "stopFirst": True},
        {
            "id": "write",
            "action": "INPUT",
            "packageName": "com.example.post",
            "selector": {"hint": "Draft"},
            "value": execution_id,
        },
        {
            "id": "if",
            "action": "IF",
            "condition": {"visible": {"text": "Send"}},
            "then": [{"id": "tick", "action": "CLICK", "selector": {"text": "Tick"}}],
        },
        {
            "id": "repeat",
            "action": "REPEAT",
            "maxIterations": ROUNDS,
            "until": {"visible": {"text": "never"}},
            "steps": [{"id": "round", "action": "CLICK", "selector": {"text": "Round"}}],
        },
        {
            "id": "send",
            "action": "CLICK",
            "selector": {"text": "Send"},
            "after": {"condition": {"visible": {"text": f"Sent {execution_id}"}}, "timeoutMs": 1_500},
        },
        agent=agent,
    )


class Nursery:
    """`support.killable_agents`, and the ends of its agents."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._born: asyncio.Queue[int] = asyncio.Queue()
        self._turn = asyncio.Lock()
        self.ends: dict[int, int] = {}

    async def read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            news = json.loads(line)
            if "status" in news:
                self.ends[news["pid"]] = news["status"]
            else:
                self._born.put_nowait(news["pid"])

    async def start(
        self, arguments: Sequence[str], *, name: str, execution: str = "", point: str = "", record: str = ""
    ) -> int:
        """A new agent process; its pid."""
        assert self._process.stdin is not None
        order = {
            "arguments": list(arguments),
            "log": str(self._folder / f"{name}.log"),
            "execution": execution,
            "point": point,
            "record": record,
        }
        async with self._turn:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            return await self._born.get()


@asynccontextmanager
async def nursery(folder: Path) -> AsyncIterator[Nursery]:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "DROIDFLEET_STATE": str(folder / "state")}
    with (folder / "nursery.log").open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "support.killable_agents"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=env,
        )
    made = Nursery(process, folder)
    async with asyncio.TaskGroup() as group:
        group.create_task(made.read(), name="nursery news")
        try:
            yield made
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()


class Seat:
    """One phone and its agents, one after the other."""

    def __init__(
        self, number: int, *, phone: RunningPhone, controller: StubController, nursery: Nursery, url: str, folder: Path
    ) -> None:
        self.name = f"phone-{number}"
        self._phone = phone
        self._controller = controller
        self._nursery = nursery
        self._url = url
        self._state = folder / self.name
        self._done = 0
        self.killed: list[str] = []

    async def run(self, points: Sequence[str]) -> None:
        """Meets each point with an execution of its own. Each process finishes the one of the process before."""
        before, in_doubt = "", False
        for number, point in enumerate(points):
            execution_id = f"{self.name}-{number}"
            pid = await self._start(execution_id, point=point)
            if before:
                await self._check(before, in_doubt=in_doubt)
            await self._assign(execution_id)
            await self._killed_or_forgotten(pid, execution_id)
            if pid in self._nursery.ends:
                assert self._nursery.ends[pid] == -signal.SIGKILL
                self.killed.append(point)
            else:
                await self._kill(pid)
            before, in_doubt = execution_id, self._in_doubt(execution_id)
        await self._start("")
        await self._check(before, in_doubt=in_doubt)

    async def record(self, file: Path) -> list[str]:
        """The points that an undisturbed run passes, in order."""
        execution_id = f"{self.name}-undisturbed"
        pid = await self._start(execution_id, record=str(file))
        await self._assign(execution_id)
        await self._killed_or_forgotten(pid, execution_id)
        await self._check(execution_id, in_doubt=False)
        await self._kill(pid)
        passed = await asyncio.to_thread(file.read_text)
        return list(dict.fromkeys(passed.splitlines()))

    async def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        await until(lambda: pid in self._nursery.ends, what="its end")

    async def _start(self, execution: str, *, point: str = "", record: str = "") -> int:
        arguments = ("run", "--name", self.name, "--serial", self._phone.address, "--nats", self._url)
        return await self._nursery.start(
            (*arguments, "--state", str(self._state), "--heartbeat", "0.5"),
            name=self.name,
            execution=execution,
            point=point,
            record=record,
        )

    async def _assign(self, execution_id: str, *, recorded: bool = False) -> None:
        ref = ExecutionRef(execution_id=execution_id, attempt=1)
        listed = Assignment(execution_id=execution_id, attempt=1, wanted=Wanted.RUN, task=task(execution_id, self.name))
        if recorded:
            await self._controller.assign(recorded=[ref], agent=self.name)
        else:
            await self._controller.assign(listed, agent=self.name)

    async def _killed_or_forgotten(self, pid: int, execution_id: str) -> None:
        """Until the process is gone, or has dropped the execution after its receipt."""
        ends, code = self._nursery.ends, self._controller.code
        await until(lambda: pid in ends or code(execution_id), within_s=WITHIN_S, what=f"{execution_id} at its point")
        if pid not in ends:
            await self._assign(execution_id, recorded=True)
            await until(
                lambda: pid in ends or self._forgotten(execution_id), within_s=WITHIN_S, what=f"{execution_id} dropped"
            )
            with suppress(AssertionError):  # the last point lies just behind that
                await until(lambda: pid in ends, within_s=LAST_POINT_S)

    async def _check(self, execution_id: str, *, in_doubt: bool) -> None:
        """Holds the result that is reported against what the phone saw since the one before."""
        await self._controller.ended(execution_id, within_s=WITHIN_S)
        events = self._controller.of(execution_id)
        by_sequence = {event.sequence: event.encode() for event in events}
        assert all(by_sequence[event.sequence] == event.encode() for event in events), "an event sent in two ways"
        assert sorted(by_sequence) == list(range(1, len(by_sequence) + 1))
        result = next(event.result for event in events if isinstance(event, ExecutionFinished))
        resumed = {event.sequence for event in events if isinstance(event, ExecutionResumed)}
        assert result.agent_restarts == len(resumed)
        effects = self._phone.effects.all()[self._done :]
        self._done += len(effects)
        _hold(result, effects, execution_id, in_doubt=in_doubt)

    def _forgotten(self, execution_id: str) -> bool:
        """Whether the agent has dropped it after its receipt: straight from the file, beside the agent's reading."""
        return bool(self._rows("SELECT 1 FROM forgotten WHERE execution_id = ?", execution_id))

    def _in_doubt(self, execution_id: str) -> bool:
        """Whether an action of it was announced whose step has not ended."""
        return bool(self._rows("SELECT 1 FROM attempts WHERE execution_id = ? AND dispatched > 0", execution_id))

    def _rows(self, query: str, execution_id: str) -> list[object]:
        [file] = (file for file in (self._state / "journals").iterdir() if "-" not in file.name)
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute(query, (execution_id,)).fetchall()


def _hold(result: TaskResult, effects: Sequence[Effect], execution_id: str, *, in_doubt: bool) -> None:
    """What the result says is what the phone saw, and nothing happened more often than it was to."""
    seen = Counter(effect.kind for effect in effects)
    steps = [step for step in result.steps if step.id in EFFECTS]
    for step_id, kind in EFFECTS.items():
        certain = sum(step.id == step_id and step.successful for step in steps)
        unknown = sum(step.id == step_id and step.code is StepCode.OUTCOME_UNKNOWN for step in steps)
        assert certain <= seen[kind] <= certain + unknown, (kind, seen, result)
        assert certain + unknown <= (ROUNDS if step_id == "round" else 1), (kind, result)
    assert {effect.details["text"] for effect in effects if effect.kind == "posted"} <= {execution_id}
    settled = [step for step in steps if step.detail is Detail.SETTLED_BY_AFTER]
    if in_doubt and not settled:
        assert result.code is StepCode.OUTCOME_UNKNOWN, result
    else:
        assert (result.code, len(steps), bool(settled)) == (StepCode.OK, len(EFFECTS) + ROUNDS - 1, in_doubt), result


def _is_certain(point: str) -> bool:
    """Whether each run passes it: what is sent, and when, also depends on the time."""
    return not point.startswith(("document", "send", "take out"))


async def test_an_agent_killed_at_any_point_leaves_one_effect_each_and_a_true_result(
    nats_server: NatsServer, phones: ConnectedPhones, adb_server: AdbServer, tmp_path: Path
) -> None:
    scenario = tmp_path / "post.yaml"
    scenario.write_text(SCENARIO)
    options = PhoneOptions(scenario=load_scenario(scenario))
    made = await asyncio.to_thread(lambda: [phones(options) for _ in range(PHONES)])
    async with stub_controller(nats_server) as controller, nursery(tmp_path) as agents:
        seats = [
            Seat(number, phone=phone, controller=controller, nursery=agents, url=nats_server.url, folder=tmp_path)
            for number, phone in enumerate(made)
        ]
        points = await seats[0].record(tmp_path / "points")
        assert len(points) >= LEAST_POINTS
        async with asyncio.TaskGroup() as group:
            for number, seat in enumerate(seats):
                group.create_task(seat.run(points[number::PHONES]), name=seat.name)
    killed = {point for seat in seats for point in seat.killed}
    assert len(killed) >= LEAST_POINTS
    assert [point for point in points if _is_certain(point) and point not in killed] == []
