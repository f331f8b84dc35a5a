"""Every subject on the bus, and the reversible encoding of names into subject tokens.

A token may not hold dots, blanks, wildcards or control characters, while agent names and adb serials
(``192.168.0.7:5555``) do. Letters, digits, ``-`` and ``_`` stand for themselves; every other UTF-8 byte becomes ``=XX``
(upper-case hex), as in quoted-printable. The empty name is refused.
"""

from __future__ import annotations

import re
import string

DESIRED_STREAM = "DESIRED"
EVENTS_STREAM = "EVENTS"
EVENTS_CONSUMER = "controller"

DESIRED_ALL = "fleet.desired.*"
LIVE_PREFIX = "fleet.live"
EVENTS_ALL = "fleet.event.*.*"
HEARTBEATS_ALL = "fleet.heartbeat.*"

CONTROLLER = "fleet.controller"
"""Where a controller says that it works on this broker, so that a second one can be refused."""

_PLAIN = frozenset((string.ascii_letters + string.digits + "-_").encode())
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+")


def encode_token(name: str) -> str:
    """One subject token for a name; `decode_token` gives the name back.

    Raises:
        ValueError: the name is empty.
    """
    if _PLAIN_NAME.fullmatch(name):
        return name
    if not name:
        raise ValueError("an empty name has no subject token")
    return "".join(chr(byte) if byte in _PLAIN else f"={byte:02X}" for byte in name.encode())


def decode_token(token: str) -> str:
    """The name of a token that `encode_token` made.

    Raises:
        ValueError: the token is not one that `encode_token` makes.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"not an encoded name: {token!r}")
    raw = bytearray()
    position = 0
    while position < len(token):
        if token[position] == "=":
            raw.append(int(token[position + 1 : position + 3], 16))
            position += 3
        else:
            raw.append(ord(token[position]))
            position += 1
    name = raw.decode()
    if encode_token(name) != token:
        raise ValueError(f"not an encoded name: {token!r}")
    return name


def desired(agent: str) -> str:
    """Where the controller writes an agent's desired-state document."""
    return f"fleet.desired.{encode_token(agent)}"


def live(agent: str) -> str:
    """Where the broker republishes an agent's document as it changes."""
    return f"{LIVE_PREFIX}.{encode_token(agent)}"


def direct_get(agent: str) -> str:
    """Where an agent asks for its own document: the subject-based direct get of one message, nothing else."""
    return f"$JS.API.DIRECT.GET.{DESIRED_STREAM}.{desired(agent)}"


def stream_info(stream: str) -> str:
    """Where the controller asks about a stream."""
    return f"$JS.API.STREAM.INFO.{stream}"


def consumer_info(stream: str, consumer: str) -> str:
    """Where the controller asks about a durable consumer."""
    return f"$JS.API.CONSUMER.INFO.{stream}.{consumer}"


def consumer_delete(stream: str, consumer: str) -> str:
    """Where the controller has a durable consumer removed."""
    return f"$JS.API.CONSUMER.DELETE.{stream}.{consumer}"


def event(agent: str, execution_id: str) -> str:
    """Where an agent publishes events and results of one execution."""
    return f"fleet.event.{encode_token(agent)}.{encode_token(execution_id)}"


def heartbeat(agent: str) -> str:
    """Where an agent says that it is alive (core NATS)."""
    return f"fleet.heartbeat.{encode_token(agent)}"


def rpc(agent: str, method: str = "*") -> str:
    """Where an agent answers live requests (core NATS)."""
    return f"fleet.rpc.{encode_token(agent)}.{method}"


def inbox_prefix(agent: str) -> str:
    """The agent's own inbox prefix, so that a permission can keep others from reading its replies."""
    return f"_INBOX_{encode_token(agent)}"


def agent_of(subject: str) -> str:
    """The agent's name in any ``fleet.<kind>.<agent>...`` subject.

    Raises:
        ValueError: the subject is not of that form.
    """
    tokens = subject.split(".")
    if len(tokens) < 3 or tokens[0] != "fleet":
        raise ValueError(f"not a fleet subject: {subject!r}")
    return decode_token(tokens[2])


def agent_permissions(agent: str) -> dict[str, list[str]]:
    """The subjects that an agent needs, and no others: for per-agent permissions on the broker.

    Replies to live requests ride on the broker's ``allow_responses``.
    """
    return {
        "publish": [direct_get(agent), f"fleet.event.{encode_token(agent)}.*", heartbeat(agent)],
        "subscribe": [live(agent), rpc(agent), f"{inbox_prefix(agent)}.>"],
    }
