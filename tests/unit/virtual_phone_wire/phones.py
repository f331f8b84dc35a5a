"""A virtual phone with its wire but without any network, on a virtual clock."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from droidfleet_agent.virtual_phone.effects import EffectLog
from droidfleet_agent.virtual_phone.faults import Fault, FaultPlan
from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.latency import latency_profile
from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.wire.device import Network, WirePhone
from droidfleet_agent.virtual_phone.wire.files import PhoneFiles
from droidfleet_agent.virtual_phone.wire.frames import Command, Frame
from droidfleet_agent.virtual_phone.wire.tasks import PhoneTasks
from droidfleet_shared.clock import VirtualClock

from .wires import FakeHost

ANSWER_S = 20.0
"""Real seconds that an answer may take. A virtual clock makes waits short; painting a picture takes its time."""

SERVER = "CLASSPATH=/data/local/tmp/u2.jar app_process / com.wetest.uia2.Main -p 9008"

JsonDict = dict[str, object]


class Wired:
    """One phone with a host that has said hello."""

    def __init__(self, wire: WirePhone, clock: VirtualClock) -> None:
        self.wire = wire
        self.phone = wire.phone
        self.faults = wire.faults
        self.clock = clock
        self.host = FakeHost(wire)
        self.host.connect()
        self.offline_s: list[float] = []
        self._next = 1
        self._locals: dict[int, int] = {}

    def open(self, service: str) -> int:
        """Asks for a service; returns the host's number for the stream."""
        number, self._next = self._next, self._next + 1
        self.host.send(Command.OPEN, number, 0, service.encode() + b"\0")
        return number

    async def shell(self, line: str) -> tuple[str, str, int]:
        """Runs a command line by shell protocol 2: stdout, stderr, exit status."""
        data = await self.read(self.open(f"shell,v2,raw:{line}"), until_closed=True)
        out = {1: b"", 2: b"", 3: b""}
        while data:
            length = int.from_bytes(data[1:5], "little")
            out[data[0]] += data[5 : 5 + length]
            data = data[5 + length :]
        return out[1].decode(errors="replace"), out[2].decode(errors="replace"), out[3][0]

    async def start_server(self) -> int:
        """Starts the automation server; returns the stream that it hangs on."""
        number = self.open(f"shell:{SERVER}")
        await self.until_true(lambda: self.wire.automation.port is not None)
        self._take()
        return number

    def send_request(self, method: str, path: str, body: bytes = b"") -> int:
        """Sends one HTTP request on a stream of its own, whose number is returned."""
        number = self.open("tcp:9008")
        head = f"{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        self.host.send(Command.WRTE, number, self._local(number), head.encode() + body)
        return number

    async def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """One HTTP request: status and body of its answer. Status 0: closed without one."""
        answer = await self.read(self.send_request(method, path, body), until_closed=True)
        head, _, content = answer.partition(b"\r\n\r\n")
        if not head:
            return 0, b""
        return int(head.split(b" ")[1]), content

    async def rpc(self, method: str, *params: object) -> JsonDict:
        """One JSON-RPC call: the whole answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()
        status, content = await self.request("POST", "/jsonrpc/0", body)
        assert status == 200
        answer = json.loads(content)
        assert isinstance(answer, dict)
        return answer

    async def call(self, method: str, *params: object) -> object:
        """One JSON-RPC call: its result, which must be there."""
        answer = await self.rpc(method, *params)
        assert "result" in answer, answer
        return answer["result"]

    async def read(self, number: int, *, until_closed: bool = False) -> bytes:
        """What a stream gives, acknowledged as it comes. A refused stream gives nothing."""
        data = b""
        async for _ in _turns():
            for frame in self._take():
                if frame.arg1 == number and frame.command is Command.WRTE:
                    data += frame.payload
                    self.host.send(Command.OKAY, number, frame.arg0)
                elif frame.arg1 == number and frame.command is Command.CLSE:
                    return data
            if data and not until_closed:
                return data
        raise AssertionError(f"stream {number} gave only {data!r}")

    async def until_true(self, condition: Callable[[], bool]) -> None:
        """Turns the loop until ``condition`` holds."""
        async for _ in _turns():
            if condition():
                return
        raise AssertionError("it never came true")

    def close(self, number: int) -> None:
        """The host closes a stream."""
        self.host.send(Command.CLSE, number, self._local(number))

    def _local(self, number: int) -> int:
        self._take()
        return self._locals[number]

    def _take(self) -> list[Frame]:
        """What came from the phone, with the numbers of accepted streams noted."""
        frames = self.host.received()
        self._locals.update({frame.arg1: frame.arg0 for frame in frames if frame.command is Command.OKAY})
        return frames


async def _turns() -> AsyncIterator[None]:
    """Turns of the event loop until an answer is due."""
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        yield
        await asyncio.sleep(0)


@asynccontextmanager
async def wired(
    *,
    scenario: str = "shop",
    faults: Sequence[Fault] = (),
    latency: str = "zero",
    with_jar: bool = True,
) -> AsyncIterator[Wired]:
    """A phone to talk to; its tasks end with the context."""
    clock = VirtualClock()
    async with asyncio.TaskGroup() as group:
        tasks = PhoneTasks(group)
        offline: list[float] = []
        wire = WirePhone(
            VirtualPhone(load_scenario(scenario), identity=PhoneIdentity(), effects=EffectLog(clock), clock=clock),
            network=Network(tasks.spawn, offline.append),
            faults=FaultPlan(faults),
            latency=latency_profile(latency),
            files=PhoneFiles(with_jar=with_jar),
        )
        made = Wired(wire, clock)
        made.offline_s = offline
        try:
            yield made
        finally:
            made.host.connection.connection_lost(None)
            tasks.cancel_all()


def selector(**fields: object) -> Mapping[str, object]:
    """A selector as the client writes it."""
    masks = {"text": 0x1, "textContains": 0x2, "resourceId": 0x200000, "className": 0x10, "scrollable": 0x4000}
    return {
        "mask": sum(masks[name] for name in fields),
        "childOrSibling": [],
        "childOrSiblingSelector": [],
        **fields,
    }
