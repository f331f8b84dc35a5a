"""Executions can be held by their agents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    with op.batch_alter_table("executions") as batch:
        batch.add_column(sa.Column("pause_requested", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch.add_column(sa.Column("counts_from", sa.BigInteger()))
