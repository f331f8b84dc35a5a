"""What a shell command is: a function of what it may use and its words, to what it prints and its exit status."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from droidfleet_agent.virtual_phone.faults import FaultPlan
from droidfleet_agent.virtual_phone.latency import LatencyProfile
from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.wire.automation import AutomationServer
from droidfleet_agent.virtual_phone.wire.files import PhoneFiles

USAGE = 1
NOT_FOUND = 127
KILLED = 137
"""128 + SIGKILL."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What every command of one phone may use. ``settings`` are by namespace (system, secure, global) and name."""

    phone: VirtualPhone
    files: PhoneFiles
    automation: AutomationServer
    faults: FaultPlan
    latency: LatencyProfile
    lock: asyncio.Lock
    settings: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, and its exit status."""

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """One run of a command. ``write`` prints at once, for commands that go on after it. ``stdin`` comes from a pipe."""

    machine: Machine
    write: Callable[[bytes], None]
    stdin: bytes = b""
    environment: dict[str, str] = field(default_factory=dict)
    level: int = 0
    """Shells around the one that runs it."""

    @property
    def phone(self) -> VirtualPhone:
        """The phone."""
        return self.machine.phone


Command = Callable[[Context, Sequence[str]], Output | Awaitable[Output]]
"""Called with the words after the name. A plain function has the phone to itself; one that awaits takes the lock."""


def printed(text: str) -> Output:
    """Text on stdout, with a line break at its end unless it is empty or has one."""
    return Output((text if not text or text.endswith("\n") else text + "\n").encode())


def failed(text: str, code: int = USAGE) -> Output:
    """Text on stderr and an exit status."""
    return Output(stderr=(text if text.endswith("\n") else text + "\n").encode(), code=code)


def options(words: Sequence[str], *, valued: Sequence[str] = ()) -> tuple[dict[str, str], list[str]]:
    """Splits words into options and the rest. An option of ``valued`` takes the next word; the others have no value."""
    found: dict[str, str] = {}
    rest: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word in valued:
            found[word] = next(remaining, "")
        elif word.startswith("-") and len(word) > 1:
            found[word] = ""
        else:
            rest.append(word)
    return found, rest
