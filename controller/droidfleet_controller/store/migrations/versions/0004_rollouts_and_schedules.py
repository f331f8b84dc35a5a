"""Labels, groups, rollouts, schedules; executions get a priority, tries, and values of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    with op.batch_alter_table("executions") as batch:
        batch.add_column(sa.Column("values_id", sa.String(96), nullable=False, server_default=""))
        batch.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="5"))
        batch.add_column(sa.Column("try_number", sa.Integer(), nullable=False, server_default="1"))
        batch.add_column(sa.Column("accept_within_s", sa.Float()))
        batch.add_column(sa.Column("stopped_at", sa.BigInteger()))
    op.execute("UPDATE executions SET values_id = run_id WHERE add_values")
    with op.batch_alter_table("executions") as batch:
        batch.drop_column("add_values")
    live = sa.text("check_at IS NOT NULL")
    op.create_index("ix_executions_values_id", "executions", ["values_id"], sqlite_where=live, postgresql_where=live)
    fenced = sa.text("attempt > 1 AND stopped_at IS NULL")
    op.create_index("ix_executions_fenced", "executions", ["device"], sqlite_where=fenced, postgresql_where=fenced)
    op.drop_index("ix_executions_line", "executions")
    turn = ["device", "priority", "number"]
    op.create_index("ix_executions_line", "executions", turn, sqlite_where=live, postgresql_where=live)
    op.create_table(
        "run_values_new",
        sa.Column("values_id", sa.String(96), nullable=False),
        sa.Column("given", sa.Text(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("held_by", sa.String(64), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("values_id", name="pk_run_values"),
    )
    op.execute("INSERT INTO run_values_new (values_id, given, secrets) SELECT run_id, given, secrets FROM run_values")
    op.drop_table("run_values")
    op.rename_table("run_values_new", "run_values")
    op.create_index("ix_run_values_held_by", "run_values", ["held_by"])
    _create_fleet()
    _create_rollouts()
    _create_schedules()


def _create_fleet() -> None:
    op.create_table(
        "labels",
        sa.Column("device", sa.String(128), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("value", sa.String(256), nullable=False),
        sa.PrimaryKeyConstraint("device", "key", name="pk_labels"),
    )
    op.create_table(
        "groups",
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("query", sa.Text()),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_groups"),
    )
    op.create_table(
        "group_members",
        sa.Column("group_name", sa.String(128), nullable=False),
        sa.Column("device", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("group_name", "device", name="pk_group_members"),
    )


def _create_rollouts() -> None:
    op.create_table(
        "rollouts",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("rollout_id", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(256), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("task_id", sa.String(128), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("state", sa.String(24), nullable=False),
        sa.Column("reason_code", sa.String(32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("wave_sizes", sa.Text(), nullable=False),
        sa.Column("wave_opened_at", sa.BigInteger()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("tick", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.Column("last_result_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("schedule_id", sa.String(64), nullable=False),
        sa.Column("intended_at", sa.BigInteger()),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_rollouts"),
        sa.UniqueConstraint("rollout_id", name="uq_rollouts_rollout_id"),
        sa.UniqueConstraint("request_id", name="uq_rollouts_request_id"),
    )
    still = sa.text("ended_at IS NULL")
    op.create_index("ix_rollouts_open", "rollouts", ["number"], sqlite_where=still, postgresql_where=still)
    op.create_index("ix_rollouts_schedule_id", "rollouts", ["schedule_id", "number"])
    op.create_table(
        "rollout_members",
        sa.Column("rollout_id", sa.String(64), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("device", sa.String(128), nullable=False),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("execution_id", sa.String(64), nullable=False),
        sa.Column("values_id", sa.String(96), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("retry_at", sa.BigInteger()),
        sa.Column("signature", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("rollout_id", "place", name="pk_rollout_members"),
    )
    op.create_index("ix_rollout_members_wave", "rollout_members", ["rollout_id", "wave", "place"])
    op.create_table(
        "rollout_decisions",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("rollout_id", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("rule", sa.String(32), nullable=False),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("numbers", sa.Text(), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_rollout_decisions"),
    )
    op.create_index("ix_rollout_decisions_rollout_id", "rollout_decisions", ["rollout_id", "number"])
    op.create_table(
        "rollout_membership",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("rollout_id", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("device", sa.String(128), nullable=False),
        sa.Column("movement", sa.String(16), nullable=False),
        sa.Column("wave", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_rollout_membership"),
    )
    op.create_index("ix_rollout_membership_rollout_id", "rollout_membership", ["rollout_id", "number"])


def _create_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("schedule_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("decided_until", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id", name="pk_schedules"),
        sa.UniqueConstraint("name", name="uq_schedules_name"),
    )
    op.create_table(
        "occurrences",
        sa.Column("schedule_id", sa.String(64), nullable=False),
        sa.Column("intended_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(24), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("rollout_id", sa.String(64), nullable=False),
        sa.Column("stop_at", sa.BigInteger()),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id", "intended_at", name="pk_occurrences"),
    )
    stops, queued = sa.text("stop_at IS NOT NULL"), sa.text("state = 'QUEUED'")
    op.create_index("ix_occurrences_stop_at", "occurrences", ["stop_at"], sqlite_where=stops, postgresql_where=stops)
    op.create_index(
        "ix_occurrences_queued",
        "occurrences",
        ["schedule_id", "intended_at"],
        sqlite_where=queued,
        postgresql_where=queued,
    )


_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A growing row number: SQLite numbers rows by itself only in an INTEGER primary key."""
