"""Where an agent's process finds everything, and the rule for an agent's name. Light: the supervisor needs no more."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from droidfleet_shared.errors import InvalidInputError

MAX_NAME_CHARACTERS = 128
"""The protocol's bound on `assignedAgentName`."""


class HostOptions(BaseModel):
    """Where an agent's process finds everything. Never a secret: ``credentials`` names a file, and others come from the
    environment."""

    model_config = ConfigDict(frozen=True)

    nats: str
    credentials: Path | None = None
    adb_host: str | None = None
    adb_port: int | None = None
    state: Path
    heartbeat_s: float
    log_level: str


def check_name(name: str) -> str:
    """An agent's name as the protocol allows it.

    Raises:
        InvalidInputError: empty, too long, or with characters that nobody sees.
    """
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable() or name != name.strip():
        raise InvalidInputError(
            "BAD_NAME",
            f"{name[:MAX_NAME_CHARACTERS]!r} is not an agent's name.",
            hint=f"1 to {MAX_NAME_CHARACTERS} printable characters, no blanks around them.",
        )
    return name
