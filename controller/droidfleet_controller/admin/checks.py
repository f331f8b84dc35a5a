"""Looks for what is not as it should be: in the database, and between database, broker and agents. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import structlog
from sqlalchemy import Connection

from droidfleet_controller.admin import comparing, invariants, sqlite_file
from droidfleet_controller.admin.comparing import REBUILD, Ours
from droidfleet_controller.admin.finding import Finding
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.fleet.device import Device, DeviceState
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.store import artifacts, documents, executions
from droidfleet_controller.store.database import Database
from droidfleet_shared.bus import manage, subjects
from droidfleet_shared.bus.port import Bus, BusUnavailableError
from droidfleet_shared.bus.streams import DESIRED, EVENTS, EVENTS_READER
from droidfleet_shared.clock import Clock

log = structlog.get_logger(__name__)

SETTLE_S = 3.0
"""What is on its way between two parts has arrived after this long; only what still is so is reported."""

AT_A_TIME = 64
"""Documents that the broker is asked for at a time."""

ASK_S = 5.0

MOST_ARTIFACTS = 20
"""Files of artifacts that are named; a folder that is lost is one thing to know."""

FAR_BEHIND = EVENTS_READER.max_ack_pending
"""Events that wait on the broker: more than the reader is ever given at a time."""


UNREACHABLE = Finding(
    code="BROKER_UNAVAILABLE",
    where="broker",
    message="it does not answer, so neither its documents nor the agents could be compared with the database.",
    hint="See /readyz of the controller, and its log, for why; then check again.",
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. ``documents`` and ``agents``: how many were compared."""

    findings: tuple[Finding, ...]
    documents: int
    agents: int


class Checks:
    """The use case CheckFleet. ``file``: of the database, where it is SQLite's: read beside the controller's own
    transactions, which go on meanwhile. ``files``: of the artifacts."""

    def __init__(
        self,
        *,
        database: Database,
        file: Path | None,
        files: ArtifactFiles,
        bus: Bus,
        clock: Clock,
        registry: Registry,
    ) -> None:
        self._database = database
        self._file = file
        self._files = files
        self._bus = bus
        self._clock = clock
        self._registry = registry

    async def run(self) -> Checked:
        """Looks, and looks again at once when something was found.

        Raises:
            UnavailableError: the database does not work.
        """
        first = await self._look()
        if not first.findings:
            return first
        await self._clock.sleep(SETTLE_S)
        second = await self._look()
        lasting = sorted(set(first.findings) & set(second.findings))
        return Checked(tuple(lasting), second.documents, second.agents)

    async def _look(self) -> Checked:
        findings = list(await self._inside())
        if any(each.code == "DATABASE_DAMAGED" for each in findings):
            return Checked(tuple(findings), 0, 0)
        known = await self._database.run(artifacts.sizes)
        findings += _artifacts(await asyncio.to_thread(self._files.amiss, known))
        ours = await self._database.run(_read)
        try:
            findings += await self._broker(ours)
        except BusUnavailableError as error:
            log.info("broker_unchecked", code=error.code, message=error.message)
            return Checked((*findings, UNREACHABLE), 0, 0)
        heard = [
            device
            for device in self._registry.known.values()
            if self._registry.state(device) is not DeviceState.OFFLINE
        ]
        running = [each.heartbeat.running.execution_id for each in heard if each.heartbeat.running is not None]
        begun = await self._database.run(lambda connection: executions.find(connection, running))
        findings += self._agents(heard, ours, begun)
        return Checked(tuple(findings), len(ours), len(heard))

    async def _inside(self) -> list[Finding]:
        if self._file is None:
            return await self._database.run(invariants.broken)
        return await asyncio.to_thread(_inside_file, self._file)

    async def _broker(self, ours: dict[str, Ours]) -> list[Finding]:
        findings = await self._streams()
        if findings:
            return findings
        limit = asyncio.Semaphore(AT_A_TIME)
        compared = await asyncio.gather(*(self._document(each, limit) for each in ours.values()))
        return [finding for finding in compared if finding is not None]

    async def _streams(self) -> list[Finding]:
        findings = [
            Finding(
                code="STREAM_MISSING",
                where=f"stream {spec.name}",
                message="the broker does not have it.",
                hint=f"Run: {REBUILD}",
            )
            for spec in (DESIRED, EVENTS)
            if not await manage.stream_exists(self._bus, spec, timeout_s=ASK_S)
        ]
        reader = await manage.consumer_state(self._bus, EVENTS_READER, timeout_s=ASK_S)
        where = f"consumer {EVENTS_READER.name}"
        if reader is None:
            message = f"nothing reads the stream {EVENTS_READER.stream}."
            findings.append(Finding(code="CONSUMER_MISSING", where=where, message=message, hint=f"Run: {REBUILD}"))
        elif reader.waiting > FAR_BEHIND:
            message = f"more than {FAR_BEHIND} events wait to be recorded."
            hint = "They are read as fast as the database takes them: look at its disk, and at the controller's log."
            findings.append(Finding(code="EVENTS_BEHIND", where=where, message=message, hint=hint))
        return findings

    async def _document(self, ours: Ours, limit: asyncio.Semaphore) -> Finding | None:
        async with limit:
            subject = subjects.desired(ours.agent)
            stored = await self._bus.get_last(subjects.DESIRED_STREAM, subject, timeout_s=ASK_S)
        return comparing.broker_differs(ours, None if stored is None else stored.data)

    @staticmethod
    def _agents(heard: Iterable[Device], ours: dict[str, Ours], known: dict[str, Execution]) -> list[Finding]:
        return [
            finding for device in heard for finding in comparing.agent_differs(device, ours.get(device.name), known)
        ]


def _artifacts(amiss: Mapping[str, int | None]) -> Iterator[Finding]:
    for digest, size in islice(sorted(amiss.items()), MOST_ARTIFACTS):
        code = "ARTIFACT_MISSING" if size is None else "ARTIFACT_DAMAGED"
        more = f" {len(amiss)} files are not as they should be." if len(amiss) > 1 else ""
        told = "its file is not there." if size is None else f"its file has {size} bytes, which is another length."
        yield Finding(
            code=code,
            where=f"artifact {digest}",
            message=told + more,
            hint="Put `artifacts/` of the data folder back from a backup. Results stay; this one content is gone.",
        )


def _inside_file(file: Path) -> list[Finding]:
    with sqlite_file.opened(file) as connection:
        return invariants.broken(connection)


def _read(connection: Connection) -> dict[str, Ours]:
    epoch = documents.epoch(connection)
    agents = [each.agent for each in documents.publications(connection)]
    heads = documents.heads(connection, agents)
    windows = executions.windows(connection, agents)
    return {agent: Ours(agent, epoch, head, tuple(windows.get(agent, ()))) for agent, head in heads.items()}
