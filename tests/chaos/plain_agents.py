"""Agents of the plain work-queue: ``python -m chaos.plain_agents``.

What one writes first: fetch, do, publish the result under a message id, acknowledge. Each has a consumer of its own,
and remembers nothing. What is done takes as long as on the light phones of the other side.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from random import Random

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from chaos.effects import EffectFile, effects_file
from chaos.light_phone import MOST_S
from chaos.plan import light_device
from chaos.posts import EFFECTS
from droidfleet_shared.logging import configure_logging

JOBS, RESULTS = "JOBS", "RESULTS"
FETCH_S = 5.0
CALL_S = 5.0
AGAIN_S = 0.2


def job_subject(device: str) -> str:
    """Where a device's jobs wait; also the name of its consumer."""
    return f"jobs.{device}"


async def connect(url: str) -> Client:
    """A connection that nats-py keeps up by itself. It says nothing of losing it: that is what this is for."""
    return await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=AGAIN_S, error_cb=_silent)


async def _silent(_: Exception) -> None:
    pass


async def serve(url: str, effects: Path, device: str) -> None:
    """One agent, until cancelled."""
    client = await connect(url)
    stream = client.jetstream(timeout=CALL_S)
    random = Random(device)
    felt = EffectFile(effects_file(effects, device), device)
    jobs = await stream.pull_subscribe_bind(durable=device, stream=JOBS)
    while True:
        try:
            [message] = await jobs.fetch(1, timeout=FETCH_S)
        except (NatsError, OSError, ValueError):
            await asyncio.sleep(AGAIN_S)
            continue
        word = json.loads(message.data)["word"]
        for kind in EFFECTS:
            await asyncio.sleep(random.random() * MOST_S)
            felt.write(kind, word)
            await asyncio.sleep(random.random() * MOST_S)
        await _publish(stream, device, word)
        try:
            await message.ack_sync(timeout=CALL_S)
        except (NatsError, OSError):
            continue


async def _publish(stream: JetStreamContext, device: str, word: str) -> None:
    """Until the broker has it; the message id sorts out what it has already."""
    name = f"{word}/{device}"
    while True:
        try:
            await stream.publish(f"results.{device}", name.encode(), headers={"Nats-Msg-Id": name})
        except (NatsError, OSError):
            await asyncio.sleep(AGAIN_S)
        else:
            return


async def main(arguments: argparse.Namespace) -> None:
    """Runs the agents until the process is ended."""
    async with asyncio.TaskGroup() as group:
        for number in range(arguments.first, arguments.first + arguments.count):
            device = light_device(number)
            group.create_task(serve(arguments.nats, arguments.effects, device), name=device)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos.plain_agents")
    parser.add_argument("--nats", required=True)
    parser.add_argument("--effects", type=Path, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    configure_logging("error")
    asyncio.run(main(_arguments()))
