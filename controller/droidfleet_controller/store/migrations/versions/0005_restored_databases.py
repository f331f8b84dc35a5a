"""A database that was restored from a backup says so until the stream of events has been read from its beginning."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    with op.batch_alter_table("database_identity") as batch:
        batch.add_column(sa.Column("read_events_again", sa.Boolean(), nullable=False, server_default=sa.false()))
