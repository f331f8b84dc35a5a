"""Runs get values, executions rounds and artifacts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    with op.batch_alter_table("executions") as batch:
        batch.add_column(sa.Column("add_values", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch.add_column(sa.Column("iteration", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "run_values",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("given", sa.Text(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_values"),
    )
    op.create_table(
        "artifacts",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("execution_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step_id", sa.String(128), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("stored_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_artifacts"),
    )
    op.create_index("ix_artifacts_execution_id", "artifacts", ["execution_id", "number"])
    op.create_table(
        "artifact_files",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_artifact_files"),
    )
    op.create_index("ix_artifact_files_used_at", "artifact_files", ["used_at"])


_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
