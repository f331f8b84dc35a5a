"""The commands of README and getting-started do what the pages say, in order, as a reader types them.

Ports, the adb server and all folders are the test's own; nothing else of a command is changed. Commands that install
are left out: `make` did that before any test could run.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.console import COLUMNS, Saved, Typed, first_missing, steps
from support.workplace import CALL_S, CHECKOUT, Workplace, eventually

pytestmark = pytest.mark.e2e

PAGES = ["README.md", "docs/designer.md", "docs/getting-started.md", "docs/reading-a-phone.md", "docs/rollouts.md"]
INSTALLING = re.compile(r"make |python3 -m venv |venv/bin/pip |export PATH=|git clone |cd ")
PORTS = ("7101", "7102", "7103", "7104", "7400", "7401", "7422")
IDS = (re.compile(r"\bro-[0-9a-z]{8,}\b"), re.compile(r"\bd-[0-9a-z]{8,}\b"))
"""Of rollouts and drafts."""

START_S = 30.0


class Reader:
    """Types the commands of one page into shells of one folder."""

    def __init__(self, workplace: Workplace) -> None:
        (workplace.folder / "examples").symlink_to(CHECKOUT / "examples")
        self._ports = dict(zip(PORTS, map(str, workplace.parts.keep_ports(len(PORTS))), strict=True))
        ports = self._ports
        env = {
            **workplace.env,
            "COLUMNS": COLUMNS,
            "DROIDFLEET_LISTEN": f"127.0.0.1:{ports['7400']}",
            "DROIDFLEET_API": f"127.0.0.1:{ports['7400']}",
            "DROIDFLEET_HTTP": f"127.0.0.1:{ports['7401']}",
            "DROIDFLEET_BROKER_LISTEN": f"127.0.0.1:{ports['7422']}",
        }
        self._workplace = Workplace(workplace.folder, env, workplace.parts)
        self.last_code = 0
        self._ids: dict[str, str] = {}

    def type(self, command: str) -> str:
        """Runs one command line; gives what came back on the screen."""
        command = re.sub(r"\b(\d{4})\b", lambda match: self._ports.get(match.group(), match.group()), command)
        for shown, actual in self._ids.items():
            command = command.replace(shown, actual)
        if command == "echo $?":
            return f"{self.last_code}\n"
        if command.endswith(" &"):
            self._start(command.removesuffix(" &"))
            self.last_code = 0
            return ""
        ran = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(self._workplace.env),
            cwd=self._workplace.folder,
            timeout=CALL_S,
            check=False,
        )
        self.last_code = ran.returncode
        return ran.stdout.decode()

    def _start(self, command: str) -> None:
        part = self._workplace.parts.start(
            command.split(maxsplit=1)[0] + f"-{os.urandom(2).hex()}",
            ["bash", "-c", f"cd '{self._workplace.folder}' && exec {command}"],
            env=self._workplace.env,
        )
        port = re.search(r"--port (\d+)", command)
        if command.startswith("droidfleet serve"):
            served = Path(self._workplace.env["XDG_DATA_HOME"]) / "droidfleet" / "serve.json"
            part.wait_until(served.exists, within_s=START_S, what="serving")
        elif port:
            part.wait_until(lambda: _listens(int(port.group(1))), within_s=START_S, what="listening")
        else:
            count = max(1, command.count("--name "))
            eventually(lambda: self._online() >= count, within_s=START_S, what=f"{count} devices are online")
            part.require_alive()

    def _online(self) -> int:
        return sum(device.state == "ONLINE" for device in self._workplace.devices().values())

    def learn(self, shown: Iterable[str], written: str) -> None:
        """Notes what a page means by an id that it shows: from then on it stands for the one of this run."""
        for of_kind in IDS:
            on_page, here = of_kind.search("\n".join(shown)), of_kind.search(written)
            if on_page and here:
                self._ids[on_page.group()] = here.group()

    def save(self, file: Saved) -> None:
        (self._workplace.folder / file.name).write_text(file.text)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("page", PAGES)
def test_page_does_what_it_says(page: str, workplace: Workplace) -> None:
    reader = Reader(workplace)
    todo = [step for step in steps(CHECKOUT / page) if isinstance(step, Saved) or not INSTALLING.match(step.command)]
    assert any(isinstance(step, Typed) for step in todo)
    for step, following in zip(todo, [*todo[1:], None], strict=True):
        if isinstance(step, Saved):
            reader.save(step)
            continue
        written = reader.type(step.command)
        reader.learn(step.shown, written)
        asks_for_code = isinstance(following, Typed) and following.command == "echo $?"
        assert reader.last_code == 0 or asks_for_code or step.command == "echo $?", f"$ {step.command}\n{written}"
        missing = first_missing(step.shown, written)
        assert missing is None, f"$ {step.command}\nshows no line like: {missing}\nbut:\n{written}"


def test_readme_names_the_two_commands() -> None:
    commands = [step.command for step in steps(CHECKOUT / "README.md") if isinstance(step, Typed)]
    assert commands[:2] == ["make demo", "make test"]
