"""Making streams and consumers be as their specifications say."""

from __future__ import annotations

from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RePublish, StorageType, StreamConfig
from nats.js.errors import NotFoundError
from nats.js.manager import JetStreamManager

from droidfleet_shared.bus.streams import ConsumerSpec, StreamSpec


async def ensure_stream(client: Client, spec: StreamSpec, *, timeout_s: float) -> None:
    """Updates the stream, or makes it when there is none."""
    manager = JetStreamManager(client, timeout=timeout_s)
    config = stream_config(spec)
    try:
        await manager.update_stream(config)
    except NotFoundError:
        await manager.add_stream(config)


async def ensure_consumer(client: Client, spec: ConsumerSpec, *, timeout_s: float) -> None:
    """Makes the consumer, or updates it when there is one."""
    await JetStreamManager(client, timeout=timeout_s).add_consumer(
        spec.stream,
        ConsumerConfig(
            durable_name=spec.name,
            description=spec.description,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=spec.ack_wait_s,
            max_ack_pending=spec.max_ack_pending,
        ),
    )


def stream_config(spec: StreamSpec) -> StreamConfig:
    """The specification in the client's terms; the server fills in what is left out."""
    return StreamConfig(
        name=spec.name,
        subjects=list(spec.subjects),
        description=spec.description,
        storage=StorageType.FILE,
        discard=DiscardPolicy.OLD,
        max_msgs_per_subject=-1 if spec.max_msgs_per_subject is None else spec.max_msgs_per_subject,
        max_bytes=spec.max_bytes,
        max_age=spec.max_age_s,
        allow_direct=spec.allow_direct,
        republish=RePublish(src=spec.republish_from, dest=spec.republish_to) if spec.republish_to else None,
    )
