"""A scroll that the phone refused is decided afresh."""

from __future__ import annotations

from droidfleet_agent.driver.memory import Fault, MemoryPhone, Page
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail
from support.runs import Recorder, run_step
from support.screens import WHOLE, dump, node, window


class _ShowsIt(Recorder):
    """What is looked for comes by itself while the first scroll is on its way."""

    def __init__(self, phone: MemoryPhone) -> None:
        super().__init__()
        self._phone = phone

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        await super().dispatching(step_id, path, ordinal)
        self._phone.show("with")


async def test_nothing_is_scrolled_any_more_once_it_is_seen(clock: VirtualClock) -> None:
    def page(*texts: str) -> Page:
        rows = [node(text, (0, 100 * at, 500, 100 * at + 90)) for at, text in enumerate(texts)]
        return Page(dump(window(node("", WHOLE, *rows, scrollable=True))))

    phone = MemoryPhone({"without": page("Tea"), "with": page("Tea", "Coffee")}, start="without", clock=clock)
    phone.fail("swipe", Fault.REFUSED)
    step = {"action": "SCROLL", "until": {"text": "Coffee"}}
    result = await run_step(phone, clock, step, observer=_ShowsIt(phone))
    assert (result.successful, result.detail) == (True, Detail.SEEN)
    assert phone.done == []
