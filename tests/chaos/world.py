"""One run: the stack under load while the plan goes wrong, then healing, then the reckoning."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import grpc

from chaos.checker import Evidence, Finding, Verdict, check
from chaos.diary import Diary
from chaos.effects import Felt, read_effects
from chaos.load import Call, Load, load_plan
from chaos.misfortune import Misfortune
from chaos.plan import Fault, FaultKind, Lane, Scale, fault_plan
from chaos.posts import EFFECTS, VIRTUAL_EFFECTS
from chaos.reading import Reading, unreceipted
from chaos.stack import Stack
from droidfleet.v1 import fleet_pb2, fleet_pb2_grpc

ONLINE_S = 90.0
POLL_S = 0.5
ANSWERED_S = 120.0
"""Within which every call is answered once everything is mended."""

_CHANNEL = (
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    # A caller who waits for minutes between two tries would measure that.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(slots=True)
class Outcome:
    """What came of a run. ``done``: faults by lane and kind, ``faults``: in words; ``left``: what was not healed in
    time; ``crashes``: parts that ended by themselves; ``histories``: of the findings' executions."""

    seed: int
    scale: Scale
    verdict: Verdict
    done: Counter[tuple[Lane, FaultKind]]
    faults: str
    refused: list[str]
    crashes: list[str]
    left: str
    tries: int
    calls: int
    rollouts: int
    events: int
    load_s: float
    heal_s: float
    histories: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether there is nothing to mend."""
        return not (self.verdict.findings or self.refused or self.crashes or self.left)


async def live_through(seed: int, scale: Scale, folder: Path) -> Outcome:
    """Runs it. ``folder`` is there, is empty, and keeps everything: logs, data, effects, the diary."""
    diary = Diary(folder / "diary.txt")
    stack = Stack(folder, scale, diary)
    try:
        await stack.start()
        async with grpc.aio.insecure_channel(stack.api, options=_CHANNEL) as channel:
            return await _World(seed, scale, stack, channel, diary).run()
    finally:
        await stack.stop()
        diary.close()


class _World:
    def __init__(self, seed: int, scale: Scale, stack: Stack, channel: grpc.aio.Channel, diary: Diary) -> None:
        self._seed = seed
        self._scale = scale
        self._stack = stack
        self._diary = diary
        self._channel = channel
        self._load = Load(channel, diary)
        self._reading = Reading(channel, stack.data)
        self._misfortune = Misfortune(stack, diary)

    async def run(self) -> Outcome:
        calls = load_plan(self._seed, self._scale)
        faults = fault_plan(self._seed, self._scale)
        await self._until_online()
        await self._load.save_tasks()
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            watches = [
                group.create_task(part.watch(), name=f"watch {part.name}") for part in self._stack.parts.values()
            ]
            await self._go_wrong(calls, faults)
            load_s = time.monotonic() - started
            self._diary.note("harness", "everything is mended; healing begins")
            left = await self._heal()
            heal_s = time.monotonic() - started - load_s
            self._diary.note("harness", left or "everything has ended")
            for watch in watches:
                watch.cancel()
        return await self._reckon(calls, left=left, load_s=load_s, heal_s=heal_s)

    async def _until_online(self) -> None:
        fleet: fleet_pb2_grpc.FleetServiceAsyncStub = fleet_pb2_grpc.FleetServiceStub(self._channel)
        request = fleet_pb2.ListDevicesRequest(states=[fleet_pb2.DEVICE_STATE_ONLINE], page_size=1_000)
        async with asyncio.timeout(ONLINE_S):
            online = 0
            while online < len(self._stack.devices):
                await asyncio.sleep(POLL_S)
                online = len((await fleet.ListDevices(request, timeout=ONLINE_S)).devices)

    async def _go_wrong(self, calls: Sequence[Call], faults: Sequence[Fault]) -> None:
        """Load and faults together; returns when all faults are mended and all calls answered."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._misfortune.follow(faults), name="faults")
            group.create_task(self._load_bounded(calls), name="load")

    async def _load_bounded(self, calls: Sequence[Call]) -> None:
        with suppress(TimeoutError):
            # What is not answered then was not accepted; the reckoning shows how many.
            async with asyncio.timeout(self._scale.seconds * 2 + ANSWERED_S):
                await self._load.run(calls)

    # Healing and reckoning.

    async def _heal(self) -> str:
        """Waits until all has ended and is receipted; what is left when the time is over."""
        left = ""
        deadline = time.monotonic() + self._scale.heal_s
        while time.monotonic() < deadline:
            try:
                left = await self._left()
            except grpc.aio.AioRpcError as error:
                left = f"the controller does not answer: {error.details()}"
            if not left:
                return ""
            await asyncio.sleep(POLL_S)
        return f"not within {self._scale.heal_s:g} s: {left}"

    async def _left(self) -> str:
        live = await self._reading.live()
        if live:
            return f"{len(live)} executions have not ended, {live[-1].execution_id} on {live[-1].device} for one"
        open_rollouts = [each.run_id for each in await self._reading.rollouts() if not each.ended]
        if open_rollouts:
            return f"rollouts have not ended: {', '.join(open_rollouts)}"
        held = await asyncio.to_thread(unreceipted, self._stack.journals())
        return f"agents hold {held} attempts without a receipt" if held else ""

    async def _reckon(self, calls: Sequence[Call], *, left: str, load_s: float, heal_s: float) -> Outcome:
        felt = [effect for device, file in self._stack.devices.items() for effect in read_effects(file, device)]
        asked = self._load.asked(calls)
        virtual = {part for part in self._stack.devices if self._stack.devices_of(part)}
        evidence = Evidence(
            asked=asked,
            felt=felt,
            reported=await self._reading.executions(),
            counts=await self._reading.rollouts(),
            kills=self._misfortune.kills,
            pauses=self._misfortune.pauses,
            expected={device: VIRTUAL_EFFECTS if device in virtual else EFFECTS for device in self._stack.devices},
        )
        verdict = check(evidence)
        return Outcome(
            seed=self._seed,
            scale=self._scale,
            verdict=verdict,
            done=self._misfortune.done,
            faults=self._misfortune.told(),
            refused=[
                *self._load.refused,
                *(f"{each.word}: never answered" for each in asked if not each.answers),
            ],
            crashes=[crash for part in self._stack.parts.values() for crash in part.crashes],
            left=left,
            tries=self._load.tries,
            calls=len(calls),
            rollouts=sum(call.rollout for call in calls),
            events=self._reading.event_count(),
            load_s=load_s,
            heal_s=heal_s,
            histories=[self._history(finding, felt) for finding in verdict.findings],
        )

    def _history(self, finding: Finding, felt: Sequence[Felt]) -> str:
        """Everything that is known of the execution concerned, in order of time."""
        lines: list[tuple[datetime, str]] = []
        if finding.execution_id:
            lines += [(at, f"controller   {what}") for at, what in self._reading.events(finding.execution_id)]
        lines += [
            (effect.at, f"phone        {effect.device} felt {effect.kind} {effect.word}")
            for effect in felt
            if effect.word == finding.word and (effect.device == finding.device or not finding.device)
        ]
        span = [at for at, _ in lines]
        parts = {part for part in self._stack.parts if finding.device in self._stack.devices_of(part)}
        everybody = {
            name for name in self._stack.parts if not self._stack.devices_of(name)
        } | self._stack.proxies.keys()
        lines += [
            (entry.at, f"harness      {entry.who} {entry.what}")
            for entry in self._diary.entries
            if entry.who == finding.word
            or (entry.who in parts | everybody and span and min(span) <= entry.at <= max(span))
        ]
        told = "\n".join(f"  {at:%H:%M:%S.%f}"[:-3] + f"  {what}" for at, what in sorted(lines))
        return f"{finding.sin}: {finding.word} on {finding.device} ({finding.execution_id}) {finding.sentence}\n{told}"
