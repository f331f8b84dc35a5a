"""One world from its first second to its last, and the verdict on it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

from droidfleet_controller import ids
from droidfleet_controller.rollouts.states import RolloutState
from simulation.broker import Broker
from simulation.controllers import Controller
from simulation.disk import Change, Disk
from simulation.history import History
from simulation.hosts import Host
from simulation.ledger import Ledger
from simulation.link import SimLink
from simulation.logs import listening
from simulation.loop import LoopClock, StuckError, VirtualLoop
from simulation.misfortune import Misfortune
from simulation.operators import Operators
from simulation.phones import READY, SimPhone
from simulation.scenario import Scenario, draw
from simulation.stages import Stages
from simulation.truth import Truth

IDLE_S = 150.0
"""How long a phone may be idle at most while something waits for it and nothing is wrong: a lost push is found when the
document is read again (72 s), a lost result sent again after 30 s, and retries wait up to 30 s."""

SETTLE_S = 900.0
"""How long after the troubles everything may take to come to rest: what waits runs (30 s each), expires (120 s), or is
given up (a minute past each deadline)."""

QUIET_S = 1.0
"""How often the world is looked at."""

ECHO_S = 5.0
"""How long after the last end everybody has heard of it, however slow the disk."""

FOR_A_PERSON = frozenset({RolloutState.AWAITING_APPROVAL, RolloutState.PAUSED})
"""Where a rollout may stay for ever, saying so."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a seed."""

    seed: int
    findings: tuple[str, ...]
    digest: str
    lines: tuple[str, ...]
    seconds: float
    """Virtual ones."""


