"""The designer's `Phones` over this fleet."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from droidfleet_controller.fleet.device import Device
from droidfleet_controller.fleet.group import Group
from droidfleet_controller.fleet.groups import Groups
from droidfleet_controller.fleet.labels import Labels
from droidfleet_controller.fleet.live import Live
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_designer.ports import DeviceFact, GroupFact, Phones, Shot
from droidfleet_shared.errors import UnavailableError
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot

MAX_LISTED = 200
"""Devices or groups in one answer, as `Phones` says."""


class FleetPhones(Phones):
    """The phones of the registry, asked by their agents' live sessions."""

    def __init__(self, *, live: Live, registry: Registry, labels: Labels, groups: Groups, targets: Targets) -> None:
        self._live = live
        self._registry = registry
        self._labels = labels
        self._groups = groups
        self._targets = targets

    async def devices(self) -> Sequence[DeviceFact]:
        page = self._registry.page(after="", limit=MAX_LISTED, states=frozenset())
        return [self._device(device) for device in page]

    async def groups(self) -> Sequence[GroupFact]:
        return [self._group(group) for group in self._groups.page(after="", limit=MAX_LISTED)]

    async def open(self, device: str, *, holder: str, ttl_s: float) -> str:
        return (await self._live.open(device, holder=holder, ttl_s=ttl_s)).lease_id

    async def renew(self, device: str, session_id: str) -> None:
        await self._live.renew(device, session_id)

    async def close(self, device: str, session_id: str) -> None:
        await self._live.close(device, session_id)

    async def look(self, device: str) -> Snapshot:
        return await self._live.look(device)

    async def shot(self, device: str) -> Shot:
        seen = await self._live.screenshot(device)
        try:
            data = b64decode(seen.data, validate=True)
        except ValueError as error:
            raise UnavailableError("BAD_ANSWER", f"the picture of {device} is not readable.") from error
        return Shot(seen.media_type, data, seen.width, seen.height)

    async def step(self, device: str, session_id: str, *, step: Mapping[str, JsonValue], request_id: str) -> TaskResult:
        return await self._live.step(device, session_id, step=json.dumps(step), request_id=request_id)

    def _device(self, device: Device) -> DeviceFact:
        beat = device.heartbeat
        return DeviceFact(
            name=device.name,
            state=self._registry.state(device).value,
            model=beat.model,
            android=beat.android,
            foreground=beat.foreground_package,
            labels=dict(self._labels.of(device.name)),
            busy_with=f"it runs execution {beat.running.execution_id}" if beat.running is not None else "",
        )

    def _group(self, group: Group) -> GroupFact:
        members = len(group.devices) if group.query is None else len(self._targets.matching(group.query))
        return GroupFact(group.name, members, group.query or "")
