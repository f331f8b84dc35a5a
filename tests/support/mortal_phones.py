"""Phones that a process of a test reaches until it is killed; then nothing of what it still tries comes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from droidfleet_designer.ports import DeviceFact, GroupFact, Phones, Shot
from droidfleet_shared.errors import UnavailableError
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot


class MortalPhones(Phones):
    """``ran``: the request ids of the steps that came through, in order; a list that several processes may share."""

    def __init__(self, phones: Phones, ran: list[str]) -> None:
        self._phones = phones
        self._ran = ran
        self.dead = False

    async def devices(self) -> Sequence[DeviceFact]:
        return await self._alive().devices()

    async def groups(self) -> Sequence[GroupFact]:
        return await self._alive().groups()

    async def open(self, device: str, *, holder: str, ttl_s: float) -> str:
        return await self._alive().open(device, holder=holder, ttl_s=ttl_s)

    async def renew(self, device: str, session_id: str) -> None:
        await self._alive().renew(device, session_id)

    async def close(self, device: str, session_id: str) -> None:
        await self._alive().close(device, session_id)

    async def look(self, device: str) -> Snapshot:
        return await self._alive().look(device)

    async def shot(self, device: str) -> Shot:
        return await self._alive().shot(device)

    async def step(self, device: str, session_id: str, *, step: Mapping[str, JsonValue], request_id: str) -> TaskResult:
        phones = self._alive()
        self._ran.append(request_id)
        return await phones.step(device, session_id, step=step, request_id=request_id)

    def _alive(self) -> Phones:
        if self.dead:
            raise UnavailableError("DEVICE_OFFLINE", "this process was killed.")
        return self._phones
