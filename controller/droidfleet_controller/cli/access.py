"""What a controller may ask for beside its address: TLS and a token, from files that the environment names.

Secrets never stand on a command line, where every user of the machine could read them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from droidfleet_shared.errors import DeniedError, InvalidInputError
from droidfleet_shared.net import parse_endpoint

TOKEN_FILE_VARIABLE = "DROIDFLEET_API_TOKEN_FILE"  # noqa: S105 - a name, no secret
CA_VARIABLE = "DROIDFLEET_TLS_CA"


@dataclass(frozen=True, slots=True)
class Access:
    """``token`` is sent with every call; ``authorities`` are PEM certificates that make the connection TLS."""

    token: str | None = None
    authorities: bytes | None = None

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> Access:
        """What the environment names; nothing where it names nothing.

        Raises:
            InvalidInputError: ``FILE_UNREADABLE``.
        """
        token, authorities = _read(environ, TOKEN_FILE_VARIABLE), _read(environ, CA_VARIABLE)
        return cls(token.decode().strip() if token is not None else None, authorities)

    def metadata(self, address: str) -> tuple[tuple[str, str], ...]:
        """What every call carries.

        Raises:
            DeniedError: the token would cross a network in the clear.
        """
        if self.token is None:
            return ()
        if self.authorities is None and not parse_endpoint(address, setting="--api").loopback:
            raise DeniedError(
                "UNSAFE_ADDRESS",
                f"a token would be sent to {address} without encryption.",
                hint=f"Name the file of the certificate authority in {CA_VARIABLE}; the connection is then TLS.",
            )
        return (("authorization", f"Bearer {self.token}"),)

    def channel(self, address: str, *, options: Sequence[tuple[str, int]]) -> grpc.Channel:
        """A channel to the controller; connects at the first call."""
        if self.authorities is None:
            return grpc.insecure_channel(address, options=options)
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(self.authorities), options=options)


def _read(environ: Mapping[str, str], variable: str) -> bytes | None:
    path = environ.get(variable)
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInputError("FILE_UNREADABLE", f"{variable}: cannot read {path!r}: {error.strerror}.") from error
