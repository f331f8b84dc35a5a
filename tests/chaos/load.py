"""The load: calls of RunTask and rollouts, each repeated under its request id until it is answered.

What is asked for is drawn from the seed. A caller here behaves as one who cannot know: whatever goes wrong with a
call, it asks again with the same id, and now and then it asks again although it was answered.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random

import grpc

from chaos.checker import Answer, Asked
from chaos.diary import Diary
from chaos.plan import Scale, light_device, real_part
from chaos.posts import PLAIN, SETTLED, task
from droidfleet.v1 import (
    execution_pb2,
    execution_pb2_grpc,
    rollout_pb2,
    rollout_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
)

CALL_S = 10.0
HASTY_S = 0.02
"""The deadline of a caller who does not wait for the answer: the call may well have been carried out."""

AGAIN_S = 0.3
LATER_S = 3.0
AT_ONCE = 48
"""Calls under way at a time."""

MOST_DEVICES = 4
REAL_EVERY_S = 3.0
"""Seconds of each real phone for one execution, with its start."""

LOAD_PART = 0.97
"""Of the time: the last calls go out before the last fault is mended."""

ASK_AGAIN = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
)
"""Answers that leave a caller in doubt. Any other one is a refusal, which nothing here deserves."""


@dataclass(frozen=True, slots=True)
class Call:
    """``hasty``: its first try does not wait for the answer; ``repeated``: it is asked again once it was answered."""

    at_s: float
    word: str
    task_id: str
    devices: tuple[str, ...]
    hasty: bool
    repeated: bool
    rollout: bool = False


def load_plan(seed: int, scale: Scale) -> tuple[Call, ...]:
    """Every call, by time."""
    random = Random(f"load {seed}")
    light = [light_device(number) for number in range(scale.light_devices)]
    real = [real_part(number) for number in range(scale.real_phones)]
    batches: list[tuple[str, ...]] = []
    for phone in real:
        batches += [(phone,)] * min(int(scale.seconds / REAL_EVERY_S), scale.executions // 10)
    left = scale.executions - len(batches)
    while left > 0:
        batches.append(tuple(random.sample(light, min(left, len(light), random.randint(1, MOST_DEVICES)))))
        left -= len(batches[-1])
    random.shuffle(batches)
    span_s = scale.seconds * LOAD_PART
    calls = [
        Call(
            at_s=span_s * number / len(batches),
            word=f"w{seed}-{number:05}",
            task_id=random.choice([PLAIN, SETTLED]),
            devices=devices,
            hasty=random.randrange(10) == 0,
            repeated=random.randrange(10) == 0,
        )
        for number, devices in enumerate(batches)
    ]
    calls += [
        Call(
            at_s=span_s * (number + 0.5) / scale.rollouts,
            word=f"r{seed}-{number:03}",
            task_id=random.choice([PLAIN, SETTLED]),
            devices=(*light, *real),
            hasty=random.randrange(2) == 0,
            repeated=True,
            rollout=True,
        )
        for number in range(scale.rollouts)
    ]
    return tuple(sorted(calls, key=lambda call: call.at_s))


class Load:
    """Makes the calls. ``refused``: calls that were answered with an error that is no doubt."""

    def __init__(self, channel: grpc.aio.Channel, diary: Diary) -> None:
        self._executions: execution_pb2_grpc.ExecutionServiceAsyncStub = execution_pb2_grpc.ExecutionServiceStub(
            channel
        )
        self._rollouts: rollout_pb2_grpc.RolloutServiceAsyncStub = rollout_pb2_grpc.RolloutServiceStub(channel)
        self._tasks: task_pb2_grpc.TaskServiceAsyncStub = task_pb2_grpc.TaskServiceStub(channel)
        self._diary = diary
        self._answers: dict[str, list[Answer]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.refused: list[str] = []
        self.tries = 0
        """Calls that went out, the repeated ones included."""

    async def save_tasks(self) -> None:
        """Puts the two tasks into the library."""
        for task_id in (PLAIN, SETTLED):
            await self._tasks.SaveTask(task_pb2.SaveTaskRequest(document_json=task(task_id)), timeout=CALL_S)

    async def run(self, calls: Sequence[Call]) -> None:
        """Makes each call at its time, or as soon as there is room, and returns when all are answered."""
        started = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for call in calls:
                await asyncio.sleep(started + call.at_s - asyncio.get_running_loop().time())
                await self._turns.acquire()
                group.create_task(self._make(call), name=call.word)

    def asked(self, calls: Sequence[Call]) -> list[Asked]:
        """What was asked for, and answered."""
        return [
            Asked(call.word, call.devices, tuple(self._answers.get(call.word, ())), rollout=call.rollout)
            for call in calls
        ]

    async def _make(self, call: Call) -> None:
        send = self._start_rollout if call.rollout else self._run_task
        try:
            await self._until_answered(call, send, hasty=call.hasty)
        finally:
            self._turns.release()
        if call.repeated:
            await asyncio.sleep(LATER_S)
            await self._until_answered(call, send, hasty=False)

    async def _until_answered(
        self, call: Call, send: Callable[[Call, float], Awaitable[Answer]], *, hasty: bool
    ) -> None:
        while True:
            self.tries += 1
            try:
                answer = await send(call, HASTY_S if hasty else CALL_S)
            except grpc.aio.AioRpcError as error:
                if error.code() not in ASK_AGAIN:
                    self.refused.append(f"{call.word}: {error.code().name} {error.details()}")
                    self._diary.note(call.word, f"was refused: {error.details()}")
                    return
                hasty = False
                await asyncio.sleep(AGAIN_S)
            else:
                self._answers.setdefault(call.word, []).append(answer)
                return

    async def _run_task(self, call: Call, timeout_s: float) -> Answer:
        request = execution_pb2.RunTaskRequest(
            ref=execution_pb2.TaskRef(task_id=call.task_id),
            devices=call.devices,
            request_id=call.word,
            input_values_json=json.dumps({"word": call.word}),
        )
        response = await self._executions.RunTask(request, timeout=timeout_s)
        return Answer(response.run_id, {each.device: each.execution_id for each in response.executions})

    async def _start_rollout(self, call: Call, timeout_s: float) -> Answer:
        anything = {"minSuccessPercent": "1%"}
        spec = {
            "name": call.word,
            "task": call.task_id,
            "target": {"devices": call.devices},
            "waves": [{"size": "30%", "gate": anything}, {"gate": anything}],
            "retry": {"maxAttempts": 2, "delay": "1s"},
            "inputs": {"word": call.word},
        }
        request = rollout_pb2.StartRolloutRequest(spec_json=json.dumps(spec), request_id=call.word)
        response = await self._rollouts.StartRollout(request, timeout=timeout_s)
        return Answer(response.rollout.rollout_id)
