"""Why a connection did not come about or ended, in words for people. Pure."""

from __future__ import annotations

_MEANINGS = {
    "empty response from server when expecting INFO": "what answers there is no NATS server",
    "info message, json parse error": "what answers there is no NATS server",
    "Authorization Violation": "it refuses these credentials",
    "User Authentication Expired": "these credentials have expired",
    "maximum connections exceeded": "it has as many connections as it allows",
    "Connect call failed": "nobody listens there",
}
"""From what nats-py and the system say, to what it means."""


def why(error: Exception) -> str:
    """What ``error`` means for the connection; what is not known is repeated as it is."""
    if isinstance(error, TimeoutError):
        return "no answer in time; is it a NATS server?"
    text = str(error) or type(error).__name__
    return next((meaning for said, meaning in _MEANINGS.items() if said.lower() in text.lower()), text)
