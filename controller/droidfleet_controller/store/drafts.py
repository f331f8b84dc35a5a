"""Drafts, the logs of their explorations, the screens that these saw, and whose pictures there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter
from sqlalchemy import Connection, delete, func, insert, literal, select, update
from sqlalchemy.engine import RowMapping

from droidfleet_controller.drafts.record import Accepted, DraftIssue, DraftState, StoredDraft, StoredEntry, Trial
from droidfleet_controller.store.schema import artifact_files, draft_entries, draft_pictures, draft_snapshots, drafts
from droidfleet_designer.draft.draft import Brief

_ISSUES = TypeAdapter(tuple[DraftIssue, ...])
_TRIALS = TypeAdapter(tuple[Trial, ...])

_LISTED = (
    *(column for column in drafts.c if column.name not in ("text", "trials")),
    literal("").label("text"),
    literal("[]").label("trials"),
)


@dataclass(frozen=True, slots=True)
class Kept:
    """How many things of one kind a draft has, and their bytes."""

    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPicture:
    """A picture of a draft. ``available``: its file is still there."""

    sha256: str
    media_type: str
    width: int
    height: int
    size_bytes: int
    available: bool = True


# Drafts.


def add(connection: Connection, draft: StoredDraft) -> None:
    """Inserts a draft."""
    first = {
        "draft_id": draft.draft_id,
        "request_id": draft.request_id,
        "brief": draft.brief.model_dump_json(by_alias=True),
        "model": draft.model,
        "max_tokens": draft.max_tokens,
        "currency": draft.currency,
        "created_at": draft.created_at,
        "created_by": draft.created_by,
    }
    connection.execute(insert(drafts).values(**first, **_changing(draft)))


def replace(connection: Connection, draft: StoredDraft, *, version: int) -> bool:
    """Writes a changed draft. False: it is not in this version any more, and nothing is written."""
    query = update(drafts).where(drafts.c.draft_id == draft.draft_id, drafts.c.version == version)
    return connection.execute(query.values(**_changing(draft))).rowcount == 1


def get(connection: Connection, draft_id: str) -> StoredDraft | None:
    """A draft by its id."""
    row = connection.execute(select(drafts).where(drafts.c.draft_id == draft_id)).mappings().first()
    return None if row is None else _draft(row)


def by_request(connection: Connection, request_id: str) -> StoredDraft | None:
    """The draft that a request began."""
    row = connection.execute(select(drafts).where(drafts.c.request_id == request_id)).mappings().first()
    return None if row is None else _draft(row)


def exploring(connection: Connection) -> list[StoredDraft]:
    """The drafts whose explorations have not ended, oldest first: at a start, those to go on with."""
    query = select(drafts).where(drafts.c.state == DraftState.EXPLORING).order_by(drafts.c.number)
    return [_draft(row) for row in connection.execute(query).mappings()]


def page(
    connection: Connection, *, states: Collection[DraftState], before: int | None, limit: int
) -> list[tuple[int, StoredDraft]]:
    """Drafts in ``states`` (empty: in any), newest first, from before a number on, each with its number. Texts and
    trials are left out."""
    query = select(*_LISTED).order_by(drafts.c.number.desc()).limit(limit)
    if states:
        query = query.where(drafts.c.state.in_(sorted(states)))
    if before is not None:
        query = query.where(drafts.c.number < before)
    return [(row["number"], _draft(row)) for row in connection.execute(query).mappings()]


# The log.


def add_entry(connection: Connection, draft_id: str, entry: StoredEntry) -> None:
    """Adds the next entry of a draft's log."""
    row = {"sequence": entry.sequence, "at": entry.at, "kind": entry.kind, "body": entry.body}
    connection.execute(insert(draft_entries).values(draft_id=draft_id, **row))


def entries(connection: Connection, draft_id: str, *, after: int = 0, limit: int | None = None) -> list[StoredEntry]:
    """The entries of a draft's log after a sequence, in order."""
    query = select(draft_entries).where(draft_entries.c.draft_id == draft_id, draft_entries.c.sequence > after)
    query = query.order_by(draft_entries.c.sequence).limit(limit)
    return [StoredEntry(row.sequence, row.at, row.kind, row.body) for row in connection.execute(query)]


# Snapshots.


