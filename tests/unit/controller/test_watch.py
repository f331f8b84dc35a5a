"""Watching: the newest version of what changed, bounded by what is watched."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from droidfleet_controller.dispatch import watch as watch_module
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_shared.errors import ExhaustedError
from unit.controller.builders import execution


async def test_a_slow_watcher_gets_the_newest_version_only() -> None:
    broadcast = Broadcast()
    with broadcast.watching(["x-1", "x-2"]) as watch:
        for version in range(1, 1_000):
            broadcast.executions([replace(execution(execution_id="x-1"), version=version)])
        broadcast.executions([execution(execution_id="x-3")])
        [only] = await watch.take()
        assert only.version == 999


async def test_nothing_is_kept_for_watchers_that_have_gone() -> None:
    broadcast = Broadcast()
    with broadcast.watching(["x-1"]), broadcast.watching(["x-1"]):
        pass
    broadcast.executions([execution(execution_id="x-1")])
    assert broadcast._by_execution == {}


async def test_a_listener_is_woken_by_what_came_after_it_looked() -> None:
    broadcast = Broadcast()
    with broadcast.listening() as woken:
        woken.clear()
        broadcast.events()
        async with asyncio.timeout(1):
            await woken.wait()


def test_watches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "MAX_WATCHERS", 1)
    broadcast = Broadcast()
    with broadcast.listening():
        with pytest.raises(ExhaustedError) as caught, broadcast.watching(["x-1"]):
            pass
        assert caught.value.code == "TOO_MANY_WATCHES"
    with broadcast.watching(["x-1"]):
        pass
