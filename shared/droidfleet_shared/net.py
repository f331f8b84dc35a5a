"""Addresses to listen on: reading them, and refusing the unsafe ones. Pure but for resolving nothing: no DNS here."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from droidfleet_shared.errors import DeniedError, InvalidInputError

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host (a name, an IPv4 or an IPv6 address without brackets) and a port; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            # Any other name may resolve to anything.
            return False


def parse_endpoint(text: str, *, setting: str) -> Endpoint:
    """Reads ``HOST:PORT`` or ``[IPV6]:PORT``. ``setting`` is named in errors.

    Raises:
        InvalidInputError: ``BAD_ADDRESS``.
    """
    host, colon, port = text.strip().rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    valid = bool(colon) and _is_host(host, bracketed=bracketed) and port.isascii() and port.isdigit()
    if not valid or int(port) > MAX_PORT:
        raise InvalidInputError(
            "BAD_ADDRESS",
            f"{setting}: {text!r} is not an address of the form HOST:PORT.",
            hint="Write it like 127.0.0.1:7400 or [::1]:7400.",
        )
    return Endpoint(host, int(port))


def require_safe(endpoint: Endpoint, *, setting: str, secured: bool, remedy: str) -> None:
    """Refuses an address that others can reach unless it is ``secured`` (TLS and credentials).

    ``remedy`` says what to set.

    Raises:
        DeniedError: ``UNSAFE_ADDRESS``.
    """
    if endpoint.loopback or secured:
        return
    raise DeniedError(
        "UNSAFE_ADDRESS",
        f"{setting}: {endpoint} can be reached by other machines, and it has no TLS and no credentials.",
        hint=remedy,
    )


def _is_host(host: str, *, bracketed: bool) -> bool:
    if bracketed:
        return _ip_version(host) == 6
    if _ip_version(host) == 4 or host == "localhost":
        return True
    labels = host.split(".")
    return all(label and len(label) < 64 and label.replace("-", "").isalnum() and label.isascii() for label in labels)


def _ip_version(host: str) -> int:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0
