"""Starts the parts of the demo as a user would, on free ports and with folders of its own, and waits until all work."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from droidfleet_agent.driver.adb_program import adb_binary
from droidfleet_demo.processes import Part, PartFailedError, Parts

SCENARIO = "shop"
TWIN_VARIANT = "twin"
OWN_SERIAL_PREFIX = "DEMO"
ONLINE_EVENT = '"agent_online"'
"""What `droidfleet-agent supervise -o json` writes once for each agent that the controller knows."""

SERVE_FILE = "serve.json"
"""Where `droidfleet serve` writes its addresses, in its data folder."""

PLAIN_PHONES = 4
TWIN_PHONES = 1

BIN = Path(sys.executable).parent
"""Where the console scripts of this very installation are."""

START_S = 30.0
"""For one part to work; each takes about a second on an idle machine."""

CALL_S = 30.0
"""For one call of the command line."""

FOREIGN_PREFIXES = ("DROIDFLEET_", "ANDROID_", "ADB_", "NATS_")
"""Settings of the user's own fleet and adb, which the demo must neither use nor touch."""


@dataclass(frozen=True, slots=True)
class Phone:
    """One virtual phone. All phones of a fleet are served by one program and log what they feel in one file."""

    number: int
    port: int
    effects_path: Path
    twin: bool
    """Whether its shop shows two buttons of one name."""

    @property
    def name(self) -> str:
        """Its device's name."""
        return f"phone-{self.number:02}"

    @property
    def serial(self) -> str:
        """Its adb serial."""
        return f"127.0.0.1:{self.port}"

    def effects(self) -> list[dict[str, object]]:
        """What it felt."""
        lines = self.effects_path.read_text().splitlines() if self.effects_path.exists() else []
        effects: list[dict[str, object]] = [json.loads(line) for line in lines]
        return [effect for effect in effects if effect["serial"] == f"{OWN_SERIAL_PREFIX}{self.number:08}"]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What runs and how to reach it. ``env`` makes every program of ours, and adb, talk to these parts alone."""

    env: Mapping[str, str]
    api: str
    http: str
    nats: str
    adb: str
    phones: tuple[Phone, ...]
    phone_program: Part
    controller: Part

    def command(self, *arguments: str) -> list[str]:
        """`droidfleet ARGUMENTS...` of this installation."""
        return [str(BIN / "droidfleet"), *arguments]

    def ask(self, *arguments: str) -> list[dict[str, object]]:
        """The documents that a `droidfleet` command writes as lines of JSON, or its one document.

        Raises:
            PartFailedError: it could not answer. An exit code of 1 (an execution failed) is an answer.
        """
        command = self.command(*arguments, "--output", "json")
        ran = subprocess.run(command, env=dict(self.env), capture_output=True, text=True, timeout=CALL_S, check=False)
        if ran.returncode not in {0, 1}:
            raise PartFailedError("droidfleet " + " ".join(arguments), f"exit code {ran.returncode}", ran.stderr)
        decoder = json.JSONDecoder()
        documents: list[dict[str, object]] = []
        rest = ran.stdout.strip()
        while rest:
            document, end = decoder.raw_decode(rest)
            documents.append(document)
            rest = rest[end:].strip()
        return documents


def start_fleet(folder: Path, parts: Parts, *, plain: int = PLAIN_PHONES, twins: int = TWIN_PHONES) -> Fleet:
    """Starts everything and returns once all devices are online. ``folder`` keeps all data and logs.

    Raises:
        PartFailedError: a part did not start, with the last lines of its log.
    """
    (adb_port,) = parts.keep_ports(1)
    env = environment(folder, adb_port=adb_port)
    data = folder / "controller"
    controller = parts.start(
        "controller",
        [
            *(str(BIN / "droidfleet"), "serve", "--data", str(data)),
            *("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--broker-listen", "127.0.0.1:0"),
            "--practice-model",
        ],
        env=env,
    )
    adb = adb_binary()
    adb_server = parts.start("adb", [adb, "-P", str(adb_port), "nodaemon", "server"], env=env)
    phones = tuple(
        Phone(number, port, folder / "effects.jsonl", twin=number > plain)
        for number, port in enumerate(parts.keep_ports(plain + twins), start=1)
    )
    phone_program = start_phones(parts, phones, env=env)

    serving = data / SERVE_FILE
    controller.wait_until(serving.exists, within_s=START_S, what="serving")
    addresses = json.loads(serving.read_text())
    env = {**env, "DROIDFLEET_API": addresses["api"]}
    adb_server.wait_until(lambda: listens(adb_port), within_s=START_S, what="listening")
    phone_program.wait_until(lambda: all(listens(phone.port) for phone in phones), within_s=START_S, what="listening")
    agents = parts.start("agents", _supervise_command(addresses["nats"], phones), env=env)
    fleet = Fleet(env, addresses["api"], addresses["http"], addresses["nats"], adb, phones, phone_program, controller)
    agents.wait_until(
        lambda: agents.log_path.read_text().count(ONLINE_EVENT) >= len(phones) and _online(fleet) == len(phones),
        within_s=START_S,
        what="all devices online",
    )
    return fleet


def environment(folder: Path, *, adb_port: int) -> dict[str, str]:
    """The environment of every part: folders of its own, an adb server of its own, nothing of the user's fleet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)}
    return {
        **kept,
        # Ours first; the adb in use last, for whoever types the commands that the demo shows.
        "PATH": os.pathsep.join([str(BIN), kept.get("PATH", os.defpath), str(Path(adb_binary()).parent)]),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "ANDROID_ADB_SERVER_PORT": str(adb_port),
        # This adb server sees the virtual phones alone: attached phones and emulators stay with the user's own.
        "ADB_USB": "0",
        "ADB_EMU": "0",
        "ADB_MDNS": "0",
    }


def listens(port: int) -> bool:
    """Whether somebody listens on this port of loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def start_phones(parts: Parts, phones: Sequence[Phone], *, env: Mapping[str, str]) -> Part:
    """Starts the virtual phones (again) on their ports."""
    twins = [word for phone in phones if phone.twin for word in ("--variant-for", f"{phone.number}={TWIN_VARIANT}")]
    command = [
        *(str(BIN / "droidfleet-phone"), "--scenario", SCENARIO, "--count", str(len(phones)), *twins),
        *("--port", str(phones[0].port), "--serial-prefix", OWN_SERIAL_PREFIX),
        *("--latency", "realistic", "--effects", str(phones[0].effects_path)),
    ]
    return parts.start("phones", command, env=env)


def _supervise_command(nats: str, phones: Sequence[Phone]) -> list[str]:
    names = [word for phone in phones for word in ("--name", f"{phone.serial}={phone.name}")]
    return [
        *(str(BIN / "droidfleet-agent"), "supervise", "--nats", nats, "--output", "json"),
        *("--phones-per-process", str(len(phones)), *names),
    ]


def _online(fleet: Fleet) -> int:
    """How many devices are online and have told of their phone, which then has answered its agent."""
    (answer,) = fleet.ask("devices", "--state", "online")
    devices = answer["devices"]
    assert isinstance(devices, list)
    return sum(1 for device in devices if device["model"])
