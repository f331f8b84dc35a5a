"""What really happened on the phones, whatever anybody reports: the side of the checks that knows no controller.

an attempt begins once, ever; a phone runs one at a time; nothing acts that has not begun or has ended
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from droidfleet_agent.journal.attempt import key
from droidfleet_shared.bus.messages import Event, ExecutionFinished, ExecutionRef, ExecutionStarted
from simulation.history import History

AttemptKey = tuple[str, int]


@dataclass(slots=True)
class Ran:
    """An attempt that began. ``code``: of its result, empty while it runs or when its agent died with it; ``actions``:
    what was sent to the phone; ``announced``: what was about to be."""

    phone: str
    began_at: float
    code: str = ""
    ended_at: float | None = None
    announced: int = 0
    actions: int = 0


@dataclass(slots=True)
class Truth:
    """The record. ``running``: the attempt that each phone is at work on."""

    history: History
    ran: dict[AttemptKey, Ran] = field(default_factory=dict)
    running: dict[str, AttemptKey] = field(default_factory=dict)
    idle_since: dict[str, float] = field(default_factory=dict)
    on_sent: Callable[[str], None] = lambda _execution_id: None

    def wrote(self, phone: str, event: Event) -> None:
        """An agent has written an event into its journal."""
        name = (event.execution_id, event.attempt)
        if isinstance(event, ExecutionStarted):
            self._begin(phone, name)
        elif event.kind == "ExecutionResumed":
            self._resume(phone, name)
        elif isinstance(event, ExecutionFinished):
            self._end(phone, name, event.result.code)

    def _begin(self, phone: str, name: AttemptKey) -> None:
        self.history.note(phone, f"begins {name[0]} attempt {name[1]}")
        self.history.expect(name not in self.ran, f"{name} begins a second time, on {phone}")
        busy = self.running.get(phone)
        self.history.expect(busy is None, f"{phone} begins {name} while it runs {busy}")
        for other, ran in self.ran.items():
            twice = other[0] == name[0] and ran.ended_at is None
            self.history.expect(not twice, f"{name} begins while {other} of the same execution runs")
        self.ran[name] = Ran(phone, asyncio.get_running_loop().time())
        self.running[phone] = name

    def _resume(self, phone: str, name: AttemptKey) -> None:
        self.history.note(phone, f"goes on with {name[0]} attempt {name[1]}")
        busy = self.running.get(phone)
        self.history.expect(busy is None, f"{phone} goes on with {name} while it runs {busy}")
        ran = self.ran.get(name)
        self.history.expect(ran is not None and not ran.code, f"{name} goes on, and does not go on from anything")
        if ran is not None:
            ran.ended_at = None
            self.running[phone] = name

    def _end(self, phone: str, name: AttemptKey, code: str) -> None:
        self.history.note(phone, f"ends {name[0]} attempt {name[1]}: {code}")
        ran = self.ran.get(name)
        if ran is None:
            return  # it never began
        self.history.expect(not ran.code, f"{name} ends a second time")
        ran.code = code
        self._stop(phone, name)

    def _stop(self, phone: str, name: AttemptKey) -> None:
        now = asyncio.get_running_loop().time()
        ran = self.ran[name]
        if ran.ended_at is None:
            ran.ended_at = now
        if self.running.get(phone) == name:
            del self.running[phone]
            self.idle_since[phone] = now

    def agent_died(self, phone: str) -> None:
        """Nothing runs there any more. An action that was sent may still reach the phone."""
        name = self.running.get(phone)
        if name is not None:
            self._stop(phone, name)

    def announced(self, ref: ExecutionRef) -> None:
        """The phone is about to be told to do something."""
        self.ran[key(ref)].announced += 1

    def sent(self, phone: str, name: AttemptKey | None) -> None:
        """An action is on its way, and nothing stops it any more. ``name``: of the attempt that sent it."""
        if name is None:
            self.history.finding(f"{phone} is told to do something while nothing runs")
            return
        ran = self.ran[name]
        self.history.expect(ran.announced > ran.actions, f"{name} acts on {phone} without having announced it")
        ran.actions += 1
        self.on_sent(name[0])

    def touched(self, phone: str, name: AttemptKey | None) -> None:
        """It has arrived."""
        self.history.note(phone, f"is touched by {name[0] if name else 'nobody'}")

    def may_have_acted(self, execution_id: str) -> bool:
        """Whether any attempt of an execution told its phone anything."""
        return any(ran.actions for (each, _), ran in self.ran.items() if each == execution_id)
