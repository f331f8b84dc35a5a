"""One driver call on a phone with zero latency: ours, plain `http.client` on a forwarded port, and the stock client.

A tap, because everybody makes it, and a dump, because it carries the most bytes. The three take turns in one run, on a
virtual phone in a process of its own, behind a private adb server.
"""

from __future__ import annotations

import http.client
import inspect
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.figures import Figure, median_ms
from droidfleet_agent.driver.adb import ONLINE, AdbServer
from droidfleet_agent.driver.phone import open_phone
from droidfleet_shared.clock import SystemClock
from support import adb as adb_support

ROUNDS = 120
WARMUP = 12
READY_S = 30.0
POINT = (5, 5)
"""In the status bar, where a tap does nothing."""

MOST_OF_PLAIN = 1.5
LEAST_OF_STOCK = 25.0

Call = Callable[[], object]


async def figures() -> list[Figure]:
    """Medians and ratios of a tap and of a dump."""
    import adbutils
    import uiautomator2

    clock = SystemClock()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        phone_port, adb_port = _free_port(), _free_port()
        stack.enter_context(_virtual_phone(phone_port))
        server = adb_support.AdbServer(port=adb_port, home=home)
        stack.callback(server.stop)
        server.start()
        serial = f"127.0.0.1:{phone_port}"
        adb = AdbServer("127.0.0.1", adb_port)
        deadline = clock.deadline(READY_S)
        while await adb.state(serial, deadline=deadline) != ONLINE:
            await adb.connect(serial, deadline=deadline)
        phone = await open_phone(serial, adb_port=adb_port, deadline=deadline)
        try:
            forwarded = await adb.forward(serial, "tcp:9008", deadline=deadline)
            plain = http.client.HTTPConnection("127.0.0.1", forwarded, timeout=READY_S)
            stock = uiautomator2.connect(adbutils.AdbClient("127.0.0.1", adb_port).device(serial))
            tap = await _interleaved(
                lambda: phone.tap(*POINT, deadline=clock.deadline(READY_S)),
                lambda: _plain_call(plain, "click", list(POINT)),
                lambda: stock.click(*POINT),
            )
            dump = await _interleaved(
                lambda: phone.dump(deadline=clock.deadline(READY_S)),
                lambda: _plain_call(plain, "dumpWindowHierarchy", [False, 50, False]),
                stock.dump_hierarchy,
            )
        finally:
            await phone.close()
    return [*_figures("tap", *tap), *_figures("dump", *dump)]


def _figures(name: str, ours: Sequence[float], plain: Sequence[float], stock: Sequence[float]) -> Iterator[Figure]:
    mine = statistics.median(ours)
    yield Figure(f"driver {name}", median_ms(ours), "ms", note=f"median of {ROUNDS} calls")
    yield Figure(f"driver {name}: plain http.client", median_ms(plain), "ms")
    yield Figure(f"driver {name}: stock uiautomator2", median_ms(stock), "ms")
    yield Figure(f"driver {name} / plain http.client", mine / statistics.median(plain), "x", MOST_OF_PLAIN)
    yield Figure(f"stock uiautomator2 / driver {name}", statistics.median(stock) / mine, "x", LEAST_OF_STOCK, "higher")


async def _interleaved(ours: Callable[[], Awaitable[object]], *others: Call) -> list[list[float]]:
    """As `figures.interleaved`, for a coroutine beside plain functions, which hold the event loop up, as they should.

    The order changes from turn to turn: whoever follows the stock client finds a processor that has slept meanwhile.
    """
    calls: list[Callable[[], object]] = [ours, *others]
    orders = list(itertools.permutations(range(len(calls))))
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(WARMUP + ROUNDS):
        for place in orders[turn % len(orders)]:
            start = time.perf_counter()
            result = calls[place]()
            if inspect.isawaitable(result):
                await result
            if turn >= WARMUP:
                times[place].append(time.perf_counter() - start)
    return times


def _plain_call(connection: http.client.HTTPConnection, method: str, params: list[object]) -> object:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/jsonrpc/0", body, {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())["result"]


@contextmanager
def _virtual_phone(port: int) -> Iterator[None]:
    """A phone in a process of its own, so that its work is not counted as ours."""
    process = subprocess.Popen(
        [Path(sys.executable).parent / "droidfleet-phone", "--scenario", "shop", "--port", str(port)],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(READY_S)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
