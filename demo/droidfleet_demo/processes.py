"""Child processes with an owner: each in a group of its own, its output in a file, stopped in reverse order.

The owner also keeps ports for them, from when they are chosen until all have ended.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STOP_S = 5.0
"""How long a part may take to stop by itself before its whole group is killed."""

POLL_S = 0.05
LOG_LINES = 15

TRIES = 50
"""For ports in a row: the system gives the first, and one of the next may be in use."""

MAX_PORT = 65_535

_CAN_KEEP = platform.system() == "Linux"
"""Linux lets a program listen on a port that another socket has bound and does not listen on. Elsewhere a port that is
free when it is chosen can be taken before the part that it was chosen for listens."""


class PartFailedError(Exception):
    """A part did not start or did not live; ``log`` holds the last lines that it wrote."""

    def __init__(self, part: str, what: str, log: str = "") -> None:
        super().__init__(f"{part}: {what}")
        self.part = part
        self.log = log


@dataclass(frozen=True, slots=True)
class Part:
    """One running child."""

    name: str
    process: subprocess.Popen[bytes]
    log_path: Path

    def log_tail(self) -> str:
        """The last lines that it wrote."""
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])

    def require_alive(self) -> None:
        """Raises:
        PartFailedError: it has ended.
        """
        code = self.process.poll()
        if code is not None:
            raise PartFailedError(self.name, f"ended with exit code {code}", self.log_tail())

    def wait_until(self, ready: Callable[[], bool], *, within_s: float, what: str) -> None:
        """Returns once ``ready()`` holds.

        Raises:
            PartFailedError: it ended, or took longer than ``within_s`` seconds.
        """
        deadline = time.monotonic() + within_s
        while not ready():
            self.require_alive()
            if time.monotonic() > deadline:
                raise PartFailedError(self.name, f"{what}: not within {within_s:g} s", self.log_tail())
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Asks it to stop, then kills what is left of its group."""
        if self.process.poll() is None:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_S)
        self._signal(signal.SIGKILL)
        self.process.wait(STOP_S)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class Parts:
    """The running children, in the order they were started, and the ports kept for them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts: list[Part] = []
        self._kept = contextlib.ExitStack()

    def keep_ports(self, count: int) -> list[int]:
        """Free ports of loopback in a row, which no other program is given until `stop_all`.

        Raises:
            PartFailedError: there are none.
        """
        for _ in range(TRIES):
            with contextlib.ExitStack() as stack:
                first = stack.enter_context(_bound(0)).getsockname()[1]
                if first + count - 1 > MAX_PORT:
                    continue
                try:
                    for port in range(first + 1, first + count):
                        stack.enter_context(_bound(port))
                except OSError:
                    continue
                if _CAN_KEEP:
                    self._kept.push(stack.pop_all())
                return list(range(first, first + count))
        raise PartFailedError("ports", f"no {count} free ports in a row")

    def start(self, name: str, command: Sequence[str], *, env: Mapping[str, str]) -> Part:
        """Starts one child; its output goes to ``<folder>/<name>.log``.

        Raises:
            PartFailedError: the program cannot be run.
        """
        log_path = self._folder / f"{name}.log"
        try:
            with log_path.open("ab") as log:
                # A session of its own: Ctrl-C reaches the demo alone, which then stops the parts in order.
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(env), start_new_session=True
                )
        except OSError as error:
            raise PartFailedError(name, f"cannot run {command[0]}: {error.strerror}") from error
        part = Part(name, process, log_path)
        self._parts.append(part)
        return part

    def require_all_alive(self) -> None:
        """Raises:
        PartFailedError: one of them has ended.
        """
        for part in self._parts:
            part.require_alive()

    def stop_all(self) -> None:
        """Stops all, the newest first, and gives the ports back."""
        while self._parts:
            self._parts.pop().stop()
        self._kept.close()


def _bound(port: int) -> socket.socket:
    """A socket that has this port, 0 for any, and leaves the listening to others.

    Raises:
        OSError: the port is in use.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
    except OSError:
        bound.close()
        raise
    return bound
