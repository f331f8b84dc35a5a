"""Random phones in memory: screens of the words of `random_tasks`, faults in any call, changes that nobody asked for.

`Witness` stands before a phone and counts what it was told by its answers: done, perhaps done, not done.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import get_args

from droidfleet_agent.driver.memory import ACTIONS, KEYBOARD_PACKAGE, Call, Fault, MemoryPhone, Page
from droidfleet_agent.driver.port import (
    ActionRefusedError,
    Display,
    Focus,
    Key,
    OutcomeUnknownError,
    Phone,
    PhoneInfo,
    PhoneUnavailableError,
    ScreenState,
)
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.screen.node import Node
from support.random_tasks import ACTIVITIES, CLASSES, DIRECTIONS, IDS, LABELS, PACKAGES, PIN
from support.screens import HEIGHT, WIDTH, dump, field, node, window

PAGES = ("home", "list", "form", "other")
FAULTS_AHEAD = 12
"""Calls of each kind that may meet a fault; later ones work, so that most tasks get somewhere."""

ROW_HEIGHT = 200


def random_phone(random: Random, clock: Clock) -> MemoryPhone:
    """A phone with four random pages, and faults for some of the first calls."""
    latencies = random.choice(((0.0,), (0.0,), (0.0,), (0.01, 0.05), (0.02, 0.3)))
    phone = MemoryPhone(
        {name: _page(random) for name in PAGES},
        start=random.choice(PAGES),
        clock=clock,
        latency={call: random.choice(latencies) for call in get_args(Call)},
        typist=random.choice((str, str, lambda text: text[:-1], str.upper)),
        opens_keyboard=random.random() < 0.5,
        apps={package: random.choice(PAGES) for package in PACKAGES if random.random() < 0.8},
        home=random.choice(PAGES),
    )
    if random.random() < 0.15:
        phone.screen = ScreenState(on=random.random() < 0.5, locked=True, secure=random.random() < 0.3)
    in_reads, in_actions = random.choice(((0.0, 0.0), (0.0, 0.0), (0.0, 0.5), (0.0, 0.2), (0.1, 0.0), (0.1, 0.2)))
    for call in get_args(Call):
        rate = in_actions if call in ACTIONS else in_reads
        phone.fail(call, *(_fault(random, call, rate) for _ in range(FAULTS_AHEAD)))
    return phone


def _fault(random: Random, call: Call, rate: float) -> Fault:
    if random.random() >= rate:
        return Fault.NONE
    if call in ACTIONS:
        return random.choice([fault for fault in Fault if fault not in (Fault.NONE, Fault.CUT)])
    # A read that hangs ends most tasks: it is the rarest.
    again = [Fault.CUT] * 3 if call == "dump" else []
    return random.choice([Fault.HANG, *[Fault.DIES_BEFORE] * 3, *[Fault.DIES_AFTER] * 3, *again])


def _page(random: Random) -> Page:
    rows = [_row(random, place) for place in range(random.choice((0, 3, 5, 8, 8, 11)))]
    package = PACKAGES[0] if random.random() < 0.85 else PACKAGES[1]
    content = node(
        "",
        (0, 0, WIDTH, HEIGHT),
        *rows,
        class_name="ListView",
        resource_id=IDS[3],
        scrollable=random.random() < 0.5,
        package=package,
    )
    app = window(content, package=package)
    kind = random.random()
    if kind < 0.04:
        roots, active = [window(package="com.android.systemui")], None
    elif kind < 0.08:
        roots, active = [window(package="com.android.systemui", bounds=(0, 0, WIDTH, 90)), app], 1
    else:
        roots, active = [app], None
    taps = {label: random.choice(PAGES) for label in random.sample(LABELS, 3)}
    return Page(
        xml=dump(*roots, rotation=random.choice((0, 0, 0, 1))),
        taps=taps,
        swipes={towards: random.choice(PAGES) for towards in DIRECTIONS if random.random() < 0.4},
        back=random.choice((None, *PAGES)),
        activity=random.choice(ACTIVITIES),
        active=active,
    )


def _row(random: Random, place: int) -> Node:
    top = place * ROW_HEIGHT
    bounds = (0, top, WIDTH, top + ROW_HEIGHT)
    if random.random() < 0.2:
        return field(
            bounds,
            resource_id=IDS[2],
            hint=random.choice(LABELS),
            focused=random.random() < 0.3,
            password=random.random() < 0.2,
        )
    inner = node(
        PIN if random.random() < 0.03 else random.choice(LABELS),
        (20, top + 20, 20 if random.random() < 0.05 else WIDTH // 2, top + 150),
        class_name=random.choice(CLASSES),
        resource_id=random.choice(IDS),
        checked=random.random() < 0.2,
        enabled=random.random() < 0.9,
    )
    return node(
        "",
        bounds,
        inner,
        description=random.choice(("", "", *LABELS)),
        resource_id=IDS[0],
        clickable=random.random() < 0.7,
        class_name="android.view.ViewGroup",
        package=KEYBOARD_PACKAGE if random.random() < 0.02 else PACKAGES[0],
    )


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happens at a moment (seconds of the clock): another page comes, or the phone is away for a while."""

    at: float
    page: str = ""
    away_s: float = 0.0


