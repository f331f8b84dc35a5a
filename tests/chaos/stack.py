"""The real stack: broker, controller, agents, phones and adb server as processes, with proxies between them.

The broker is a process of its own, configured as the embedded one is, so that it and the controller die apart. Agents
and controller reach it through a proxy each.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from socket import socket

from chaos.diary import Diary
from chaos.effects import effects_file
from chaos.parts import Command, Part
from chaos.plan import AGENTS_LINK, CONTROLLER_LINK, Scale, light_device, light_part, real_part
from chaos.posts import SCENARIO
from chaos.proxy import Proxy
from droidfleet_controller.broker import binary
from droidfleet_controller.broker.config import config_text
from droidfleet_demo.fleet import BIN, environment
from droidfleet_shared.net import Endpoint
from support.adb import find_adb
from support.ports import bound_socket

HEARTBEAT_S = 2.0
TESTS = Path(__file__).parents[1]
LATENCY = "zero,tap=20"
"""Of the adb phones: an answer takes a moment, for kills to fall into."""

BROKER, CONTROLLER = "broker", "controller"


class Stack:
    """The parts by name, the proxies by name, and who lives where. Start it once, stop it always."""

    def __init__(self, folder: Path, scale: Scale, diary: Diary) -> None:
        self.folder = folder
        self.effects = folder / "effects"
        self.effects.mkdir(parents=True)
        self.data = folder / "data"
        self._kept: list[socket] = []
        self._scale = scale
        self._diary = diary
        self._adb_port, self._api_port, self._http_port, self._broker_port = (self._port() for _ in range(4))
        self._env = {
            **environment(folder, adb_port=self._adb_port),
            "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "DROIDFLEET_HEARTBEAT_S": str(HEARTBEAT_S),
        }
        self.proxies = {name: Proxy(self._broker_port) for name in (AGENTS_LINK, CONTROLLER_LINK)}
        self.parts: dict[str, Part] = {}
        self._around: list[Part] = []
        """What nobody kills: the adb server and the phones."""

    @property
    def api(self) -> str:
        """Where the controller answers."""
        return f"127.0.0.1:{self._api_port}"

    @property
    def devices(self) -> dict[str, Path]:
        """Every phone and its log of effects."""
        light = [light_device(number) for number in range(self._scale.light_devices)]
        real = [real_part(number) for number in range(self._scale.real_phones)]
        return {device: effects_file(self.effects, device) for device in (*light, *real)}

    def devices_of(self, part: str) -> frozenset[str]:
        """Whose agents a process holds; none for other parts."""
        for number in range(self._scale.light_processes):
            if part == light_part(number):
                first = number * self._scale.light_agents
                return frozenset(light_device(first + each) for each in range(self._scale.light_agents))
        return frozenset({part}) if part in self.devices else frozenset()

    def journals(self) -> list[Path]:
        """The files of all agents."""
        return sorted(self.folder.glob("state-*/journals/*"))

    async def start(self) -> None:
        """Starts everything, in order."""
        await self.start_broker()
        if self._scale.real_phones:
            await self._start_phones()
        self._add(
            CONTROLLER,
            [
                *(str(BIN / "droidfleet"), "serve", "--data", str(self.data), "--listen", self.api),
                *("--http", f"127.0.0.1:{self._http_port}", "--nats", self.proxies[CONTROLLER_LINK].url),
            ],
            self._listening(self._api_port),
        )
        await self.parts[CONTROLLER].start()
        await self.start_light(self._light_agents)

    async def start_broker(self) -> None:
        """Starts the broker and its proxies, and nothing else."""
        for proxy in self.proxies.values():
            await proxy.start()
        store = self.folder / "broker"
        store.mkdir()
        config = store / "nats-server.conf"
        config.write_text(config_text(Endpoint("127.0.0.1", self._broker_port), store=store))
        self._add(BROKER, [str(binary.find(None)), "-c", str(config)], self._listening(self._broker_port))
        await self.parts[BROKER].start()

    async def start_light(self, words: Callable[[int], Sequence[str]]) -> None:
        """Starts the processes of light agents; ``words`` gives each one's command by its number."""
        for number in range(self._scale.light_processes):
            self._add(light_part(number), words(number), _at_once)
            await self.parts[light_part(number)].start()

    def _light_agents(self, number: int) -> Sequence[str]:
        return [
            *(sys.executable, "-m", "chaos.light_agents", "--nats", self.proxies[AGENTS_LINK].url),
            *("--state", str(self.folder / f"state-{light_part(number)}"), "--effects", str(self.effects)),
            *("--first", str(number * self._scale.light_agents), "--count", str(self._scale.light_agents)),
            *("--heartbeat", str(HEARTBEAT_S)),
        ]

    async def _start_phones(self) -> None:
        scenario = self.folder / "post.yaml"
        scenario.write_text(SCENARIO)
        adb = [find_adb(), "-P", str(self._adb_port), "nodaemon", "server"]
        self._around.append(self._part("adb", adb, self._listening(self._adb_port)))
        for number in range(self._scale.real_phones):
            device, port = real_part(number), self._port()
            self._around.append(
                self._part(
                    f"{device} itself",
                    [
                        *(str(BIN / "droidfleet-phone"), "--scenario", str(scenario), "--port", str(port)),
                        *("--latency", LATENCY, "--effects", str(effects_file(self.effects, device))),
                    ],
                    self._listening(port),
                )
            )
            self._add(
                device,
                [
                    *(str(BIN / "droidfleet-agent"), "run", "--name", device, "--serial", f"127.0.0.1:{port}"),
                    *("--nats", self.proxies[AGENTS_LINK].url, "--heartbeat", str(HEARTBEAT_S)),
                    *("--state", str(self.folder / f"state-{device}")),
                ],
                _at_once,
            )
        for part in self._around:
            await part.start()
        for number in range(self._scale.real_phones):
            await self.parts[real_part(number)].start()

    async def stop(self) -> None:
        """Ends everything, whatever state it is in."""
        agents = [part for name, part in self.parts.items() if name not in {BROKER, CONTROLLER}]
        controllers = [self.parts[name] for name in (CONTROLLER, BROKER) if name in self.parts]
        await asyncio.gather(*(part.stop() for part in agents))
        for part in (*controllers, *reversed(self._around)):
            await part.stop()
        for proxy in self.proxies.values():
            await proxy.stop()
        for each in self._kept:
            each.close()

    def _port(self) -> int:
        self._kept.append(bound_socket())
        return int(self._kept[-1].getsockname()[1])

    def _add(self, name: str, words: Sequence[str], ready: Callable[[], Awaitable[bool]]) -> None:
        self.parts[name] = self._part(name, words, ready)

    def _part(self, name: str, words: Sequence[str], ready: Callable[[], Awaitable[bool]]) -> Part:
        log = self.folder / f"{name.replace(' ', '-')}.log"
        return Part(name, Command(words, self._env, self.folder, log, ready), self._diary)

    @staticmethod
    def _listening(port: int) -> Callable[[], Awaitable[bool]]:
        async def ready() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return False
            writer.close()
            return True

        return ready


async def _at_once() -> bool:
    """For parts that nobody waits for."""
    return True
