"""A private adb server for each pytest session, and virtual phones for tests that use blocking clients.

The user's own adb is never touched: the session's server has a port of its own (held for the session, put into
``ANDROID_ADB_SERVER_PORT`` before any test imports adbutils) and a home of its own. Phones run in one background thread
with an event loop, because adb, adbutils and uiautomator2 block.

Fixtures: ``adb_server`` (session), ``phones`` (function: call it for a connected phone). `tests/conftest.py` loads them
for every test.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from support.ports import bound_socket

if TYPE_CHECKING:  # imported where it is used: every test session loads this file, few need a phone
    from droidfleet_agent.virtual_phone.effects import EffectLog
    from droidfleet_agent.virtual_phone.faults import FaultPlan
    from droidfleet_agent.virtual_phone.server import PhoneHandle, PhoneOptions

T = TypeVar("T")

START_S = 20.0
"""adb 36 takes 3 s with USB and mDNS, 0.1 s without; a loaded machine gets some more."""

STATE_S = 20.0
"""A dropped phone is tried again by the adb server every ten seconds or so."""

QUIET = {
    "ADB_USB": "0",
    "ADB_MDNS": "0",
    "ADB_MDNS_OPENSCREEN": "0",
    "ADB_EMU": "0",
    "ADB_LOCAL_TRANSPORT_MAX_PORT": "5554",
}
"""No USB scan, no mDNS, no search for emulators: the server sees what a test connects, and starts at once."""


def find_adb() -> str:
    """The adb binary: on PATH, else the one in adbutils' wheel."""
    found = shutil.which("adb")
    if found:
        return found
    spec = find_spec("adbutils")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "binaries" / "adb")


