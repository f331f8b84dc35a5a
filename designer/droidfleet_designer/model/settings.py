"""Where a model is, and what it can do. Values only."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from droidfleet_shared.errors import InvalidInputError

LOCALHOST = "localhost"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """An OpenAI-compatible server and a model of it. ``base_url``: up to and with its version, ``https://host/v1``.

    Raises:
        InvalidInputError: ``BAD_SETTING``: the URL cannot be used or holds a secret, or the key would travel in the
            clear.
    """

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    sees: bool = False

    def __post_init__(self) -> None:
        parts = _parts(self.base_url)
        if parts is None:
            raise InvalidInputError(
                "BAD_SETTING",
                "model_url is no http or https URL.",
                hint="Give the base URL with its version, such as https://api.openai.com/v1.",
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise InvalidInputError(
                "BAD_SETTING",
                "model_url has a user, a password or a query in it, which would be shown to people.",
                hint="Give the URL alone, and the key as the key.",
            )
        if not self.model:
            raise InvalidInputError("BAD_SETTING", "model: the name of the model is missing.")
        if self.key and parts.scheme == "http" and not self.is_local:
            raise InvalidInputError(
                "BAD_SETTING",
                "model_url is plain http, and the key would travel where others can read it.",
                hint="Use https, a server on this machine, or one that needs no key.",
            )

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, by its address."""
        host = urlsplit(self.base_url).hostname or ""
        if host == LOCALHOST:
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def counts_thinking(self) -> bool:
        """Whether the output's bound is called ``max_completion_tokens``: OpenAI's own models count what they think
        into it and refuse the older name, which everybody else knows."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "openai.com" or host.endswith((".openai.com", ".openai.azure.com"))


def _parts(url: str) -> SplitResult | None:
    """None: it is no URL of a server, be it for its port."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None
