"""The values that are written into tasks, by id. Secrets among them stay only until the last execution that uses them
has ended, and nothing holds them: a rollout that may begin more, or a schedule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, bindparam, delete, exists, insert, select, update

from droidfleet_controller.store.database import scrub_afterwards
from droidfleet_controller.store.schema import executions, run_values
from droidfleet_controller.store.sql import ManyRows, chunks
from droidfleet_controller.tasks.values import RunValues

NO_SECRETS = "{}"

_ADD = ManyRows(insert(run_values), ("values_id", "given", "secrets", "held_by"))
_FORGET = ManyRows(
    update(run_values).where(run_values.c.values_id == bindparam("key")).values(secrets=bindparam("left")),
    ("key", "left"),
)


def add(connection: Connection, values_id: str, values: RunValues, *, held_by: str = "") -> None:
    """Keeps values under a new id. ``held_by``: the rollout or schedule that may yet begin executions with them."""
    add_many(connection, {values_id: values}, held_by=held_by)


def add_many(connection: Connection, new: Mapping[str, RunValues], *, held_by: str) -> None:
    """Keeps values under new ids."""
    rows = [
        (
            values_id,
            json.dumps({"inputValues": dict(values.values), "randomSeed": values.random_seed}),
            json.dumps(dict(values.secrets)),
            held_by,
        )
        for values_id, values in new.items()
    ]
    _ADD.write(connection, rows)


def release(connection: Connection, held_by: str) -> None:
    """Nothing begins with these values any more: their secrets are forgotten as soon as no execution uses them."""
    query = select(run_values.c.values_id).where(run_values.c.held_by == held_by)
    ids = list(connection.execute(query).scalars())
    connection.execute(update(run_values).where(run_values.c.held_by == held_by).values(held_by=""))
    forget_secrets(connection, ids)


def load(connection: Connection, values_ids: Iterable[str]) -> dict[str, RunValues]:
    """The values by id; unknown ids are left out."""
    found: dict[str, RunValues] = {}
    for some in chunks(sorted(set(values_ids))):
        for row in connection.execute(select(run_values).where(run_values.c.values_id.in_(some))):
            given = json.loads(row.given)
            found[row.values_id] = RunValues(
                values=given["inputValues"], secrets=json.loads(row.secrets), random_seed=given["randomSeed"]
            )
    return found


def forget_secrets(connection: Connection, values_ids: Iterable[str]) -> None:
    """Removes those secrets that no live execution uses and nothing holds."""
    ended: list[tuple[str, str]] = []
    live = exists().where(executions.c.values_id == run_values.c.values_id, executions.c.check_at.is_not(None))
    for some in chunks(sorted(set(values_ids))):
        query = select(run_values.c.values_id, run_values.c.secrets).where(
            run_values.c.values_id.in_(some), run_values.c.secrets != NO_SECRETS, run_values.c.held_by == "", ~live
        )
        for row in connection.execute(query):
            left = json.dumps(dict.fromkeys(json.loads(row.secrets)))
            if left != row.secrets:
                ended.append((row.values_id, left))
    _FORGET.write(connection, ended)
    if ended:
        scrub_afterwards(connection)


def remove_held(connection: Connection, held_by: str) -> None:
    """Deletes the values that somebody holds and no execution names: a schedule's, which are copied to its rollouts."""
    if connection.execute(delete(run_values).where(run_values.c.held_by == held_by)).rowcount:
        scrub_afterwards(connection)


def held(connection: Connection, held_by: str) -> dict[str, RunValues]:
    """The values that somebody holds, by id."""
    query = select(run_values.c.values_id).where(run_values.c.held_by == held_by)
    return load(connection, connection.execute(query).scalars())
