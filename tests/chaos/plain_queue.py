"""The baseline: a plain work-queue with acknowledgements and message ids, under the same faults in the same harness.

A stream of jobs with a consumer for each agent, jobs and results published under message ids until the broker confirms
them, each job acknowledged after its result was confirmed. The same load on the same light phones; what the phones felt
is read from the same logs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StreamConfig
from nats.js.client import JetStreamContext

from chaos.diary import Diary
from chaos.effects import effects_file, read_effects
from chaos.load import load_plan
from chaos.misfortune import Misfortune
from chaos.plain_agents import JOBS, RESULTS, connect, job_subject
from chaos.plan import AGENTS_LINK, CROWD, Lane, Scale, fault_plan, light_device, light_part
from chaos.posts import CONFIRMED
from chaos.stack import BROKER, Stack
from support.waiting import until

ACK_WAIT_S = 5.0
"""After this a job that nobody acknowledged goes to its agent again: twice and more what one takes."""

CALL_S = 5.0
AGAIN_S = 0.2
DRAINED_S = 90.0
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class PlainOutcome:
    """``lost``: confirmed by the broker, and never felt to the end or never answered; ``twice``: with an effect that
    was felt more than once; ``counted_twice``: more than one result."""

    title: str
    executions: int
    lost: int
    twice: int
    counted_twice: int
    kills: str

    @property
    def twice_percent(self) -> float:
        """Of the executions."""
        return 100 * self.twice / max(1, self.executions)


async def run_plain_queue(seed: int, scale: Scale, folder: Path, *, title: str, lanes: frozenset[Lane]) -> PlainOutcome:
    """Runs it in an empty folder under the faults of these lanes of the plan."""
    diary = Diary(folder / "diary.txt")
    stack = Stack(folder, scale, diary)
    try:
        await stack.start_broker()
        return await _Queue(seed, scale, stack, diary, title=title, lanes=lanes).run()
    finally:
        await stack.stop()
        diary.close()


class _Queue:
    def __init__(
        self, seed: int, scale: Scale, stack: Stack, diary: Diary, *, title: str, lanes: frozenset[Lane]
    ) -> None:
        self._scale = scale
        self._stack = stack
        self._title = title
        self._devices = [light_device(number) for number in range(scale.light_devices)]
        # Without the adb phones and the controller, which it does not have.
        self._calls = [call for call in load_plan(seed, scale) if set(call.devices) <= set(self._devices)]
        parts = {BROKER, *(light_part(number) for number in range(scale.light_processes)), AGENTS_LINK}
        self._faults = [fault for fault in fault_plan(seed, scale) if fault.lane in lanes and fault.part in parts]
        self._misfortune = Misfortune(stack, diary)
        self._asked: set[tuple[str, str]] = set()
        self._results: Counter[str] = Counter()

    async def run(self) -> PlainOutcome:
        client = await connect(self._stack.proxies[AGENTS_LINK].url)
        stream = client.jetstream(timeout=CALL_S)
        await self._provision(stream)
        await self._stack.start_light(
            lambda number: [
                *(sys.executable, "-m", "chaos.plain_agents", "--nats", self._stack.proxies[AGENTS_LINK].url),
                *("--effects", str(self._stack.effects), "--count", str(self._scale.light_agents)),
                *("--first", str(number * self._scale.light_agents)),
            ]
        )
        async with asyncio.TaskGroup() as group:
            around = [
                *(group.create_task(part.watch(), name=f"watch {name}") for name, part in self._stack.parts.items()),
                group.create_task(self._collect(stream), name="results"),
            ]
            async with asyncio.TaskGroup() as work:
                work.create_task(self._misfortune.follow(self._faults), name="faults")
                work.create_task(self._load(stream), name="load")
            await self._until_drained()
            for task in around:
                task.cancel()
        await client.close()
        return self._outcome()

    async def _provision(self, stream: JetStreamContext) -> None:
        await stream.add_stream(
            StreamConfig(name=JOBS, subjects=["jobs.>"], retention=RetentionPolicy.WORK_QUEUE, max_consumers=MOST)
        )
        await stream.add_stream(StreamConfig(name=RESULTS, subjects=["results.>"], discard=DiscardPolicy.OLD))
        for device in self._devices:
            config = ConsumerConfig(
                durable_name=device,
                filter_subject=job_subject(device),
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=ACK_WAIT_S,
                max_ack_pending=1,
            )
            await stream.add_consumer(JOBS, config)
        await stream.add_consumer(RESULTS, ConsumerConfig(durable_name="controller", ack_policy=AckPolicy.EXPLICIT))

    async def _load(self, stream: JetStreamContext) -> None:
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for call in self._calls:
                await asyncio.sleep(started + call.at_s - time.monotonic())
                for device in call.devices:
                    group.create_task(self._ask(stream, call.word, device), name=call.word)

    async def _ask(self, stream: JetStreamContext, word: str, device: str) -> None:
        body = json.dumps({"word": word}).encode()
        while True:
            try:
                await stream.publish(job_subject(device), body, headers={"Nats-Msg-Id": f"{word}/{device}"})
            except (NatsError, OSError):
                await asyncio.sleep(AGAIN_S)
            else:
                self._asked.add((word, device))
                return

    async def _collect(self, stream: JetStreamContext) -> None:
        results = await stream.pull_subscribe_bind(durable="controller", stream=RESULTS)
        while True:
            try:
                messages = await results.fetch(100, timeout=CALL_S)
            except (NatsError, OSError, ValueError):
                await asyncio.sleep(AGAIN_S)
                continue
            for message in messages:
                # What comes again, for want of an acknowledgement, is told by its place in the stream.
                self._results[f"{message.data.decode()} {message.metadata.sequence.stream}"] = 1
            with suppress(NatsError, OSError):
                for message in messages:
                    await message.ack_sync(timeout=CALL_S)

    async def _until_drained(self) -> None:
        with suppress(AssertionError):
            await until(lambda: len(self._answered()) >= len(self._asked), within_s=DRAINED_S)
        # What is on its second way would be felt within this.
        await asyncio.sleep(2 * ACK_WAIT_S)

    def _answered(self) -> Counter[str]:
        """How many results each execution has."""
        return Counter(name.split()[0] for name in self._results)

    def _outcome(self) -> PlainOutcome:
        felt = Counter(
            (effect.word, device, effect.kind)
            for device in self._devices
            for effect in read_effects(effects_file(self._stack.effects, device), device)
        )
        answered = self._answered()
        return PlainOutcome(
            title=self._title,
            executions=len(self._asked),
            lost=sum(not felt[*name, CONFIRMED] or not answered["/".join(name)] for name in self._asked),
            twice=len({name[:2] for name, count in felt.items() if count > 1}),
            counted_twice=sum(count > 1 for count in answered.values()),
            kills=self._misfortune.told(),
        )


def comparisons(scale: Scale) -> Sequence[tuple[str, Scale, frozenset[Lane]]]:
    """What is measured: a title, how much, and the lanes of its faults."""
    crowd = f"work-queue, {CROWD.light_devices} agents at once, kills of the broker alone"
    return (
        ("work-queue, kills of the broker alone", scale, frozenset({Lane.BROKER})),
        ("work-queue, all faults but the controller's", scale, frozenset({Lane.BROKER, Lane.AGENTS, Lane.LINKS})),
        (crowd, CROWD, frozenset({Lane.BROKER})),
    )
