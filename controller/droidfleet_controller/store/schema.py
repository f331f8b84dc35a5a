"""The tables. `migrations` brings a database to this shape; a test compares the two.

Instants are stored as microseconds since 1970 in UTC: exact, sortable, and the same on every database.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


Number = BigInteger().with_variant(Integer, "sqlite")
"""A growing row number: SQLite numbers rows by itself only in an INTEGER primary key."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

texts = Table(
    "texts",
    metadata,
    # A document's text is kept once, however many revisions and executions use it.
    Column("sha256", String(64), primary_key=True),
    Column("body", Text, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("task_id", String(128), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("sha256", String(64), nullable=False),
    # The author gave no revision: dispatch writes it into the text.
    Column("add_revision", Boolean, nullable=False),
    Column("step_count", Integer, nullable=False),
    Column("bound_s", Float, nullable=False),
    Column("created_at", Instant, nullable=False),
)

devices = Table(
    "devices",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("instance", String(128), nullable=False),
    Column("host_id", String(128), nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("granted_at", Instant, nullable=False),
    Column("heartbeat", Text, nullable=False),
    Column("last_seen_at", Instant, nullable=False),
)

_LIVE = text("check_at IS NOT NULL")

executions = Table(
    "executions",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("execution_id", String(64), nullable=False),
    Column("run_id", String(64), nullable=False),
    Column("device", String(128), nullable=False),
    Column("task_id", String(128), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("add_name", Boolean, nullable=False),
    Column("add_revision", Boolean, nullable=False),
    # Its run has values (`run_values`), which are written into the text.
    Column("add_values", Boolean, nullable=False, server_default=false()),
    Column("step_count", Integer, nullable=False),
    Column("bound_s", Float, nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("steps_done", Integer, nullable=False),
    Column("current_step_id", Text, nullable=False),
    Column("progress_sequence", Integer, nullable=False),
    # The highest that a result of a step bore: how many rounds of a loop came before.
    Column("iteration", Integer, nullable=False, server_default="0"),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("accepted_at", Instant),
    Column("started_at", Instant),
    Column("check_at", Instant),
    Column("version", BigInteger, nullable=False),
    Column("result_head", Text),
    UniqueConstraint("execution_id"),
    Index("ix_executions_run_id", "run_id", "number"),
    Index("ix_executions_device", "device", "number"),
    Index("ix_executions_task_id", "task_id", "number"),
    Index("ix_executions_state", "state", "number"),
    # Exactly the live executions have a time at which a deadline may pass; these two do not grow with history.
    Index("ix_executions_check_at", "check_at", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_executions_line", "device", "number", sqlite_where=_LIVE, postgresql_where=_LIVE),
)

results = Table(
    "results",
    metadata,
    Column("execution_id", String(64), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    # In the key, so that no agent can take the place of another one's result.
    Column("device", String(128), primary_key=True),
    # Empty for the result that counts; else why it does not (LATE, FENCED, UNKNOWN_EXECUTION).
    Column("label", String(32), nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("body", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("event_id", Number, primary_key=True, autoincrement=True),
    Column("occurred_at", Instant, nullable=False),
    Column("recorded_at", Instant, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("device", String(128), nullable=False),
    Column("execution_id", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    # Counted by the agent within one attempt; null for what the controller itself reports.
    Column("sequence", Integer),
    Column("summary", Text, nullable=False),
    Column("payload", Text, nullable=False),
    UniqueConstraint("execution_id", "attempt", "sequence", "device"),
    Index("ix_events_device", "device", "event_id"),
)

agent_documents = Table(
    "agent_documents",
    metadata,
    Column("agent", String(128), primary_key=True),
    Column("generation", BigInteger, nullable=False),
    Column("published_generation", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    # The only host whose agent may begin what the document lists; empty: any.
    Column("host_id", String(128), nullable=False, server_default=""),
)

database_identity = Table(
    "database_identity",
    metadata,
    # One row, drawn when the database is made: agents recognise another database by it, whose generations start anew.
    Column("epoch", String(64), primary_key=True),
)

receipts = Table(
    "receipts",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("agent", String(128), nullable=False),
    Column("execution_id", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    # The first document generation that lists it; 0 until one does.
    Column("generation", BigInteger, nullable=False),
    UniqueConstraint("agent", "execution_id", "attempt"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("request_id", String(256), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("request_id"),
)

run_values = Table(
    "run_values",
    metadata,
    Column("run_id", String(64), primary_key=True),
    # JSON of the members that dispatch writes into the text, secrets left out: {"inputValues": {...}, "randomSeed": 7}.
    Column("given", Text, nullable=False),
    # JSON, name to secret; each becomes null when the last execution of the run has ended.
    Column("secrets", Text, nullable=False),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("execution_id", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("step_id", String(128), nullable=False),
    Column("path", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("stored_at", Instant, nullable=False),
    Index("ix_artifacts_execution_id", "execution_id", "number"),
)

artifact_files = Table(
    "artifact_files",
    metadata,
    # A content is one file, however many artifacts have it. Its row goes when the file had to make room.
    Column("sha256", String(64), primary_key=True),
    Column("size_bytes", Integer, nullable=False),
    # When an artifact last had this content; the file that was not used for longest goes first.
    Column("used_at", Instant, nullable=False),
    Index("ix_artifact_files_used_at", "used_at"),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("command", String(64), nullable=False),
    Column("subject", Text, nullable=False),
    Column("details", Text, nullable=False),
)

controllers = Table(
    "controllers",
    metadata,
    # One row: who works on this database.
    Column("slot", Integer, primary_key=True),
    Column("instance", String(64), nullable=False),
    Column("data_id", String(64), nullable=False),
    Column("holder", Text, nullable=False),
    Column("renewed_at", Instant, nullable=False),
)
