"""The database gets a random id of its own, and each document the host that it is for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from droidfleet_controller.ids import new_id

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    identity = op.create_table(
        "database_identity",
        sa.Column("epoch", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("epoch", name="pk_database_identity"),
    )
    op.bulk_insert(identity, [{"epoch": new_id("db")}])
    with op.batch_alter_table("agent_documents") as batch:
        batch.add_column(sa.Column("host_id", sa.String(128), nullable=False, server_default=""))
    op.execute(
        "UPDATE agent_documents SET host_id ="
        " COALESCE((SELECT host_id FROM devices WHERE devices.name = agent_documents.agent), '')"
    )
