"""Alembic's entry: runs the migrations over the connection that `droidfleet_controller.store.migrate` hands in."""

from __future__ import annotations

from alembic import context

from droidfleet_controller.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    # SQLite can alter a table only by copying it.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
