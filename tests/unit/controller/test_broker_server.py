"""The embedded broker with a program that only says what nats-server says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from droidfleet_controller.broker.server import EmbeddedBroker
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.net import Endpoint

FREEZES_ONCE = """#!/bin/sh
echo '[1] [INF] Listening for client connections on 127.0.0.1:4222' >&2
echo '[1] [INF] Server is ready' >&2
if [ ! -e "{mark}" ]; then
  touch "{mark}"
  echo "[1] [ERR] JetStream stream 'G > EVENTS' critical write error: no space left on device" >&2
fi
exec sleep 60
"""


async def test_a_broker_that_takes_nothing_any_more_is_started_again(tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.write_text(FREEZES_ONCE.format(mark=tmp_path / "mark"))
    program.chmod(0o755)
    restarted = asyncio.Event()
    broker = EmbeddedBroker(
        Endpoint("127.0.0.1", 4222),
        folder=tmp_path / "nats",
        program=program,
        clock=SystemClock(),
        random=Random(1),
        restarted=restarted.set,
    )
    await broker.start()
    first = broker.pid
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(broker.run(), name="broker")
        async with asyncio.timeout(10):
            await restarted.wait()
        assert broker.pid not in {None, first}
        watching.cancel()
    await broker.stop()
