"""A 20-step task by the engine, and the same steps written with plain uiautomator2, on the same virtual phone.

Both browse the shop and come back to where they began, so that they can take turns. The plain script checks less: it
does not read back what it typed, and takes the first of several matches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, median_ms
from benchmarks.one_phone import READY_S, ConnectedPhone, connected_phone
from droidfleet_agent.driver.phone import open_phone
from droidfleet_shared.clock import SystemClock
from support.runs import run_steps

if TYPE_CHECKING:
    import uiautomator2

MOST_OF_STOCK_AT_ZERO = 0.1
MOST_OF_STOCK_REALISTIC = 1.0
ROUNDS: Mapping[str, int] = {"zero": 12, "realistic": 5}
WARMUP = 1
WAIT_S = 5.0

Step = Mapping[str, object]
Stock = Callable[["uiautomator2.Device"], object]


def _wait(**selector: str) -> tuple[Step, Stock]:
    return {"action": "WAIT", "selector": selector}, lambda d: d(**selector).wait(timeout=WAIT_S)


def _click(**selector: str) -> tuple[Step, Stock]:
    return {"action": "CLICK", "selector": selector}, lambda d: d(**selector).click(timeout=WAIT_S)


def _read(**selector: str) -> tuple[Step, Stock]:
    step = {"action": "EXTRACT_TEXT", "selector": selector, "outputField": "text"}
    return step, lambda d: d(**selector).get_text(timeout=WAIT_S)


def _type(value: str, **selector: str) -> tuple[Step, Stock]:
    step = {"action": "INPUT", "selector": selector, "value": value}
    return step, lambda d: d(**selector).set_text(value, timeout=WAIT_S)


def _back() -> tuple[Step, Stock]:
    return {"action": "BACK"}, lambda d: d.press("back")


def _id(name: str) -> str:
    return f"com.example.shop:id/{name}"


STEPS: Sequence[tuple[Step, Stock]] = (
    _wait(text="Harbour Goods"),
    _click(resourceId=_id("search_bar")),
    _type("tea pot", resourceId=_id("search_src_text")),
    _click(description="Submit query"),
    _wait(text="Results"),
    _click(text="Ceramic tea pot 0.8 l"),
    _wait(text="Add to cart"),
    _read(resourceId=_id("product_price")),
    _back(),
    _click(text="Ceramic tea pot 1.2 l"),
    _read(resourceId=_id("product_price")),
    _back(),
    _wait(text="Results"),
    _back(),
    _click(text="Outdoor"),
    _click(text="Dry bag 20 l"),
    _read(resourceId=_id("product_price")),
    _back(),
    _back(),
    _wait(text="Harbour Goods"),
)


async def figures() -> list[Figure]:
    """Medians and ratios at both latencies."""
    made: list[Figure] = []
    for latency, target in (("zero", MOST_OF_STOCK_AT_ZERO), ("realistic", MOST_OF_STOCK_REALISTIC)):
        with connected_phone(latency=latency) as where:
            ours, stock = await _take(where, ROUNDS[latency])
        name = f"20-step task, {latency} latency"
        note = f"median of {ROUNDS[latency]} runs, in turns"
        made += [
            Figure(name, median_ms(ours), "ms", note=note),
            Figure(f"{name}: plain uiautomator2", median_ms(stock), "ms"),
            Figure(f"{name} / plain uiautomator2", statistics.median(ours) / statistics.median(stock), "x", target),
        ]
    return made


async def _take(where: ConnectedPhone, rounds: int) -> tuple[list[float], list[float]]:
    import adbutils
    import uiautomator2

    clock = SystemClock()
    phone = await open_phone(where.serial, adb_port=where.adb_port, clock=clock, deadline=clock.deadline(READY_S))
    device = uiautomator2.connect(adbutils.AdbClient("127.0.0.1", where.adb_port).device(where.serial))
    ours: list[float] = []
    stock: list[float] = []
    try:
        for turn in range(WARMUP + rounds):
            start = time.perf_counter()
            result = await run_steps(phone, clock, *(step for step, _ in STEPS))
            middle = time.perf_counter()
            assert result.successful, result.message
            for _, call in STEPS:
                call(device)
            if turn >= WARMUP:
                ours.append(middle - start)
                stock.append(time.perf_counter() - middle)
    finally:
        await phone.close()
    return ours, stock
