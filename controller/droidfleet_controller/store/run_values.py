"""The values of runs. Secrets among them stay only until the last execution of the run has ended."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, exists, insert, select, update

from droidfleet_controller.store.database import scrub_afterwards
from droidfleet_controller.store.schema import executions, run_values
from droidfleet_controller.store.sql import chunks
from droidfleet_controller.tasks.values import RunValues

NO_SECRETS = "{}"

_FORGET = update(run_values).where(run_values.c.run_id == bindparam("key")).values(secrets=bindparam("left"))


def add(connection: Connection, run_id: str, values: RunValues) -> None:
    """Keeps the values of a new run."""
    given = {"inputValues": dict(values.values), "randomSeed": values.random_seed}
    connection.execute(
        insert(run_values).values(run_id=run_id, given=json.dumps(given), secrets=json.dumps(dict(values.secrets)))
    )


def load(connection: Connection, run_ids: Iterable[str]) -> dict[str, RunValues]:
    """The values by run; runs without any are left out."""
    found: dict[str, RunValues] = {}
    for some in chunks(sorted(set(run_ids))):
        for row in connection.execute(select(run_values).where(run_values.c.run_id.in_(some))):
            given = json.loads(row.given)
            found[row.run_id] = RunValues(
                values=given["inputValues"], secrets=json.loads(row.secrets), random_seed=given["randomSeed"]
            )
    return found


def forget_secrets(connection: Connection, run_ids: Iterable[str]) -> None:
    """Removes the secrets of those runs of which no execution is live any more."""
    ended: list[dict[str, str]] = []
    live = exists().where(executions.c.run_id == run_values.c.run_id, executions.c.check_at.is_not(None))
    for some in chunks(sorted(set(run_ids))):
        query = select(run_values.c.run_id, run_values.c.secrets).where(
            run_values.c.run_id.in_(some), run_values.c.secrets != NO_SECRETS, ~live
        )
        for row in connection.execute(query):
            left = json.dumps(dict.fromkeys(json.loads(row.secrets)))
            if left != row.secrets:
                ended.append({"key": row.run_id, "left": left})
    if ended:
        connection.execute(_FORGET, ended)
        scrub_afterwards(connection)
