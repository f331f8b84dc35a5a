"""One effect: every action that touches the phone, under every fault that can hit its call.

The virtual phone's effect log is the judge. Whatever breaks, what an action does happened at most once, and the result
tells the truth about it: a success means once, a failure with a certain code means not at all, and only
`OUTCOME_UNKNOWN` leaves it open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from droidfleet_agent.driver.phone import AdbPhone, open_phone
from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.server import PhoneHandle, PhoneOptions
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import StepResult
from support.adb import AdbServer, PhoneThread, RunningPhone, wait_for
from support.runs import JsonStep, run_steps

pytestmark = pytest.mark.integration

WORKBENCH = Path(__file__).parents[1] / "actions" / "workbench.yaml"
PACKAGE = "com.example.bench"
OTHER = "com.example.other"
WAITING_MS = (1_000, 4_000, 16_000)
"""Of a step that waits in vain for all of that: on a busy machine the first may end before the call is made."""
IN_VAIN = frozenset({FaultKind.HANG, FaultKind.SWALLOW})
TIMEOUT_MS = 10_000
"""Of a step that ends when its call is answered, whatever the answer."""
AFTER_MS = 1_000


@dataclass(frozen=True)
class Row:
    """One action. ``call`` tells the phone to do it, the ``nth`` of the run; ``effect`` is what the log calls it;
    ``takes_ms``: how long its finger is down."""

    name: str
    step: JsonStep
    call: str
    effect: str
    nth: int = 1
    before: tuple[JsonStep, ...] = ()
    asleep: bool = False
    code: int | None = None
    takes_ms: int = 0

    @property
    def by_shell(self) -> bool:
        """Whether the phone is told by a command of its shell."""
        return self.call.startswith("shell:")


ROWS_PAGE: JsonStep = {"action": "CLICK", "selector": {"text": "Rows"}}
TABLE = [
    Row("CLICK", {"action": "CLICK", "selector": {"text": "Hold me"}}, "click", "tapped"),
    Row(
        "LONG_CLICK",
        {"action": "LONG_CLICK", "selector": {"text": "Hold me"}, "durationMs": 500},
        "click",
        "held",
        takes_ms=500,
    ),
    Row("INPUT focus", {"action": "INPUT", "selector": {"resourceId": "note"}, "value": "x"}, "click", "tap"),
    Row("INPUT text", {"action": "INPUT", "selector": {"resourceId": "note"}, "value": "x"}, "setText", "set_text"),
    Row(
        "INPUT submit",
        {"action": "INPUT", "selector": {"resourceId": "note"}, "value": "x", "submit": True},
        "pressKeyCode",
        "key",
        code=66,
    ),
    Row("BACK", {"action": "BACK"}, "pressKeyCode", "key", before=(ROWS_PAGE,), code=4),
    Row("KEY", {"action": "KEY", "key": "HOME"}, "pressKeyCode", "key", code=3),
    Row("KEY panel", {"action": "KEY", "key": "NOTIFICATIONS"}, "openNotification", "open_notifications"),
    Row("SWIPE", {"action": "SWIPE", "direction": "UP"}, "swipe", "swipe", before=(ROWS_PAGE,)),
    Row("SCROLL", {"action": "SCROLL", "maxScrolls": 1}, "swipePoints", "swipe", before=(ROWS_PAGE,)),
    Row(
        "DRAG",
        {"action": "DRAG", "selector": {"text": "Handle"}, "to": {"text": "Place"}, "durationMs": 100},
        "drag",
        "moved",
    ),
    Row(
        "SELECT_OPTION",
        {"action": "SELECT_OPTION", "selector": {"resourceId": "country"}, "option": {"text": "Country 2"}},
        "click",
        "chosen",
        nth=2,
    ),
    Row("OPEN", {"action": "OPEN", "packageName": OTHER}, "shell:am start", "start_app"),
    Row(
        "OPEN stopFirst", {"action": "OPEN", "packageName": OTHER, "stopFirst": True}, "shell:am force-stop", "stop_app"
    ),
    Row("STOP_APP", {"action": "STOP_APP", "packageName": PACKAGE}, "shell:am force-stop", "stop_app"),
    Row("WAKE", {"action": "WAKE"}, "pressKeyCode", "key", asleep=True, code=224),
    Row("WAKE unlock", {"action": "WAKE"}, "shell:wm dismiss-keyguard", "dismiss_keyguard", asleep=True),
]
SHELL_FAULTS = [
    (FaultKind.HANG, False),
    (FaultKind.HANG, True),
    (FaultKind.DROP, False),
    (FaultKind.DROP, True),
    (FaultKind.OFFLINE, False),
    (FaultKind.OFFLINE, True),
    (FaultKind.SLOW, False),
]
CALL_FAULTS = [
    *SHELL_FAULTS,
    (FaultKind.KILL_SERVER, False),
    (FaultKind.KILL_SERVER, True),
    (FaultKind.HTTP_ERROR, False),
    (FaultKind.CUT_ANSWER, False),
    (FaultKind.NOT_CONNECTED, False),
    (FaultKind.DEAD_OBJECT, False),
    (FaultKind.STALE, False),
    (FaultKind.NOT_FOUND, False),
    (FaultKind.FALSE, False),
]
SECONDS = {FaultKind.OFFLINE: 0.2, FaultKind.SLOW: 0.1}


def cases() -> Iterator[object]:
    for row in TABLE:
        faults = SHELL_FAULTS if row.by_shell else CALL_FAULTS
        if row.call == "click":
            faults = [*faults, (FaultKind.SWALLOW, False)]
        for kind, after in faults:
            yield pytest.param(row, kind, after, id=f"{row.name}-{kind}{'-after' if after else ''}")


class Bench:
    """The one phone of this module, made ready for each test."""

    def __init__(self, running: RunningPhone, phone: AdbPhone) -> None:
        self.running = running
        self.phone = phone
        self._mark = 0

    async def run(self, *steps: JsonStep) -> Sequence[StepResult]:
        return (await run_steps(self.phone, SystemClock(), *steps)).steps

    def reset(self) -> None:
        """The workbench in front as at its first start, and no faults."""
        self.running.do(_reset)

    def mark(self) -> None:
        """Counts from here."""
        self._mark = len(self.running.effects.all())

    def met(self, fault: Fault) -> bool:
        """Whether that very fault has hit a call."""
        return any(fired.fault is fault for fired in self.running.faults.fired)

    def count(self, row: Row) -> int:
        """How often the row's effect happened since."""
        return sum(
            effect.kind == row.effect and (row.code is None or effect.details.get("code") == row.code)
            for effect in self.running.effects.all()[self._mark :]
        )


