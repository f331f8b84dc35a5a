"""Drafts, what their explorations logged and saw, and whose pictures there are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    _create_drafts()
    op.create_table(
        "draft_entries",
        sa.Column("draft_id", sa.String(64), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("draft_id", "sequence", name="pk_draft_entries"),
    )
    op.create_table(
        "draft_snapshots",
        sa.Column("draft_id", sa.String(64), nullable=False),
        sa.Column("snapshot_id", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("draft_id", "snapshot_id", name="pk_draft_snapshots"),
    )
    op.create_table(
        "draft_pictures",
        sa.Column("draft_id", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("media_type", sa.String(64), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("draft_id", "sha256", name="pk_draft_pictures"),
    )


def _create_drafts() -> None:
    op.create_table(
        "drafts",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=True),
        sa.Column("draft_id", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(256), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("brief", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("issues", sa.Text(), nullable=False),
        sa.Column("code", sa.String(64), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("max_tokens", sa.BigInteger(), nullable=False),
        sa.Column("spent_tokens", sa.BigInteger(), nullable=False),
        sa.Column("spent_money", sa.Float()),
        sa.Column("currency", sa.String(8), nullable=False),
        sa.Column("last_sequence", sa.Integer(), nullable=False),
        sa.Column("entry_bytes", sa.BigInteger(), nullable=False),
        sa.Column("pending_approval_id", sa.String(64), nullable=False),
        sa.Column("accepted", sa.Text()),
        sa.Column("trials", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_drafts"),
        sa.UniqueConstraint("draft_id", name="uq_drafts_draft_id"),
        sa.UniqueConstraint("request_id", name="uq_drafts_request_id"),
    )
    op.create_index("ix_drafts_state", "drafts", ["state", "number"])
