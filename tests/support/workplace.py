"""A place to run our programs as a user does: an environment of its own, the console scripts of this installation.

What programs print as JSON is read into small models that name only what tests look at.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import psutil
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from droidfleet_demo.fleet import BIN
from droidfleet_demo.processes import Part, Parts
from support.commandline import Ran

CHECKOUT = Path(__file__).parents[2]
CALL_S = 60.0
POLL_S = 0.1


class _Seen(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class SeenDevice(_Seen):
    """A device as the command line prints it."""

    name: str
    state: str
    running_execution_id: str | None


class _Devices(_Seen):
    devices: list[SeenDevice]


@dataclass(frozen=True, slots=True)
class Workplace:
    """A folder, the environment that keeps programs inside it, and the programs that run there until it ends."""

    folder: Path
    env: Mapping[str, str]
    parts: Parts

    def run(self, program: str, *arguments: str, stdin: bytes = b"", within_s: float = CALL_S) -> Ran:
        """Runs one console script to its end, in the folder."""
        ran = subprocess.run(
            [str(BIN / program), *arguments],
            input=stdin,
            capture_output=True,
            env=dict(self.env),
            cwd=self.folder,
            timeout=within_s,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    def droidfleet(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """Runs `droidfleet ARGUMENTS...`."""
        return self.run("droidfleet", *arguments, stdin=stdin)

    def start(self, name: str, program: str, *arguments: str) -> Part:
        """Starts a console script that goes on; its output is in ``<name>.log``."""
        return self.parts.start(name, [str(BIN / program), *arguments], env=self.env)

    def devices(self) -> dict[str, SeenDevice]:
        """The devices by name; empty while the controller does not answer."""
        ran = self.droidfleet("devices", "-o", "json")
        found = _Devices.model_validate_json(ran.out).devices if ran.code == 0 else []
        return {device.name: device for device in found}


def eventually(condition: Callable[[], object], *, within_s: float, what: str) -> None:
    """Returns once ``condition()`` is true; fails the test when it is not in time."""
    deadline = monotonic() + within_s
    while not condition():
        assert monotonic() < deadline, f"not within {within_s:g} s: {what}"
        sleep(POLL_S)


def left_running(folder: Path) -> list[psutil.Process]:
    """Processes whose home is in this folder: each of our parts, and whatever those started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HOME", "").startswith(str(folder)):
                found.append(process)
        except psutil.Error:  # it has ended, or it is not ours to look at
            continue
    return found
