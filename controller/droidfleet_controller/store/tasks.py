"""The library's revisions."""

from __future__ import annotations

from sqlalchemy import Connection, func, insert, select

from droidfleet_controller.store.schema import tasks, texts
from droidfleet_controller.tasks.template import StoredTask


def add(connection: Connection, task: StoredTask) -> None:
    """Inserts a revision; its text is kept already."""
    connection.execute(
        insert(tasks).values(
            task_id=task.task_id,
            revision=task.revision,
            sha256=task.sha256,
            add_revision=task.add_revision,
            step_count=task.step_count,
            bound_s=task.bound_s,
            created_at=task.created_at,
        )
    )


def get(connection: Connection, task_id: str, revision: int | None = None) -> StoredTask | None:
    """One revision with its text, the newest when none is named; None when there is none."""
    query = select(tasks, texts.c.body).join(texts, texts.c.sha256 == tasks.c.sha256).where(tasks.c.task_id == task_id)
    query = query.order_by(tasks.c.revision.desc()).limit(1)
    if revision is not None:
        query = query.where(tasks.c.revision == revision)
    row = connection.execute(query).mappings().first()
    return None if row is None else StoredTask(**row)


def page(connection: Connection, *, after: str, limit: int) -> list[StoredTask]:
    """The newest revision of each task by id after ``after``, without texts."""
    newest = (
        select(tasks.c.task_id, func.max(tasks.c.revision).label("revision"))
        .where(tasks.c.task_id > after)
        .group_by(tasks.c.task_id)
        .order_by(tasks.c.task_id)
        .limit(limit)
        .subquery()
    )
    query = (
        select(tasks)
        .join(newest, (newest.c.task_id == tasks.c.task_id) & (newest.c.revision == tasks.c.revision))
        .order_by(tasks.c.task_id)
    )
    return [StoredTask(**row, body="") for row in connection.execute(query).mappings()]


def newest_ids(connection: Connection, *, limit: int) -> list[str]:
    """Task ids for suggestions, the newest first."""
    query = select(tasks.c.task_id).group_by(tasks.c.task_id).order_by(func.max(tasks.c.created_at).desc())
    return list(connection.execute(query.limit(limit)).scalars())