def disturbances(random: Random) -> list[Disturbance]:
    """Up to six, in their order."""
    moments = sorted(random.uniform(0.0, 6.0) for _ in range(random.randint(0, 6)))
    return [
        Disturbance(at, away_s=random.uniform(0.01, 1.0))
        if random.random() < 0.15
        else Disturbance(at, page=random.choice(PAGES))
        for at in moments
    ]


class Witness(Phone):
    """Passes every call on, lets disturbances happen, and counts the actions by what became of them.

    A disturbance happens when the phone is asked next: nothing but the engine moves a virtual clock.
    """

    def __init__(self, phone: MemoryPhone, clock: Clock, ahead: Sequence[Disturbance] = ()) -> None:
        self._phone = phone
        self._clock = clock
        self._ahead = deque(ahead)
        self._away_until = 0.0
        self.may_have_happened: Counter[str] = Counter()
        """By name of the call: done, or nobody knows."""
        self.did_not_happen = 0
        self.calls = 0

    def called(self) -> None:
        """The phone is asked for something."""
        self.calls += 1

    async def _reach(self, deadline: Deadline) -> None:
        self.called()
        while self._ahead and self._ahead[0].at <= self._clock.monotonic():
            now = self._ahead.popleft()
            if now.page:
                self._phone.show(now.page)
            else:
                self._away_until = now.at + now.away_s
        away_s = self._away_until - self._clock.monotonic()
        if away_s > 0:
            await self._clock.sleep(min(away_s, deadline.remaining()))
            if deadline.passed:
                raise PhoneUnavailableError("PHONE_UNAVAILABLE", "the phone was away.")

    async def _act(self, name: str, action: Callable[[], Awaitable[bool]], deadline: Deadline) -> bool:
        try:
            await self._reach(deadline)
            done = await action()
        except (ActionRefusedError, PhoneUnavailableError):
            self.did_not_happen += 1
            raise
        except OutcomeUnknownError:
            self.may_have_happened[name] += 1
            raise
        self.may_have_happened[name] += 1
        return done

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        await self._reach(deadline)
        return await self._phone.dump(deadline=deadline, active_only=active_only)

    async def focus(self, *, deadline: Deadline) -> Focus:
        await self._reach(deadline)
        return await self._phone.focus(deadline=deadline)

    async def display(self, *, deadline: Deadline) -> Display:
        return await self._phone.display(deadline=deadline)

    async def input_methods(self, *, deadline: Deadline) -> frozenset[str]:
        return await self._phone.input_methods(deadline=deadline)

    async def keyboard_shown(self, *, deadline: Deadline) -> bool:
        await self._reach(deadline)
        return await self._phone.keyboard_shown(deadline=deadline)

    async def screenshot(self, *, deadline: Deadline) -> bytes:
        await self._reach(deadline)
        return await self._phone.screenshot(deadline=deadline)

    async def info(self, *, deadline: Deadline) -> PhoneInfo:
        await self._reach(deadline)
        return await self._phone.info(deadline=deadline)

    async def screen_state(self, *, deadline: Deadline) -> ScreenState:
        await self._reach(deadline)
        return await self._phone.screen_state(deadline=deadline)

    async def tap(self, x: int, y: int, *, deadline: Deadline, hold_ms: int | None = None) -> bool:
        return await self._act("tap", lambda: self._phone.tap(x, y, deadline=deadline, hold_ms=hold_ms), deadline)

    async def swipe(
        self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, hold_ms: int = 0, deadline: Deadline
    ) -> bool:
        def swiped() -> Awaitable[bool]:
            return self._phone.swipe(start, end, duration_ms=duration_ms, hold_ms=hold_ms, deadline=deadline)

        return await self._act("swipe", swiped, deadline)

    async def drag(self, start: tuple[int, int], end: tuple[int, int], *, duration_ms: int, deadline: Deadline) -> bool:
        def dragged() -> Awaitable[bool]:
            return self._phone.drag(start, end, duration_ms=duration_ms, deadline=deadline)

        return await self._act("drag", dragged, deadline)

    async def start_app(self, package: str, *, activity: str | None = None, deadline: Deadline) -> bool:
        def started() -> Awaitable[bool]:
            return self._phone.start_app(package, activity=activity, deadline=deadline)

        return await self._act("start_app", started, deadline)

    async def stop_app(self, package: str, *, deadline: Deadline) -> bool:
        return await self._act("stop_app", lambda: self._phone.stop_app(package, deadline=deadline), deadline)

    async def wake(self, *, deadline: Deadline) -> bool:
        return await self._act("wake", lambda: self._phone.wake(deadline=deadline), deadline)

    async def dismiss_lock(self, *, deadline: Deadline) -> bool:
        return await self._act("dismiss_lock", lambda: self._phone.dismiss_lock(deadline=deadline), deadline)

    async def set_focused_text(self, text: str, *, deadline: Deadline) -> bool:
        def typed() -> Awaitable[bool]:
            return self._phone.set_focused_text(text, deadline=deadline)

        return await self._act("set_focused_text", typed, deadline)

    async def press(self, key: Key, *, deadline: Deadline) -> bool:
        return await self._act("press", lambda: self._phone.press(key, deadline=deadline), deadline)

    async def hide_keyboard(self, *, deadline: Deadline) -> bool:
        return await self._act("hide_keyboard", lambda: self._phone.hide_keyboard(deadline=deadline), deadline)

    async def close(self) -> None:
        await self._phone.close()
