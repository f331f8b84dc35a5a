"""Whether a broker can carry a fleet at all: what its configuration must allow. Asked once for each connection.

Never changes anything but for a stream in memory that is gone again when this returns.
"""

from __future__ import annotations

from nats.aio.client import Client
from nats.js.api import StorageType, StreamConfig
from nats.js.manager import JetStreamManager

from droidfleet_shared.bus.messages import MAX_MESSAGE_BYTES
from droidfleet_shared.bus.port import BrokerUnsuitableError

HEADER_BYTES = 4 * 1024
"""More than the headers of any message of ours: the broker counts them as part of the message."""

_PROBE_STREAM = "DROIDFLEET_PROBE"
_PROBE_SUBJECT = "fleet.probe"

_ACK_TOKENS = 9
"""Of an acknowledgement subject in the form that nats-py reads: ``$JS.ACK`` and seven more."""


async def check_broker(client: Client, *, timeout_s: float) -> None:
    """Refuses a broker that would fail later, in the middle of the work.

    Raises:
        BrokerUnsuitableError: without JetStream, with a limit of messages that is too low, or with subjects of
            acknowledgements that the client cannot read.
    """
    address = client.connected_url.netloc if client.connected_url else "the broker"
    # nats-py keeps what the server said of itself to itself.
    if not client._server_info.get("jetstream"):  # noqa: SLF001
        raise BrokerUnsuitableError(
            "BROKER_WITHOUT_JETSTREAM",
            f"the broker at {address} has no JetStream, which keeps documents and results.",
            hint='Start it with -js, or write jetstream { store_dir: "..." } into its configuration.',
        )
    needed = MAX_MESSAGE_BYTES + HEADER_BYTES
    if client.max_payload < needed:
        raise BrokerUnsuitableError(
            "BROKER_PAYLOAD_LIMIT",
            f"the broker at {address} takes messages of {client.max_payload} bytes at most; {needed} are needed.",
            hint="Set max_payload: 1MB (its default) in its configuration.",
        )
    if len((await _acknowledgement(client, timeout_s)).split(".")) != _ACK_TOKENS:
        raise BrokerUnsuitableError(
            "BROKER_ACK_FORM",
            f"the broker at {address} has js_ack_fc_v2 switched on, whose subjects this program cannot read.",
            hint="Write feature_flags { js_ack_fc_v2: false } into its configuration.",
        )


async def _acknowledgement(client: Client, timeout_s: float) -> str:
    """The subject on which a message of a consumer is to be acknowledged: only a message shows its form."""
    manager = JetStreamManager(client, timeout=timeout_s)
    config = StreamConfig(
        name=_PROBE_STREAM, subjects=[_PROBE_SUBJECT], storage=StorageType.MEMORY, max_msgs=1, max_age=60.0
    )
    await manager.add_stream(config)
    try:
        context = client.jetstream(timeout=timeout_s)
        await context.publish(_PROBE_SUBJECT, b"", timeout=timeout_s)
        reader = await context.pull_subscribe(_PROBE_SUBJECT, stream=_PROBE_STREAM)
        [message] = await reader.fetch(1, timeout=timeout_s)
        return message.reply
    finally:
        await manager.delete_stream(_PROBE_STREAM)
