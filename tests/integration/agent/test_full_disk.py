"""The disk of an agent is full in mid-task: it ends before it acts without a record, and goes on once there is room."""

from __future__ import annotations

import asyncio
import json
import resource
from collections import Counter
from pathlib import Path

import pytest

from support.adb import ConnectedPhones, RunningPhone
from support.agent_process import agent_process
from support.assignments import AGENT, assignment, task_text
from support.nats import NatsServer
from support.stub_controller import stub_controller
from support.waiting import until

pytestmark = pytest.mark.integration

KEYS = ("TAB", "ENTER", "SEARCH", "DELETE", "MENU", "VOLUME_UP", "VOLUME_DOWN")
ROUNDS = 6
"""The journal's log grows by some tens of KiB with each step, until its writes are refused."""

LARGEST_FILE = 512 * 1024
"""Bytes; the operating system refuses writes beyond, as it does when there is no room."""


def _presses() -> list[dict[str, object]]:
    return [{"id": f"{key.lower()}-{number}", "action": "KEY", "key": key} for number in range(ROUNDS) for key in KEYS]


async def test_a_full_disk_ends_the_agent_and_the_next_one_goes_on_without_a_second_effect(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    arguments = ("run", "--name", AGENT, "--serial", phone.address, "--nats", nats_server.url, "-o", "json")
    presses = _presses()
    async with stub_controller(nats_server) as controller:
        async with agent_process(*arguments, folder=tmp_path) as agent:
            await agent.online(AGENT)
            unlimited = resource.prlimit(agent.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (LARGEST_FILE, unlimited[1]))
            await controller.assign(assignment("a", task=task_text(*presses)))
            assert await agent.ended() != 0
            assert "JOURNAL_UNUSABLE" in agent.log
            assert "Make room on its disk" in agent.log
        pressed_before = _pressed(phone)
        assert 0 < pressed_before.total() < len(presses)
        async with agent_process(*arguments, folder=tmp_path):
            code = await controller.ended("a", within_s=60)
        await until(lambda: "ExecutionResumed" in controller.kinds("a"), what="going on")
    pressed = _pressed(phone)
    assert code in ("OK", "OUTCOME_UNKNOWN")
    if code == "OK":
        assert pressed.total() == len(presses)
    assert all(count <= ROUNDS for count in pressed.values())


def _pressed(phone: RunningPhone) -> Counter[str]:
    return Counter(json.dumps(dict(effect.details)) for effect in phone.effects.all() if effect.kind == "key")