class World:
    """The parts of one world, for those who disturb and those who look at it."""

    def __init__(self, scenario: Scenario) -> None:
        loop = asyncio.get_running_loop()
        self.scenario = scenario
        self.history = History()
        self.truth = Truth(self.history)
        self.ledger = Ledger(self.history, self.truth)
        self.broker = Broker()
        self.stages = Stages(self.history, self.ledger)
        self.disk = Disk(self._committed)
        self.controller: Controller | None = None
        self.hosts: dict[str, Host] = {}
        self.operators = Operators(self)
        self._loop = loop
        self._controllers = 0
        self._controller_down_until = 0.0
        self._well_since = 0.0
        self._calm_since = dict.fromkeys(scenario.phones, 0.0)
        for name in scenario.phones:
            phone = SimPhone(
                name,
                clock=LoopClock(loop),
                truth=self.truth,
                random=scenario.random(f"phone/{name}"),
                slow_s=scenario.slow_phone_s,
                unreliable=scenario.unreliable_percent,
            )
            self.hosts[name] = Host(
                name,
                broker=self.broker,
                phone=phone,
                truth=self.truth,
                history=self.history,
                seed=f"{scenario.seed}/host",
                latency_s=scenario.latency_s,
                slow_disk_s=scenario.slow_journal_s,
                heartbeat_s=scenario.heartbeat_s,
            )

    def _committed(self, changes: list[Change], rollout_ids: list[str]) -> None:
        now = self._loop.time()
        self.ledger.committed(changes, now)
        self.stages.committed(rollout_ids, self.disk.raw, now)

    async def run(self) -> None:
        """Lives until everything has come to rest after the troubles, or an invariant does not hold."""
        async with asyncio.TaskGroup() as group:
            parts = [group.create_task(self._keep_controller(), name="controller")]
            parts += [group.create_task(host.run(), name=f"host {name}") for name, host in self.hosts.items()]
            parts.append(group.create_task(self._look(), name="look"))
            story = group.create_task(self._story(), name="story")
            broken = group.create_task(self.history.broken.wait(), name="broken")
            await asyncio.wait([story, broken], return_when=asyncio.FIRST_COMPLETED)
            for part in (*parts, story, broken):
                part.cancel()

    async def _story(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.operators.run(), name="operators")
            await Misfortune(self).run()
            self.history.note("world", "the troubles are over")
            for host in self.hosts.values():
                host.presence.plug(True)
                host.phone.show(READY)
        if await self._rests():
            self.history.note("world", "is at rest")
            await asyncio.sleep(ECHO_S)
            await self._expect_counts()
            if self.stages.going_on():
                await self.operators.end_rollouts()
                if await self._rests():
                    await asyncio.sleep(ECHO_S)
                    await self._expect_counts()
            for stage in self.stages.going_on():
                self.history.finding(f"{stage.rollout_id} was cancelled, and is {stage.state}")

    async def _rests(self) -> bool:
        at_rest_by = self._loop.time() + SETTLE_S
        while not await self._at_rest():
            await asyncio.sleep(QUIET_S)
            if self._loop.time() > at_rest_by:
                await self._name_what_does_not_rest()
                return False
        return True

    # The controller's process.

    async def _keep_controller(self) -> None:
        while True:
            await asyncio.sleep(max(0.1, self._controller_down_until - self._loop.time()))
            self._controllers += 1
            number, scenario = self._controllers, self.scenario
            random = scenario.random(f"controller/{number}")
            link = SimLink(
                self.broker, f"controller.{number}", random=random, history=self.history, latency_s=scenario.latency_s
            )
            self.history.note("controller", f"{number} starts")
            self.controller = Controller(
                disk=self.disk,
                link=link,
                history=self.history,
                random=random,
                heartbeat_s=scenario.heartbeat_s,
                slow_disk_s=scenario.slow_disk_s,
            )
            await self.controller.run()

    def kill_controller(self, *, down_s: float) -> None:
        """Ends it at once; the next one starts ``down_s`` later."""
        if self.controller is not None and not self.controller.dead:
            self.history.note("fault", f"controller killed, for {down_s:.1f} s")
            self._controller_down_until = self._loop.time() + down_s
            self.controller.kill()

    def disk_mended(self) -> None:
        """There is room on it again."""
        self.disk.failing = False

    # Looking.

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(QUIET_S)
            now = self._loop.time()
            if not self._controller_is_well():
                self._well_since = now
            self.stages.expect_eagerness(now, well_since=self._well_since)
            for name, host in self.hosts.items():
                if not self._calm(host):
                    self._calm_since[name] = now
                self._expect_no_idleness(name, now)

    def _controller_is_well(self) -> bool:
        controller = self.controller
        return not (controller is None or controller.dead or not controller.ready.is_set() or self.disk.failing)

    def _calm(self, host: Host) -> bool:
        controller = self.controller
        if controller is None or not self._controller_is_well():
            return False
        linked = controller.link.connected and host.link is not None and host.link.connected
        return linked and host.working and host.phone.attached

    def _expect_no_idleness(self, name: str, now: float) -> None:
        idle_since = max(self._calm_since[name], self.truth.idle_since.get(name, 0.0))
        if name in self.truth.running or now - idle_since < IDLE_S:
            return
        for entry in self.ledger.live():
            since = max(idle_since, entry.created_at)
            if entry.device == name and entry.waits and now - since >= IDLE_S and now < entry.expires_at:
                self.history.finding(f"{name} is idle since {since:.1f}, and {entry.execution_id} waits for it")

    async def _at_rest(self) -> bool:
        going_on = self.stages.going_on()
        if self.ledger.live() or any(stage.state not in FOR_A_PERSON for stage in going_on):
            return False
        for host in self.hosts.values():
            if not host.gone and (not host.working or await host.held()):
                return False
        return True

    async def _expect_counts(self) -> None:
        """At rest every reader of a rollout finds each member counted once, and why it waits where it does."""
        for rollout_id, stage in self.stages.stages.items():
            assert self.controller is not None
            view = await self.controller.rollouts.get(rollout_id)
            for wave in view.waves:
                counted = wave.waiting + wave.retrying + sum(wave.outcomes.values())
                self.history.expect(counted == wave.members, f"{rollout_id}: {counted} of {wave.members} are counted")
            members = sum(wave.members for wave in view.waves)
            self.history.expect(members == len(stage.members), f"{rollout_id} has {members} in its waves")
            asked = view.confirmation
            missing = 0 if asked is None else asked.asked - asked.confirmed
            gone = sum(host.gone for host in self.hosts.values())
            self.history.expect(
                missing <= gone, f"{rollout_id}: {missing} ends are not confirmed, {gone} hosts are gone"
            )
            self.history.expect(stage.terminal or bool(view.waits), f"{rollout_id} is {stage.state} and says no wait")

    async def _name_what_does_not_rest(self) -> None:
        for entry in self.ledger.live():
            self.history.finding(f"{entry.execution_id} on {entry.device} is {entry.state} for ever")
        for stage in self.stages.going_on():
            self.history.expect(stage.state in FOR_A_PERSON, f"{stage.rollout_id} is {stage.state} for ever")
        for name, host in self.hosts.items():
            if host.gone:
                continue
            held = await host.held()
            self.history.expect(not held, f"{name} keeps {held} entries that nobody records")
            self.history.expect(host.working, f"{name} has no agent at work")

    def close(self) -> None:
        """The last lines: what the database ends with."""
        query = "SELECT execution_id, device, state, version, reason FROM executions ORDER BY number"
        for row in self.disk.raw.execute(query):
            self.history.note("database", " ".join(str(value) for value in row))


def live_through(seed: int, *, verbose: bool = False) -> Verdict:
    """Simulates one seed from its beginning to its end. ``verbose``: with what the product logs."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(_live_through(seed, loop, verbose))


async def _live_through(seed: int, loop: VirtualLoop, verbose: bool) -> Verdict:
    scenario = draw(seed)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_ids_of(scenario))
        world = World(scenario)
        stack.enter_context(listening(world.history, verbose=verbose))
        try:
            await world.run()
        except StuckError:
            raise
        except Exception as error:
            world.history.finding(f"{_names(error)}")
    for failure in loop.failures:
        world.history.finding(f"nobody caught: {failure.get('message')} {failure.get('exception')!r}")
    world.close()
    history = world.history
    return Verdict(seed, tuple(history.findings), history.digest, tuple(history.lines), loop.time())


@contextlib.contextmanager
def _ids_of(scenario: Scenario) -> Iterator[None]:
    random = scenario.random("ids")
    with mock.patch.object(ids, "draw", random.randbytes):
        yield


def _names(error: BaseException) -> str:
    """An error with those that it groups."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_names(each) for each in error.exceptions)
    return f"{type(error).__name__}: {error}"
