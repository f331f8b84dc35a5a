"""`python -m support.killable_agents`: real agent processes, forked from one that has everything loaded.

Reads a JSON object a line: ``arguments`` of `droidfleet-agent`, ``log``, and for `support.kill_points` ``execution``,
``point`` and ``record``. Answers ``{"pid"}`` for each, in order, and ``{"pid", "status"}`` when one has ended, which is
negative for a signal. At the end of its input it ends them all.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TypedDict

from droidfleet_agent.cli import main
from support.kill_points import KillSwitch, install

POLL_S = 0.01


class Order(TypedDict):
    """One line of the input. ``execution`` empty: no points."""

    arguments: list[str]
    log: str
    execution: str
    point: str
    record: str


def _agent(order: Order) -> None:
    """The new process; does not return."""
    code = 1
    try:
        descriptor = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        if order["execution"]:
            record = Path(order["record"]) if order["record"] else None
            install(KillSwitch(order["execution"], point=order["point"], record=record))
        code = main(order["arguments"])
    except BaseException:  # whatever it is, it must not go back into the loop of its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tell(**words: int) -> None:
    print(json.dumps(words), flush=True)


def _ended(pids: set[int], *, wait: bool = False) -> None:
    for pid in sorted(pids):
        ended, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
        if ended:
            pids.discard(pid)
            _tell(pid=pid, status=os.waitstatus_to_exitcode(status))


def serve() -> None:
    """Takes orders until the input ends."""
    import_module("droidfleet_agent.cli.run")
    pids: set[int] = set()
    waiting = b""
    try:
        while True:
            readable: Sequence[int] = select.select([0], [], [], POLL_S)[0]
            if readable:
                data = os.read(0, 65_536)
                if not data:
                    return
                *lines, waiting = (waiting + data).split(b"\n")
                for line in lines:
                    pid = os.fork()
                    if pid == 0:
                        _agent(json.loads(line))
                    pids.add(pid)
                    _tell(pid=pid)
            _ended(pids)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        _ended(pids, wait=True)


if __name__ == "__main__":
    serve()
