"""A session with one device that keeps itself open, and looks that wait for the screen to come to rest."""

from __future__ import annotations

import getpass
import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from droidfleet.v1 import execution_pb2
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.screens import ScreenView
from droidfleet_shared.errors import DroidfleetError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

TTL = timedelta(seconds=30)
"""How long a device stays blocked after its holder was killed."""

RENEW_S = TTL.total_seconds() / 3

LOOKS = 8
LOOK_PAUSE_S = 0.3
"""After an action the screen is looked at until two looks are equal: 8 times at most, some seconds."""


class LiveDevice:
    """A context manager around a session; a thread renews it. ``doing``: what for, for people who find the device busy.

    Raises:
        DroidfleetError: at the start, ``DEVICE_BUSY`` with who has it.
    """

    def __init__(self, client: ControllerClient, device: str, *, doing: str) -> None:
        self._client = client
        self._device = device
        self._doing = doing
        self.session_id = ""
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="session", daemon=True)

    def __enter__(self) -> Self:
        self.session_id = self._client.open_session(self._device, holder=holder(self._doing), ttl=TTL)
        self._renewing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        # What cannot be closed now ends by itself.
        with suppress(DroidfleetError):
            self._client.close_session(self._device, self.session_id)

    def look(self) -> ScreenView:
        """The screen as it is now."""
        return ScreenView(self._client.tree(self._device))

    def look_at_rest(self) -> ScreenView:
        """The screen when two looks in a row are equal; the last look when it does not come to rest."""
        view = self.look()
        for _ in range(LOOKS):
            time.sleep(LOOK_PAUSE_S)
            before, view = view, self.look()
            if view.tree == before.tree:
                break
        return view

    def run(self, step: Mapping[str, object]) -> execution_pb2.TaskResult:
        """Runs one step on the phone, once."""
        return run_step(self._client, self._device, self.session_id, step)

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            # A session that was lost says so at its next step.
            with suppress(DroidfleetError):
                self._client.renew_session(self._device, self.session_id)


def run_step(
    client: ControllerClient, device: str, session_id: str, step: Mapping[str, object]
) -> execution_pb2.TaskResult:
    """Runs one step on the phone, once."""
    text = json.dumps(step, ensure_ascii=False)
    return client.run_step(device, session_id, text, request_id=uuid.uuid4().hex)


def holder(doing: str) -> str:
    """Who asks for a session, and what for."""
    return f"{_user()} on {socket.gethostname()} (pid {os.getpid()}, {doing})"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