def _reset(handle: PhoneHandle) -> None:
    handle.faults.clear()
    handle.phone.wake()
    handle.phone.dismiss_keyguard()
    handle.phone.press_key("home")
    handle.phone.clear_app(PACKAGE)
    handle.phone.stop_app(OTHER)
    handle.phone.start_app(PACKAGE)


@pytest.fixture(scope="module")
def running(phone_thread: PhoneThread, adb_server: AdbServer) -> Iterator[RunningPhone]:
    """A phone that outlives its faults."""
    made = phone_thread.start(PhoneOptions(scenario=load_scenario(WORKBENCH)))
    adb_server.connect(made.address)
    yield made
    adb_server.disconnect(made.address)
    made.stop()


@pytest.fixture
async def bench(running: RunningPhone, adb_server: AdbServer) -> AsyncIterator[Bench]:
    """The workbench in front as at its first start."""

    if adb_server.states().get(running.address) != "device":
        # After a test that took it offline: adb by itself calls it again only after seconds.
        adb_server.disconnect(running.address)
        wait_for(
            lambda: adb_server.run("connect", running.address, check=False).startswith("connected"),
            timeout_s=20,
            what="the phone to be back",
        )
    running.do(_reset)
    clock = SystemClock()
    phone = await open_phone(running.address, adb_port=adb_server.port, clock=clock, deadline=clock.deadline(20))
    yield Bench(running, phone)
    await phone.close()


async def prepared(bench: Bench, row: Row) -> None:
    for step in await bench.run(*row.before) if row.before else ():
        assert step.successful
    if row.asleep:
        bench.running.do(lambda handle: handle.phone.sleep())
    bench.mark()


