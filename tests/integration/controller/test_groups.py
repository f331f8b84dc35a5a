"""Labels, groups and previews through the API of a real controller, also after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import grpc
import pytest

from droidfleet.v1 import fleet_pb2
from support.controller import CALL_S, Api, document, running_controller, scripted_agent

pytestmark = pytest.mark.integration

NAMES = ("phone-01", "phone-02", "phone-03")
T = TypeVar("T")


@asynccontextmanager
async def three_phones(data: Path) -> AsyncIterator[Api]:
    """A controller that knows three phones."""
    async with running_controller(data) as api:
        for name in NAMES:
            async with scripted_agent(api.nats, name) as agent:
                await agent.beat()
        yield api


async def refused(call: Awaitable[T]) -> tuple[grpc.StatusCode, str, str]:
    """Status, code and hint of a call that is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    metadata = dict(caught.value.trailing_metadata() or ())
    return caught.value.code(), str(metadata["droidfleet-code"]), str(metadata["droidfleet-hint"])


async def label(api: Api, devices: Sequence[str] = (), *, query: str = "", **labels: str) -> list[str]:
    """Sets labels; gives the names of those that changed."""
    request = fleet_pb2.SetLabelsRequest(devices=devices, query=query, set=labels)
    return [device.name for device in (await api.fleet.SetLabels(request, timeout=CALL_S)).devices]


async def preview(api: Api, *, group: str = "", query: str = "") -> fleet_pb2.PreviewTargetResponse:
    return await api.fleet.PreviewTarget(fleet_pb2.PreviewTargetRequest(group=group, query=query), timeout=CALL_S)


async def create(api: Api, name: str, *, query: str = "", devices: Sequence[str] = ()) -> fleet_pb2.Group:
    request = fleet_pb2.CreateGroupRequest(name=name, query=query, devices=devices)
    return (await api.fleet.CreateGroup(request, timeout=CALL_S)).group


async def test_labels_and_groups_are_there_after_a_restart(tmp_path: Path) -> None:
    async with three_phones(tmp_path / "data") as api:
        assert await label(api, ["phone-01", "phone-02"], site="berlin") == ["phone-01", "phone-02"]
        assert await label(api, query="site=berlin, name!=phone-01", retired="") == ["phone-02"]
        await create(api, "berlin", query="site=berlin, !retired")
        await create(api, "shelf", devices=["phone-03", "phone-01"])
        update = fleet_pb2.UpdateGroupRequest(name="shelf", version=1, add=["phone-02"], remove=["phone-01"])
        await api.fleet.UpdateGroup(update, timeout=CALL_S)
    async with running_controller(tmp_path / "data") as api:
        assert dict((await api.device("phone-02")).labels) == {"retired": "", "site": "berlin"}
        assert [device.name for device in (await preview(api, group="berlin")).devices] == ["phone-01"]
        groups = (await api.fleet.ListGroups(fleet_pb2.ListGroupsRequest(), timeout=CALL_S)).groups
        assert [(group.name, group.version, list(group.devices)) for group in groups] == [
            ("berlin", 1, []),
            ("shelf", 2, ["phone-02", "phone-03"]),
        ]


async def test_devices_are_listed_by_query_page_by_page(tmp_path: Path) -> None:
    async with three_phones(tmp_path / "data") as api:
        await label(api, ["phone-01", "phone-03"], site="berlin")
        request = fleet_pb2.ListDevicesRequest(page_size=1, query="site=berlin")
        found = []
        for _ in range(2):
            page = await api.fleet.ListDevices(request, timeout=CALL_S)
            found += [device.name for device in page.devices]
            request.page_token = page.next_page_token
        assert (found, request.page_token) == (["phone-01", "phone-03"], "")


async def test_a_preview_shows_state_and_backlog_and_what_is_odd(tmp_path: Path) -> None:
    async with three_phones(tmp_path / "data") as api:
        await api.run(document(), "phone-01", "phone-02")
        await api.run(document(), "phone-01")
        found = await preview(api, query="!retird")
        assert [(device.name, device.backlog) for device in found.devices] == [
            ("phone-01", 2),
            ("phone-02", 1),
            ("phone-03", 0),
        ]
        assert list(found.notes) == ["No phone has retird."]


async def test_a_change_of_an_old_version_is_aborted(tmp_path: Path) -> None:
    async with three_phones(tmp_path / "data") as api:
        await create(api, "shelf", devices=["phone-01"])
        add = fleet_pb2.UpdateGroupRequest(name="shelf", version=1, add=["phone-02"])
        await api.fleet.UpdateGroup(add, timeout=CALL_S)
        status, code, hint = await refused(api.fleet.UpdateGroup(add, timeout=CALL_S))
        assert (status, code) == (grpc.StatusCode.ABORTED, "STALE_VERSION")
        assert "droidfleet group show shelf" in hint


async def test_a_deleted_group_is_gone(tmp_path: Path) -> None:
    async with three_phones(tmp_path / "data") as api:
        await create(api, "shelf", devices=["phone-01"])
        await api.fleet.DeleteGroup(fleet_pb2.DeleteGroupRequest(name="shelf", version=1), timeout=CALL_S)
        answer = await refused(api.fleet.GetGroup(fleet_pb2.GetGroupRequest(name="shelf"), timeout=CALL_S))
        assert answer[:2] == (grpc.StatusCode.NOT_FOUND, "GROUP_NOT_FOUND")


async def test_each_refusal_has_its_code(tmp_path: Path) -> None:
    async with three_phones(tmp_path / "data") as api:
        await create(api, "shelf")
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        listing = fleet_pb2.ListDevicesRequest(query="site=")
        assert (await refused(api.fleet.ListDevices(listing, timeout=CALL_S)))[:2] == (invalid, "BAD_QUERY")
        assert (await refused(preview(api)))[:2] == (invalid, "BAD_TARGET")
        assert (await refused(preview(api, group="shelf", query="site")))[:2] == (invalid, "BAD_TARGET")
        assert (await refused(label(api, query="site=berlin", rack="3")))[:2] == (invalid, "NO_MATCH")
        assert (await refused(label(api, ["phone-01"], name="x")))[:2] == (invalid, "BAD_LABEL")
        assert (await refused(label(api, ["phone-9"], rack="3")))[:2] == (
            grpc.StatusCode.NOT_FOUND,
            "DEVICE_NOT_FOUND",
        )
        assert (await refused(create(api, "shelf")))[:2] == (grpc.StatusCode.ALREADY_EXISTS, "GROUP_EXISTS")
        assert (await refused(create(api, "both", query="site", devices=["phone-01"])))[:2] == (invalid, "BAD_GROUP")


async def test_changes_are_events(tmp_path: Path) -> None:
    async with three_phones(tmp_path / "data") as api:
        await label(api, ["phone-01"], site="berlin")
        await create(api, "berlin", query="site=berlin")
        kinds = [event.kind for event in await api.events()]
        assert [kind for kind in kinds if kind in ("LabelsChanged", "GroupCreated")] == [
            "LabelsChanged",
            "GroupCreated",
        ]