def keep_snapshot(connection: Connection, draft_id: str, snapshot_id: str, body: bytes) -> None:
    """Keeps a snapshot, in the place of the one before."""
    table = draft_snapshots
    connection.execute(delete(table).where(table.c.draft_id == draft_id, table.c.snapshot_id == snapshot_id))
    row = {"draft_id": draft_id, "snapshot_id": snapshot_id, "body": body, "size_bytes": len(body)}
    connection.execute(insert(table).values(**row))


def snapshot(connection: Connection, draft_id: str, snapshot_id: str) -> bytes | None:
    """A snapshot as it was kept."""
    table = draft_snapshots
    query = select(table.c.body).where(table.c.draft_id == draft_id, table.c.snapshot_id == snapshot_id)
    found: bytes | None = connection.execute(query).scalar()
    return found


def snapshots(connection: Connection, draft_id: str) -> dict[str, bytes]:
    """All snapshots of a draft as they were kept, by id."""
    table = draft_snapshots
    query = select(table.c.snapshot_id, table.c.body).where(table.c.draft_id == draft_id)
    return {row.snapshot_id: row.body for row in connection.execute(query)}


def other_snapshots(connection: Connection, draft_id: str, snapshot_id: str) -> Kept:
    """What a draft has of snapshots beside one."""
    table = draft_snapshots
    query = select(func.count(), func.coalesce(func.sum(table.c.size_bytes), 0)).where(
        table.c.draft_id == draft_id, table.c.snapshot_id != snapshot_id
    )
    return Kept(*connection.execute(query).one())


# Pictures.


def keep_picture(connection: Connection, draft_id: str, picture: KeptPicture) -> None:
    """Notes that a picture is one of this draft; again changes nothing."""
    table = draft_pictures
    connection.execute(delete(table).where(table.c.draft_id == draft_id, table.c.sha256 == picture.sha256))
    connection.execute(
        insert(table).values(
            draft_id=draft_id,
            sha256=picture.sha256,
            media_type=picture.media_type,
            width=picture.width,
            height=picture.height,
            size_bytes=picture.size_bytes,
        )
    )


def picture(connection: Connection, draft_id: str, digest: str) -> KeptPicture | None:
    """A picture of a draft; None: it has none such."""
    table = draft_pictures
    query = (
        select(table, artifact_files.c.sha256.is_not(None).label("available"))
        .outerjoin(artifact_files, artifact_files.c.sha256 == table.c.sha256)
        .where(table.c.draft_id == draft_id, table.c.sha256 == digest)
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else KeptPicture(**{name: row[name] for name in row if name != "draft_id"})


def other_pictures(connection: Connection, draft_id: str, digest: str) -> Kept:
    """What a draft has of pictures beside one, whether or not their files are still there."""
    table = draft_pictures
    query = select(func.count(), func.coalesce(func.sum(table.c.size_bytes), 0)).where(
        table.c.draft_id == draft_id, table.c.sha256 != digest
    )
    return Kept(*connection.execute(query).one())


def _changing(draft: StoredDraft) -> Mapping[str, object]:
    return {
        "state": draft.state.value,
        "version": draft.version,
        "text": draft.text,
        "issues": _ISSUES.dump_json(draft.issues, by_alias=True).decode(),
        "code": draft.code,
        "message": draft.message,
        "spent_tokens": draft.spent_tokens,
        "spent_money": draft.spent_money,
        "last_sequence": draft.last_sequence,
        "entry_bytes": draft.entry_bytes,
        "pending_approval_id": draft.pending_approval_id,
        "accepted": None if draft.accepted is None else draft.accepted.model_dump_json(by_alias=True),
        "trials": _TRIALS.dump_json(draft.trials, by_alias=True).decode(),
        "updated_at": draft.updated_at,
    }


def _draft(row: RowMapping) -> StoredDraft:
    read = {
        "brief": Brief.model_validate_json(row["brief"]),
        "state": DraftState(row["state"]),
        "issues": _ISSUES.validate_json(row["issues"]),
        "accepted": None if row["accepted"] is None else Accepted.model_validate_json(row["accepted"]),
        "trials": _TRIALS.validate_json(row["trials"]),
    }
    return StoredDraft(**{name: value for name, value in row.items() if name != "number"} | read)
