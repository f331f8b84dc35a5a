"""Agents of the plain work-queue: ``python -m chaos.plain_agents``.

What one writes first: fetch, do, publish the result under a message id, acknowledge. Each has a consumer of its own, and
remembers nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import nats
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext

from chaos.effects import EffectFile, effects_file
from chaos.plan import light_device
from chaos.posts import SENT
from droidfleet_shared.logging import configure_logging

JOBS, RESULTS = "JOBS", "RESULTS"
FETCH_S = 5.0
CALL_S = 5.0
AGAIN_S = 0.2
WORK_S = 0.02
"""Of one job, half before its effect and half after: as short as in the measurements that this repeats."""


def job_subject(device: str) -> str:
    """Where a device's jobs wait; also the name of its consumer."""
    return f"jobs.{device}"


async def serve(url: str, effects: Path, device: str) -> None:
    """One agent, until cancelled."""
    client = await nats.connect(
        url, name=device, max_reconnect_attempts=-1, reconnect_time_wait=0.5, allow_reconnect=True
    )
    stream = client.jetstream(timeout=CALL_S)
    felt = EffectFile(effects_file(effects, device), device)
    jobs = await stream.pull_subscribe_bind(durable=device, stream=JOBS)
    while True:
        try:
            [message] = await jobs.fetch(1, timeout=FETCH_S)
        except (NatsError, OSError, ValueError):
            await asyncio.sleep(AGAIN_S)
            continue
        word = json.loads(message.data)["word"]
        await asyncio.sleep(WORK_S / 2)
        felt.write(SENT, word)
        await asyncio.sleep(WORK_S / 2)
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
