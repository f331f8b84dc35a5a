"""Carries the plan out: kills, pauses and cuts, and starts again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from chaos.checker import Kill, Pause
from chaos.diary import Diary
from chaos.plan import Fault, FaultKind, Lane
from chaos.stack import Stack


class Misfortune:
    """``done``: faults by lane and kind; ``kills``, ``pauses``: of processes that held agents; ``died``: agents
    that went with them."""

    def __init__(self, stack: Stack, diary: Diary) -> None:
        self._stack = stack
        self._diary = diary
        self.done: Counter[tuple[Lane, FaultKind]] = Counter()
        self.kills: list[Kill] = []
        self.pauses: list[Pause] = []
        self.died = 0

    async def follow(self, faults: Sequence[Fault]) -> None:
        """Each fault at its time, or when the one before it in its lane is mended; returns when all are."""
        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for lane in Lane:
                of_lane = [fault for fault in faults if fault.lane is lane]
                group.create_task(self._follow(of_lane, started), name=f"faults {lane}")

    def told(self) -> str:
        """What was done, in words."""
        done = self.done
        pauses = sum(count for (_, kind), count in done.items() if kind is FaultKind.PAUSE)
        cut = sum(proxy.broken for proxy in self._stack.proxies.values())
        return (
            f"{done[Lane.BROKER, FaultKind.KILL]} kills of the broker, {done[Lane.AGENTS, FaultKind.KILL]} of agent "
            f"processes ({self.died} agents died), {done[Lane.CONTROLLER, FaultKind.KILL]} of the controller, "
            f"{pauses} pauses, {done[Lane.LINKS, FaultKind.CUT]} cuts ({cut} connections)"
        )

    async def _follow(self, faults: Sequence[Fault], started: float) -> None:
        for fault in faults:
            await asyncio.sleep(started + fault.at_s - time.monotonic())
            self._diary.note(fault.part, f"{fault.kind} for {fault.lasts_s} s")
            match fault.kind:
                case FaultKind.KILL:
                    await self._kill(fault)
                case FaultKind.PAUSE:
                    await self._pause(fault)
                case FaultKind.CUT:
                    proxy = self._stack.proxies[fault.part]
                    proxy.cut()
                    await asyncio.sleep(fault.lasts_s)
                    proxy.mend()
                    self._diary.note(fault.part, "lets through again")
            self.done[fault.lane, fault.kind] += 1

    async def _pause(self, fault: Fault) -> None:
        part = self._stack.parts[fault.part]
        part.pause()
        paused_at = datetime.now(UTC)
        await asyncio.sleep(fault.lasts_s)
        part.resume()
        gone_on_at = self._diary.note(fault.part, "goes on")
        self.pauses.append(Pause(fault.part, self._stack.devices_of(fault.part), paused_at, gone_on_at))

    async def _kill(self, fault: Fault) -> None:
        part = self._stack.parts[fault.part]
        await part.kill()
        devices = self._stack.devices_of(fault.part)
        self.died += len(devices)
        self.kills.append(Kill(fault.part, devices, self._diary.note(fault.part, "is dead")))
        await asyncio.sleep(fault.lasts_s)
        await part.start()
