"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# Instants are microseconds since 1970 in UTC.
Instant = sa.BigInteger
Number = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "texts",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_texts"),
    )
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.String(128), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("add_revision", sa.Boolean, nullable=False),
        sa.Column("step_count", sa.Integer, nullable=False),
        sa.Column("bound_s", sa.Float, nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("task_id", "revision", name="pk_tasks"),
    )
    op.create_table(
        "devices",
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("instance", sa.String(128), nullable=False),
        sa.Column("host_id", sa.String(128), nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("granted_at", Instant, nullable=False),
        sa.Column("heartbeat", sa.Text, nullable=False),
        sa.Column("last_seen_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_devices"),
    )
    op.create_table(
        "executions",
        sa.Column("number", Number, autoincrement=True, nullable=False),
        sa.Column("execution_id", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("device", sa.String(128), nullable=False),
        sa.Column("task_id", sa.String(128), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("add_name", sa.Boolean, nullable=False),
        sa.Column("add_revision", sa.Boolean, nullable=False),
        sa.Column("step_count", sa.Integer, nullable=False),
        sa.Column("bound_s", sa.Float, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("steps_done", sa.Integer, nullable=False),
        sa.Column("current_step_id", sa.Text, nullable=False),
        sa.Column("progress_sequence", sa.Integer, nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("updated_at", Instant, nullable=False),
        sa.Column("expires_at", Instant, nullable=False),
        sa.Column("accepted_at", Instant),
        sa.Column("started_at", Instant),
        sa.Column("check_at", Instant),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("result_head", sa.Text),
        sa.PrimaryKeyConstraint("number", name="pk_executions"),
        sa.UniqueConstraint("execution_id", name="uq_executions_execution_id"),
    )
    for column in ("run_id", "task_id", "device", "state"):
        op.create_index(f"ix_executions_{column}", "executions", [column, "number"])
    live = sa.text("check_at IS NOT NULL")
    for name, columns in (("check_at", ["check_at"]), ("line", ["device", "number"])):
        op.create_index(f"ix_executions_{name}", "executions", columns, sqlite_where=live, postgresql_where=live)
    op.create_table(
        "results",
        sa.Column("execution_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("device", sa.String(128), nullable=False),
        sa.Column("label", sa.String(32), nullable=False),
        sa.Column("received_at", Instant, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "attempt", "device", name="pk_results"),
    )
    op.create_table(
        "events",
        sa.Column("event_id", Number, autoincrement=True, nullable=False),
        sa.Column("occurred_at", Instant, nullable=False),
        sa.Column("recorded_at", Instant, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("device", sa.String(128), nullable=False),
        sa.Column("execution_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("sequence", sa.Integer),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_events"),
        sa.UniqueConstraint(
            "execution_id", "attempt", "sequence", "device", name="uq_events_execution_id_attempt_sequence_device"
        ),
    )
    op.create_index("ix_events_device", "events", ["device", "event_id"])
    op.create_table(
        "agent_documents",
        sa.Column("agent", sa.String(128), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("published_generation", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("agent", name="pk_agent_documents"),
    )
    op.create_table(
        "receipts",
        sa.Column("number", Number, autoincrement=True, nullable=False),
        sa.Column("agent", sa.String(128), nullable=False),
        sa.Column("execution_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_receipts"),
        sa.UniqueConstraint("agent", "execution_id", "attempt", name="uq_receipts_agent_execution_id_attempt"),
    )
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(256), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
        sa.UniqueConstraint("request_id", name="uq_runs_request_id"),
    )
    op.create_table(
        "audit",
        sa.Column("number", Number, autoincrement=True, nullable=False),
        sa.Column("at", Instant, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("command", sa.String(64), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_table(
        "controllers",
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("instance", sa.String(64), nullable=False),
        sa.Column("data_id", sa.String(64), nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("renewed_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("slot", name="pk_controllers"),
    )
