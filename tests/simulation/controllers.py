"""The controller's process: its parts wired as the product does, killed at any moment and made again from the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from random import Random

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.cancel import Cancels
from droidfleet_controller.dispatch.handover import Handover
from droidfleet_controller.dispatch.ingest import Ingest
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.runs import Runs
from droidfleet_controller.dispatch.sweeper import Sweeper
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.fleet.groups import Groups
from droidfleet_controller.fleet.labels import Labels
from droidfleet_controller.fleet.registry import MAX_ASKING, Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.tasks.library import Library
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.streams import DESIRED, EVENTS, EVENTS_READER
from droidfleet_shared.errors import UnavailableError
from simulation.disk import Disk
from simulation.history import History
from simulation.link import SimLink
from simulation.loop import LoopClock

METRICS = Metrics()
"""One for all worlds: what it counts is not looked at."""

TIMEOUT_S = 10.0
QUOTA_BYTES = 100_000_000


class MemoryFiles(ArtifactFiles):
    """The files of artifacts, on no disk."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def keep(self, contents: Mapping[str, bytes]) -> None:
        self._contents.update(contents)

    def read(self, digest: str) -> bytes | None:
        return self._contents.get(digest)

    def remove(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self._contents.pop(digest, None)


class Controller:
    """One controller process. Run `run`; `kill` ends it at once, whatever it is doing."""

    def __init__(
        self, *, disk: Disk, link: SimLink, history: History, random: Random, heartbeat_s: float, slow_disk_s: float
    ) -> None:
        self.link = link
        self.ready = asyncio.Event()
        self._history = history
        self._random = random
        self._slow_disk_s = slow_disk_s
        self._clock = LoopClock(asyncio.get_running_loop())
        self._task: asyncio.Task[None] | None = None
        self.dead = False
        database = self._database = disk.database(self._takes)
        clock, broadcast = self._clock, Broadcast()
        self.registry = Registry(
            database=database, bus=link, clock=clock, heartbeat_s=heartbeat_s, stored=broadcast.events
        )
        publisher = self._publisher = Publisher(
            bus=link, database=database, clock=clock, random=random, metrics=METRICS
        )
        self._ingest = Ingest(
            bus=link,
            database=database,
            clock=clock,
            random=random,
            publisher=publisher,
            broadcast=broadcast,
            metrics=METRICS,
            files=MemoryFiles(),
            artifact_quota_bytes=QUOTA_BYTES,
        )
        self._sweeper = Sweeper(
            database=database,
            clock=clock,
            registry=self.registry,
            publisher=publisher,
            broadcast=broadcast,
            metrics=METRICS,
        )
        self.registry.on_heard(self._sweeper.heard)
        self.registry.on_granted(Handover(publisher=publisher, broadcast=broadcast, metrics=METRICS))
        self.runs = Runs(
            database=database, clock=clock, registry=self.registry, publisher=publisher, broadcast=broadcast
        )
        self.cancels = Cancels(
            database=database, clock=clock, publisher=publisher, broadcast=broadcast, metrics=METRICS
        )
        self.library = Library(database=database, clock=clock, broadcast=broadcast)
        self._labels = Labels(database=database, clock=clock, stored=broadcast.events)
        self.groups = Groups(database=database, clock=clock, registry=self.registry, stored=broadcast.events)
        self.rollouts = Rollouts(
            database=database,
            clock=clock,
            registry=self.registry,
            targets=Targets(registry=self.registry, labels=self._labels, groups=self.groups),
            publisher=publisher,
            broadcast=broadcast,
            cancels=self.cancels,
            metrics=METRICS,
        )

    def _takes(self) -> tuple[float, float]:
        return self._random.random() * self._slow_disk_s, self._random.random() * self._slow_disk_s

    async def run(self) -> None:
        """Lives until `kill` or until its disk fails it at the start."""
        self._task = asyncio.current_task()
        try:
            await self._run()
        except UnavailableError as error:
            self._history.note("controller", f"does not come up: {error.code}")
        except asyncio.CancelledError:
            if not self.dead:
                raise  # the world ends, and not this process alone
        finally:
            self.dead = True
            self.link.die()
            self._database.die()

    async def _run(self) -> None:
        await self.registry.load()
        await self._labels.load()
        await self.groups.load()
        await self._publisher.load()
        self.link.subscribe(subjects.HEARTBEATS_ALL, self.registry.receive, pending_limit=MAX_ASKING)
        self.link.on_connected(self._reconcile)
        async with asyncio.TaskGroup() as group:
            for name, part in (
                ("bus", self.link.run()),
                ("fleet", self.registry.run()),
                ("publisher", self._publisher.run()),
                ("ingest", self._ingest.run()),
                ("sweeper", self._sweeper.run()),
                ("rollouts", self.rollouts.run()),
            ):
                group.create_task(part, name=f"controller {name}")
            self.ready.set()

    async def _reconcile(self) -> None:
        attempt = 0
        while self.link.connected:
            try:
                for stream in (DESIRED, EVENTS):
                    await self.link.ensure_stream(stream, timeout_s=TIMEOUT_S)
                await self.link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)
                await self.registry.connected()
                await self._publisher.reconcile()
            except UnavailableError:
                await self._clock.sleep(min(TIMEOUT_S, 0.5 * 2**attempt))
                attempt += 1
            else:
                return

    def kill(self) -> None:
        """SIGKILL: nothing that it would still do has an effect."""
        if self.dead:
            return
        self.dead = True
        self.link.die()
        self._database.die()
        if self._task is not None:
            self._task.cancel()
