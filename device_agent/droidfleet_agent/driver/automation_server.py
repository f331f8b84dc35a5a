"""The uiautomator2 server on the phone: its jar, its launch, its end. Whether it answers, the link finds out.

The server lives as long as the shell stream that launched it, so the stream is kept here and given back at the end. A
server that somebody else launched (an agent that ran before) is used as it is.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib.util
from pathlib import Path

import structlog

from droidfleet_agent.driver.adb import AdbServer, ShellStream
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.errors import UnavailableError

SERVER_PORT = 9008
"""The port on the phone. The stock client's, so that a server which is already there is found."""

JAR_ON_PHONE = "/data/local/tmp/u2.jar"
JAR_MODE = 0o644
LAUNCH_COMMAND = f"CLASSPATH={JAR_ON_PHONE} app_process / com.wetest.uia2.Main -p {SERVER_PORT}"

START_LIMIT_S = 30.0
"""A launched server that has not answered for this long is launched anew. A slow phone needs 10 s; the stock limit."""

ALREADY_REGISTERED = "already registered"
"""In the server's output when something else on the phone holds Android's one UiAutomation connection."""

log = structlog.get_logger(__name__)


class AutomationDownError(UnavailableError):
    """The automation server does not answer, or could not be launched."""


class AutomationServer:
    """Launches and ends the automation server of one phone. Methods raise `AdbError` and `AutomationDownError`."""

    def __init__(self, adb: AdbServer, serial: str, *, clock: Clock) -> None:
        self._adb = adb
        self._serial = serial
        self._clock = clock
        self._stream: ShellStream | None = None
        self._give_up = clock.deadline(0)
        self._answered = False

    async def launch(self, *, deadline: Deadline) -> None:
        """Sees to it that a server is starting; returns before it answers. For when it does not answer.

        A server that is still starting is left alone, so that a start may take longer than one caller's deadline.

        Raises:
            AutomationDownError: the server that was launched last never answered; the next call launches another.
        """
        stream = self._stream
        if stream is not None and not self._answered:
            taken = ALREADY_REGISTERED in stream.tail
            if not taken and not stream.closed.is_set() and not self._give_up.passed:
                return
            self.stop()
            raise _launch_failure(stream, taken=taken)
        self.stop()
        await self._provide_jar(deadline)
        self._stream = await self._adb.open_shell(self._serial, LAUNCH_COMMAND, deadline=deadline)
        self._give_up = self._clock.deadline(START_LIMIT_S)
        self._answered = False
        log.info("automation_server_launched", serial=self._serial)

    def answered(self) -> None:
        """Tells that the server answers: its start is over."""
        self._answered = True

    def stop(self) -> bool:
        """Ends the server if it was launched here. Returns whether it was."""
        stream, self._stream = self._stream, None
        if stream is None:
            return False
        stream.close()
        return True

    async def _provide_jar(self, deadline: Deadline) -> None:
        jar, md5 = await asyncio.to_thread(_jar)
        command = f"toybox md5sum {JAR_ON_PHONE} || md5 {JAR_ON_PHONE}"  # Android 5 has no toybox.
        if md5.encode() in await self._adb.shell(self._serial, command, deadline=deadline):
            return
        content = await asyncio.to_thread(jar.read_bytes)
        await self._adb.push(self._serial, content, JAR_ON_PHONE, mode=JAR_MODE, deadline=deadline)
        log.info("automation_server_pushed", serial=self._serial, bytes=len(content))


def _launch_failure(stream: ShellStream, *, taken: bool) -> AutomationDownError:
    if taken:
        return AutomationDownError(
            "AUTOMATION_TAKEN",
            "another program on the phone holds its one UiAutomation connection",
            hint="Stop the other test or automation tool (Appium, `uiautomator`, ...), or restart the phone.",
        )
    ended = stream.closed.is_set()
    return AutomationDownError(
        "AUTOMATION_ENDED" if ended else "AUTOMATION_SLOW",
        f"the automation server {'ended' if ended else f'did not answer within {START_LIMIT_S:g} s'}; it last printed: "
        f"{stream.tail[-500:] or 'nothing'}",
    )


@functools.cache
def _jar() -> tuple[Path, str]:
    """The server's jar in the uiautomator2 package, found without importing the package, and its MD5."""
    spec = importlib.util.find_spec("uiautomator2")
    assert spec is not None, "uiautomator2 is a dependency"
    assert spec.origin is not None
    path = Path(spec.origin).parent / "assets" / "u2.jar"
    with path.open("rb") as file:
        # MD5 is what the phone can compute; it guards against an old file, not against an attacker.
        return path, hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