async def hit(bench: Bench, row: Row, fault: Fault, **rest: object) -> StepResult:
    """The row's step, with the ``rest`` of its fields, whose call met the fault."""
    for timeout_ms in WAITING_MS if fault.do in IN_VAIN else (TIMEOUT_MS,):
        bench.reset()
        await prepared(bench, row)
        bench.running.faults.add(fault)
        [step] = await bench.run({"timeoutMs": timeout_ms + row.takes_ms, **row.step, **rest})
        if bench.met(fault):
            return step
        assert bench.count(row) == 0, "it happened, and not by the call that was to be hit"
    raise AssertionError("the call was never made, so nothing was tried")


@pytest.mark.parametrize(("row", "kind", "after"), list(cases()))
async def test_an_action_happens_at_most_once_and_its_result_is_true(
    bench: Bench, row: Row, kind: FaultKind, after: bool
) -> None:
    fault = Fault(on=row.call, do=kind, nth=row.nth, after=after, seconds=SECONDS.get(kind))

    step = await hit(bench, row, fault)

    count = bench.count(row)
    assert count <= 1, step.message
    assert kind is not FaultKind.SLOW or step.successful, step.message
    assert not after or count == 1, "it was to be carried out, and its answer lost"
    if step.successful:
        # A swallowed tap was answered with true, and nothing asked whether it had an effect.
        assert count == 1 or (kind is FaultKind.SWALLOW and step.detail is Detail.DISPATCHED_UNVERIFIED), step.message
    elif kind is not FaultKind.SWALLOW and step.code is not StepCode.OUTCOME_UNKNOWN and step.dispatched <= row.nth:
        assert count == 0, step.message


STREAMS = [
    *((kind, row.name, nth) for kind in (FaultKind.REFUSE,) for row in TABLE if row.nth == 1 for nth in range(1, 6)),
    *((FaultKind.HANG, name, nth) for name in ("OPEN", "STOP_APP") for nth in range(1, 6)),
]
"""Which of the streams that the step opens is refused, or opens and says nothing."""
BY_NAME = {row.name: row for row in TABLE}


@pytest.mark.parametrize(("kind", "name", "nth"), STREAMS)
async def test_an_action_happens_at_most_once_whichever_stream_breaks(
    bench: Bench, kind: FaultKind, name: str, nth: int
) -> None:
    row = BY_NAME[name]
    await prepared(bench, row)
    bench.running.faults.add(Fault(on="open", do=kind, nth=nth))

    timeout_ms = WAITING_MS[0] if kind in IN_VAIN else TIMEOUT_MS
    [step] = await bench.run({"timeoutMs": timeout_ms + row.takes_ms, **row.step})

    assert bench.count(row) == 1 if step.successful else bench.count(row) <= 1, step.message
    if step.dispatched == 0 or step.code is StepCode.ACTION_FAILED:
        assert bench.count(row) == 0, step.message


REPEATABLE = [
    (ROWS_PAGE, "click", "tap", {"visible": {"text": "Eighty rows"}}, ()),
    ({"action": "BACK"}, "pressKeyCode", "key", {"visible": {"text": "Hold me"}}, (ROWS_PAGE,)),
    ({"action": "OPEN", "packageName": OTHER}, "shell:am start", "start_app", {"foreground": OTHER}, ()),
]


def repeated() -> Iterator[object]:
    for step, call, effect, condition, before in REPEATABLE:
        faults = SHELL_FAULTS if call.startswith("shell:") else CALL_FAULTS
        for kind, after in [*faults, *([(FaultKind.SWALLOW, False)] if call == "click" else [])]:
            row = Row(str(step["action"]), step, call, effect, before=before)
            yield pytest.param(row, condition, kind, after, id=f"{row.name}-{kind}{'-after' if after else ''}")


@pytest.mark.parametrize(("row", "condition", "kind", "after"), list(repeated()))
async def test_an_action_that_may_be_repeated_has_one_effect_where_its_after_holds(
    bench: Bench, row: Row, condition: object, kind: FaultKind, after: bool
) -> None:
    fault = Fault(on=row.call, do=kind, after=after, seconds=SECONDS.get(kind))

    step = await hit(bench, row, fault, redo=True, after={"condition": condition, "timeoutMs": AFTER_MS})

    happened = bench.count(row) - (kind is FaultKind.SWALLOW)  # a swallowed tap is in the log and had no effect
    assert happened <= 1, step.message
    if step.successful:
        assert happened == 1, step.message
    if kind is FaultKind.SLOW or (after and kind is FaultKind.DROP):
        assert step.successful, "it happened, and `after` holds"
