"""What artifacts there are, of which executions, and which contents still have a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from droidfleet_controller.store.schema import artifact_files, artifacts
from droidfleet_controller.store.sql import chunks

Attempt = tuple[str, int]
"""(execution, attempt)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """Something that a step kept. ``available``: its file is still there."""

    execution_id: str
    attempt: int
    step_id: str
    path: str
    name: str
    media_type: str
    sha256: str
    size_bytes: int
    stored_at: datetime
    available: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Room:
    """How many artifacts an attempt has, and their bytes."""

    count: int = 0
    size_bytes: int = 0


def add(connection: Connection, new: Sequence[StoredArtifact], *, now: datetime) -> None:
    """Adds artifacts whose files are written."""
    rows = [asdict(artifact) for artifact in new]
    for row in rows:
        del row["available"]
    connection.execute(insert(artifacts), rows)
    use_files(connection, {artifact.sha256: artifact.size_bytes for artifact in new}, now=now)


def use_files(connection: Connection, sizes: Mapping[str, int], *, now: datetime) -> None:
    """Notes that contents (bytes by digest), whose files are written, are used now."""
    known = _known(connection, sizes)
    for some in chunks(known):
        connection.execute(update(artifact_files).where(artifact_files.c.sha256.in_(some)).values(used_at=now))
    fresh = [
        {"sha256": digest, "size_bytes": size, "used_at": now} for digest, size in sizes.items() if digest not in known
    ]
    if fresh:
        connection.execute(insert(artifact_files), fresh)


def of_execution(connection: Connection, execution_id: str) -> list[StoredArtifact]:
    """The artifacts of an execution, in the order in which they came."""
    query = (
        select(artifacts, artifact_files.c.sha256.is_not(None).label("available"))
        .outerjoin(artifact_files, artifact_files.c.sha256 == artifacts.c.sha256)
        .where(artifacts.c.execution_id == execution_id)
        .order_by(artifacts.c.number)
    )
    return [
        StoredArtifact(**{name: value for name, value in row.items() if name != "number"})
        for row in connection.execute(query).mappings()
    ]


def rooms(connection: Connection, attempts: Collection[Attempt]) -> dict[Attempt, Room]:
    """What attempts have so far; those without artifacts are left out."""
    found: dict[Attempt, Room] = {}
    columns = (artifacts.c.execution_id, artifacts.c.attempt)
    for some in chunks(attempts):
        query = select(*columns, func.count().label("amount"), func.sum(artifacts.c.size_bytes).label("size"))
        for row in connection.execute(query.where(tuple_(*columns).in_(some)).group_by(*columns)):
            found[row.execution_id, row.attempt] = Room(row.amount, row.size)
    return found


def make_room(connection: Connection, *, quota_bytes: int) -> list[str]:
    """Forgets the files that were not used for longest until the others fit; returns their digests, for deletion."""
    total = connection.execute(select(func.sum(artifact_files.c.size_bytes))).scalar() or 0
    removed: list[str] = []
    if total > quota_bytes:
        oldest = select(artifact_files).order_by(artifact_files.c.used_at, artifact_files.c.sha256)
        for row in connection.execute(oldest):
            if total <= quota_bytes:
                break
            removed.append(row.sha256)
            total -= row.size_bytes
    for some in chunks(removed):
        connection.execute(delete(artifact_files).where(artifact_files.c.sha256.in_(some)))
    return removed


def sizes(connection: Connection) -> dict[str, int]:
    """Every content that has a file, with its bytes."""
    query = select(artifact_files.c.sha256, artifact_files.c.size_bytes)
    return {row.sha256: row.size_bytes for row in connection.execute(query)}


def digests(connection: Connection) -> set[str]:
    """Every content that has a file."""
    return set(connection.execute(select(artifact_files.c.sha256)).scalars())


def _known(connection: Connection, wanted: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in chunks(wanted):
        found.update(
            connection.execute(select(artifact_files.c.sha256).where(artifact_files.c.sha256.in_(some))).scalars()
        )
    return found
