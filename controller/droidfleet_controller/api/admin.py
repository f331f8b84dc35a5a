"""AdminService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc import aio

from droidfleet.v1 import admin_pb2, admin_pb2_grpc
from droidfleet_controller.admin.checks import Checks
from droidfleet_controller.admin.finding import Finding
from droidfleet_controller.admin.rebuild import Progress, Rebuild

Context = aio.ServicerContext[Any, Any]


class AdminServicer(admin_pb2_grpc.AdminServiceServicer):
    """The service over rebuilding and checks."""

    def __init__(self, *, rebuild: Rebuild, checks: Checks) -> None:
        self._rebuild = rebuild
        self._checks = checks

    async def RebuildBus(
        self, request: admin_pb2.RebuildBusRequest, context: Context
    ) -> AsyncIterator[admin_pb2.RebuildBusResponse]:
        async for progress in self._rebuild.run():
            yield progress_to_pb(progress)

    async def CheckFleet(self, request: admin_pb2.CheckFleetRequest, context: Context) -> admin_pb2.CheckFleetResponse:
        checked = await self._checks.run()
        return admin_pb2.CheckFleetResponse(
            findings=[finding_to_pb(each) for each in checked.findings],
            documents=checked.documents,
            agents=checked.agents,
        )


def progress_to_pb(progress: Progress) -> admin_pb2.RebuildBusResponse:
    """How far a rebuild is."""
    stage = admin_pb2.RebuildStage.Value(f"REBUILD_STAGE_{progress.stage}")
    return admin_pb2.RebuildBusResponse(stage=stage, done=progress.done, total=progress.total)


def finding_to_pb(finding: Finding) -> admin_pb2.Finding:
    """One finding."""
    return admin_pb2.Finding(code=finding.code, where=finding.where, message=finding.message, hint=finding.hint)