def wait_for(condition: Callable[[], T], *, timeout_s: float, what: str) -> T:
    """Polls until ``condition`` gives something true, which is returned. Fails with ``what`` after the time."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() >= deadline:
            pytest.fail(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.02)


class AdbServer:
    """An adb server process of ours on a port of its own."""

    def __init__(self, *, port: int, home: Path) -> None:
        self.port = port
        self.executable = find_adb()
        self.environment = {**os.environ, **QUIET, "HOME": str(home), "ANDROID_ADB_SERVER_PORT": str(port)}
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        log = (self._home / "adb.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [self.executable, "-P", str(self.port), "server", "nodaemon"],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_for(self._answers, timeout_s=START_S, what=f"adb server on port {self.port}")

    def kill(self) -> None:
        """Ends it without a chance to say goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Ends it, and whatever a client may have started in its place."""
        self.kill()
        if self._answers():
            subprocess.run(
                [self.executable, "-P", str(self.port), "kill-server"],
                env=self.environment,
                check=False,
                timeout=10,
                capture_output=True,
            )

    def run(self, *arguments: str, timeout_s: float = 30.0, check: bool = True, stdin: bytes = b"") -> str:
        """Runs the adb command line against this server; returns what it printed."""
        return self.run_bytes(*arguments, timeout_s=timeout_s, check=check, stdin=stdin).decode(errors="replace")

    def run_bytes(self, *arguments: str, timeout_s: float = 30.0, check: bool = True, stdin: bytes = b"") -> bytes:
        """The same, as bytes."""
        done = subprocess.run(
            [self.executable, "-P", str(self.port), *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=timeout_s,
        )
        if check and done.returncode != 0:
            pytest.fail(f"adb {' '.join(arguments)} exited {done.returncode}: {done.stderr!r} {done.stdout!r}")
        return done.stdout + (b"" if check else done.stderr)

    def states(self) -> dict[str, str]:
        """State of each device by serial."""
        lines = self.run("devices").splitlines()[1:]
        return {line.split("\t")[0]: line.split("\t")[1] for line in lines if "\t" in line}

    def connect(self, address: str) -> str:
        """Connects a phone and waits until it is there. Returns its serial, which is its address."""
        self.run("connect", address)
        self.wait_state(address, "device")
        return address

    def disconnect(self, address: str) -> None:
        """Forgets a phone; unknown ones are no error."""
        self.run("disconnect", address, check=False)

    def wait_state(self, address: str, state: str, *, timeout_s: float = STATE_S) -> None:
        """Waits until a phone has a state; ``absent`` is one too."""
        wait_for(
            lambda: self.states().get(address, "absent") == state, timeout_s=timeout_s, what=f"{address} to be {state}"
        )

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                connection.sendall(b"000chost:version")
                return connection.recv(4) == b"OKAY"
        except OSError:
            return False


class PhoneThread:
    """Virtual phones in an event loop of their own, in a background thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="virtual-phones", daemon=True)
        self._thread.start()

    def start(self, options: PhoneOptions) -> RunningPhone:
        """Starts a phone and waits until it listens."""
        return RunningPhone(self._loop, options)

    def close(self) -> None:
        """Ends the thread; its phones must have been stopped."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()


class RunningPhone:
    """A phone in the background thread, for a test in the foreground."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: PhoneOptions) -> None:
        self._loop = loop
        self._stop = asyncio.Event()
        ready: Future[PhoneHandle] = Future()
        self._done = asyncio.run_coroutine_threadsafe(self._hold(options, ready), loop)
        self.handle = ready.result(timeout=20)
        self.address = self.handle.address
        self.port = self.handle.port
        self.effects: EffectLog = self.handle.effects
        self.faults: FaultPlan = self.handle.faults

    def do(self, act: Callable[[PhoneHandle], T]) -> T:
        """Runs ``act`` in the phone's own thread, where the model may be touched; returns its result."""

        async def call() -> T:
            return act(self.handle)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(timeout=20)

    def stop(self) -> None:
        """Stops the phone and waits for its end. Safe to call twice."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._done.result(timeout=20)

    async def _hold(self, options: PhoneOptions, ready: Future[PhoneHandle]) -> None:
        from droidfleet_agent.virtual_phone.server import serve_phone

        try:
            async with serve_phone(options) as handle:
                ready.set_result(handle)
                await self._stop.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
                return
            raise


class ConnectedPhones:
    """Makes phones for one test, connected to the private adb server; all are gone at its end."""

    def __init__(self, thread: PhoneThread, adb: AdbServer) -> None:
        self._thread = thread
        self._adb = adb
        self._phones: list[RunningPhone] = []

    def __call__(self, options: PhoneOptions | None = None, *, connect: bool = True) -> RunningPhone:
        from droidfleet_agent.virtual_phone.server import PhoneOptions

        phone = self._thread.start(options or PhoneOptions())
        self._phones.append(phone)
        if connect:
            self._adb.connect(phone.address)
        return phone

    def close(self) -> None:
        """Disconnects and stops every phone."""
        for phone in self._phones:
            self._adb.disconnect(phone.address)
            phone.stop()


_held_port = bound_socket()
# At import, before any test module imports adbutils, which reads it once: no test can reach the user's own adb server.
os.environ["ANDROID_ADB_SERVER_PORT"] = str(_held_port.getsockname()[1])
os.environ.update(QUIET)


def pytest_unconfigure() -> None:
    """Gives the session's port back."""
    _held_port.close()


@pytest.fixture(scope="session")
def adb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbServer]:
    """The session's own adb server, running. A test that kills it starts it again."""
    server = AdbServer(port=_held_port.getsockname()[1], home=tmp_path_factory.mktemp("adb"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def phone_thread() -> Iterator[PhoneThread]:
    """The session's background thread for phones."""
    thread = PhoneThread()
    yield thread
    thread.close()


@pytest.fixture
def phones(phone_thread: PhoneThread, adb_server: AdbServer) -> Iterator[ConnectedPhones]:
    """Call it with `PhoneOptions` to get a phone that is connected to the private adb server."""
    made = ConnectedPhones(phone_thread, adb_server)
    yield made
    made.close()
