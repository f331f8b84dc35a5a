"""The simulated phones: the memory phone, whose answers take their time, go wrong, or come when their agent is dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.driver.port import ActionRefusedError, OutcomeUnknownError, PhoneUnavailableError
from droidfleet_agent.presence import Presence
from droidfleet_shared.bus.messages import PhoneState
from droidfleet_shared.clock import Clock, Deadline
from simulation.truth import Truth

READY, BROKEN = "ready", "broken"
"""The two pages of a phone: what tasks expect, and what makes them fail."""


def _page(text: str) -> Page:
    return Page(
        f'<hierarchy rotation="0"><node index="0" text="{text}" resource-id="a:id/it" class="android.widget.TextView"'
        ' package="com.example.app" content-desc="" checkable="false" checked="false" clickable="true" enabled="true"'
        ' focusable="false" focused="false" scrollable="false" long-clickable="false" password="false"'
        ' selected="false" visible-to-user="true" bounds="[0,0][1080,2400]" /></hierarchy>'
    )


PAGES = {READY: _page("Ready"), BROKEN: _page("Out of order")}


class SimPhone(MemoryPhone):
    """One phone, the same for all agents that ever drive it. ``unreliable``: in how many of a hundred actions the
    answer is lost, and in as many the action is refused or the phone not reached."""

    def __init__(
        self, serial: str, *, clock: Clock, truth: Truth, random: Random, slow_s: float, unreliable: int
    ) -> None:
        super().__init__(PAGES, start=READY, clock=clock, serial=serial)
        self._truth = truth
        self._random = random
        self._slow_s = slow_s
        self._unreliable = unreliable

    async def close(self) -> None:
        """An agent lets go of it; the phone stays."""

    async def _act(self, call: object, effect: Callable[[], None], deadline: Deadline) -> bool:
        name = self._truth.running.get(self._serial)
        if not self.attached:
            raise PhoneUnavailableError("PHONE_UNAVAILABLE", f"{self._serial} is not attached.")
        fate = self._random.randrange(100)
        takes_s = self._random.random() * self._slow_s
        if fate < self._unreliable:
            await self._clock.sleep(min(takes_s, deadline.remaining()))
            match fate % 3:
                case 0:
                    raise ActionRefusedError("ACTION_REFUSED", "the object is stale.")
                case 1:
                    raise PhoneUnavailableError("PHONE_UNAVAILABLE", f"{self._serial} dropped the connection.")
                case _:
                    return False
        self._truth.sent(self._serial, name)
        # Once sent it happens, also when who sent it is gone by then.
        asyncio.get_running_loop().call_later(takes_s * self._random.random(), self._happen, name, effect)
        in_time = await self._answer_in_time(takes_s, deadline)
        if not in_time or fate < 2 * self._unreliable or not self.attached:
            raise OutcomeUnknownError("OUTCOME_UNKNOWN", f"{self._serial} did not answer")
        return True

    def _happen(self, name: tuple[str, int] | None, effect: Callable[[], None]) -> None:
        self._truth.touched(self._serial, name)
        effect()


class SimPresence(Presence):
    """Whether the phone of one host is plugged in."""

    def __init__(self, phone: SimPhone) -> None:
        self._phone = phone
        self._callbacks: list[Callable[[], None]] = []

    def plug(self, there: bool) -> None:
        """Puts it in, or pulls it out."""
        if self._phone.attached != there:
            self._phone.attached = there
            for callback in list(self._callbacks):
                callback()

    def state(self, serial: str) -> PhoneState:
        return PhoneState.ONLINE if self._phone.attached else PhoneState.OFFLINE

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)
