"""How a program proves to the broker who it is. Secrets come from a file or the environment, never from argv."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from droidfleet_shared.errors import InvalidInputError

NATS_CREDENTIALS_ENV = "DROIDFLEET_NATS_CREDENTIALS"
NATS_USER_ENV = "DROIDFLEET_NATS_USER"
NATS_PASSWORD_ENV = "DROIDFLEET_NATS_PASSWORD"  # noqa: S105  # the name of a variable
NATS_TOKEN_ENV = "DROIDFLEET_NATS_TOKEN"  # noqa: S105  # the name of a variable

_JWT_MARK = "-----BEGIN NATS USER JWT-----"


@dataclass(frozen=True, slots=True)
class BusCredentials:
    """One way of proving it: a NATS ``.creds`` file, a user with a password, or a token. Never shown by ``repr``."""

    creds_file: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


def load_credentials(file: Path | None, environ: Mapping[str, str] = os.environ) -> BusCredentials | None:
    """Credentials of ``file``, else of the environment, else None.

    The file is a NATS ``.creds`` file, or holds one line: ``user:password``, or a token.

    Raises:
        InvalidInputError: the file cannot be read, is open to others, or is empty.
    """
    if file is None and environ.get(NATS_CREDENTIALS_ENV):
        file = Path(environ[NATS_CREDENTIALS_ENV])
    if file is not None:
        return _from_file(file)
    user, password, token = (environ.get(name, "") for name in (NATS_USER_ENV, NATS_PASSWORD_ENV, NATS_TOKEN_ENV))
    if user:
        return BusCredentials(user=user, password=password)
    if token:
        return BusCredentials(token=token)
    return None


def _from_file(file: Path) -> BusCredentials:
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("BAD_CREDENTIALS", f"the credentials file {file} cannot be read: {error}.") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInputError(
            "BAD_CREDENTIALS",
            f"the credentials file {file} is open to other users.",
            hint=f"Run: chmod 600 {file}",
        )
    if _JWT_MARK in text:
        # nats-py needs it to sign with the file's key, and would fail at the first connect.
        if find_spec("nkeys") is None:
            raise InvalidInputError(
                "NKEYS_MISSING",
                f"{file} is a NATS .creds file, which needs the package nkeys.",
                hint="Run: pip install nkeys",
            )
        return BusCredentials(creds_file=file)
    lines = text.split("\n", 1)
    line = lines[0].strip()
    if not line:
        raise InvalidInputError(
            "BAD_CREDENTIALS",
            f"the credentials file {file} is empty.",
            hint="It holds a NATS .creds text, or one line: user:password, or a token.",
        )
    user, colon, password = line.partition(":")
    return BusCredentials(user=user, password=password) if colon else BusCredentials(token=line)


def check_url(url: str) -> str:
    """The broker's address, checked: ``nats://`` or ``tls://`` with host and port, several separated by commas.

    Raises:
        InvalidInputError: not such an address, or one with a password in it.
    """
    for part in url.split(","):
        try:
            split = urlsplit(part if "://" in part else f"nats://{part}")
            valid = split.scheme in ("nats", "tls") and bool(split.hostname) and split.port != 0
        except ValueError:
            valid = False
        if not valid:
            # Only what follows an @ is shown: what stands before it may be a password.
            raise InvalidInputError(
                "BAD_NATS_URL",
                f"{part.rpartition('@')[2]!r} is not an address of a NATS server.",
                hint="Expected: nats://HOST:PORT",
            )
        if split.username or split.password:
            raise InvalidInputError(
                "SECRET_IN_URL",
                "the address of the NATS server must not hold a user or a password.",
                hint=f"Put them in a file named by --nats-credentials, or in {NATS_USER_ENV} and {NATS_PASSWORD_ENV}.",
            )
    return url
