"""Which artifacts of agents are kept, and reading them again.

An agent is believed what it says of its own execution, within bounds that hold whatever it says: the content is what
its digest says, and count and bytes of an attempt are those that the agent keeps to as well.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from sqlalchemy import Connection

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.reading import not_found
from droidfleet_controller.store import artifacts, events, executions
from droidfleet_controller.store.artifacts import Room, StoredArtifact
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import EventKey
from droidfleet_shared.artifacts import MAX_ARTIFACT_BYTES, MAX_RUN_ARTIFACT_BYTES, MAX_RUN_ARTIFACTS
from droidfleet_shared.bus.messages import ArtifactStored, BadMessageError
from droidfleet_shared.errors import NotFoundError

MAX_WORDS = 1_024
"""Characters of a step's path, the longest of the words that come with an artifact."""

Admitted = Mapping[EventKey, bytes]
"""The contents that are kept, by the events that brought them."""


def content(event: ArtifactStored) -> bytes:
    """The content of an artifact.

    Raises:
        BadMessageError: it is not what the event says of it.
    """
    said = event.artifact
    try:
        data = b64decode(event.data, validate=True)
    except ValueError as error:
        raise BadMessageError("BAD_MESSAGE", "the artifact's content is not base64.") from error
    if len(data) > MAX_ARTIFACT_BYTES:
        raise BadMessageError("BAD_MESSAGE", f"the artifact has {len(data)} bytes; at most {MAX_ARTIFACT_BYTES}.")
    if (len(data), sha256(data).hexdigest()) != (said.size_bytes, said.sha256):
        raise BadMessageError("BAD_MESSAGE", "the artifact's content is not the one that its digest and size name.")
    if any(len(words) > MAX_WORDS for words in (event.step_id, event.path, said.name, said.media_type)):
        raise BadMessageError("BAD_MESSAGE", "the artifact's names are too long.")
    return data


def admit(connection: Connection, incoming: Iterable[ArtifactStored], *, quota_bytes: int) -> Admitted:
    """The contents that there is room for, of executions that are known and attempts that count."""
    new = list(incoming)
    known = events.known(connection, [key_of(event) for event in new])
    current = executions.find(connection, (event.execution_id for event in new))
    rooms = artifacts.rooms(connection, {(event.execution_id, event.attempt) for event in new})
    admitted: dict[EventKey, bytes] = {}
    for event in new:
        execution = current.get(event.execution_id)
        if execution is None or (execution.device, execution.attempt) != (event.agent, event.attempt):
            continue
        attempt = (event.execution_id, event.attempt)
        before, data = rooms.get(attempt, Room()), content(event)
        after = Room(before.count + 1, before.size_bytes + len(data))
        fits = after.count <= MAX_RUN_ARTIFACTS and after.size_bytes <= MAX_RUN_ARTIFACT_BYTES
        if fits and len(data) <= quota_bytes and key_of(event) not in known | admitted.keys():
            rooms[attempt] = after
            admitted[key_of(event)] = data
    return admitted


def stored(event: ArtifactStored, *, now: datetime) -> StoredArtifact:
    """The row for an artifact."""
    return StoredArtifact(
        execution_id=event.execution_id,
        attempt=event.attempt,
        step_id=event.step_id,
        path=event.path,
        name=event.artifact.name,
        media_type=event.artifact.media_type,
        sha256=event.artifact.sha256,
        size_bytes=event.artifact.size_bytes,
        stored_at=now,
    )


def key_of(event: ArtifactStored) -> EventKey:
    """What makes the event unique."""
    return (event.execution_id, event.attempt, event.sequence, event.agent)


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Reading artifacts."""

    database: Database
    files: ArtifactFiles

    async def read(self, execution_id: str, digest: str) -> bytes:
        """The content of an artifact of an execution.

        Raises:
            NotFoundError: ``EXECUTION_NOT_FOUND``; ``ARTIFACT_NOT_FOUND``, it has no such artifact; ``ARTIFACT_GONE``,
                its file had to make room, or was lost.
        """
        found = await self.database.run(lambda connection: _find(connection, execution_id, digest))
        data = await asyncio.to_thread(self.files.read, digest) if found.available else None
        if data is None:
            raise NotFoundError(
                "ARTIFACT_GONE",
                f"the file of artifact {found.name!r} is not kept any more.",
                hint="Files of artifacts make room for newer ones; raise artifact_quota_mb to keep more of them.",
            )
        return data


def _find(connection: Connection, execution_id: str, digest: str) -> StoredArtifact:
    for artifact in artifacts.of_execution(connection, execution_id):
        if artifact.sha256 == digest:
            return artifact
    if not executions.find(connection, [execution_id]):
        raise not_found(execution_id)
    raise NotFoundError(
        "ARTIFACT_NOT_FOUND",
        f"execution {execution_id!r} has no artifact with this digest.",
        hint=f"List them with: droidfleet execution artifacts {execution_id}",
    )
