"""The designer's `Phones` over the gRPC API. Each call is made in a thread: the client waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import islice

from pydantic import JsonValue

from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.documents import device_state_of, result_document
from droidfleet_designer.ports import DeviceFact, GroupFact, Phones, Shot
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot

MAX_LISTED = 200
"""Devices or groups in one answer, as `Phones` says."""


class ApiPhones(Phones):
    """The phones of a controller."""

    def __init__(self, client: ControllerClient) -> None:
        self._client = client

    async def devices(self) -> Sequence[DeviceFact]:
        found = await asyncio.to_thread(lambda: list(islice(self._client.devices(), MAX_LISTED)))
        return [
            DeviceFact(
                name=each.name,
                state=device_state_of(each),
                model=each.model,
                android=each.android_version,
                foreground=each.foreground_package,
                labels=dict(each.labels),
                busy_with=f"it runs execution {each.running_execution_id}" if each.running_execution_id else "",
            )
            for each in found
        ]

    async def groups(self) -> Sequence[GroupFact]:
        found = await asyncio.to_thread(lambda: list(islice(self._client.groups(), MAX_LISTED)))
        return [GroupFact(each.name, len(each.devices), each.query) for each in found]

    async def open(self, device: str, *, holder: str, ttl_s: float) -> str:
        return await asyncio.to_thread(self._client.open_session, device, holder=holder, ttl=timedelta(seconds=ttl_s))

    async def renew(self, device: str, session_id: str) -> None:
        await asyncio.to_thread(self._client.renew_session, device, session_id)

    async def close(self, device: str, session_id: str) -> None:
        await asyncio.to_thread(self._client.close_session, device, session_id)

    async def look(self, device: str) -> Snapshot:
        return Snapshot.model_validate_json(await asyncio.to_thread(self._client.snapshot, device))

    async def shot(self, device: str) -> Shot:
        seen = await asyncio.to_thread(self._client.screenshot, device)
        return Shot(seen.media_type, seen.data, seen.width, seen.height)

    async def step(self, device: str, session_id: str, *, step: Mapping[str, JsonValue], request_id: str) -> TaskResult:
        result = await asyncio.to_thread(
            self._client.run_step, device, session_id, json.dumps(step), request_id=request_id
        )
        return TaskResult.model_validate(result_document(result))
