"""The tables. `migrations` brings a database to this shape; a test compares the two.

Instants are stored as microseconds since 1970 in UTC: exact, sortable, and the same on every database.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
    type_coerce,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def plain(column: Column[Any]) -> ColumnElement[Any]:
    """The column as it is stored: instants as microseconds."""
    return type_coerce(column, BigInteger).label(column.name) if isinstance(column.type, Instant) else column


def microseconds(at: datetime | None) -> int | None:
    """An instant as it is stored."""
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def instant(stored: int) -> datetime:
    """A stored instant."""
    return _EPOCH + timedelta(microseconds=stored)


class Instant(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else instant(value)


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
_FENCED = text("attempt > 1 AND stopped_at IS NULL")
_OPEN = text("ended_at IS NULL")
_STOPS = text("stop_at IS NOT NULL")
_QUEUED = text("state = 'QUEUED'")

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
    # The `run_values` that are written into the text; empty: none.
    Column("values_id", String(96), nullable=False, server_default=""),
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
    # 0 to 9; on a phone the higher one runs first, then the older one.
    Column("priority", Integer, nullable=False, server_default="5"),
    # Which try of its rollout's member it is, from 1.
    Column("try_number", Integer, nullable=False, server_default="1"),
    # From its assignment until the agent must have accepted it; null: only `expires_at` counts.
    Column("accept_within_s", Float),
    # Since when the agent is known not to be at a fenced attempt any more; null: not fenced, or not known.
    Column("stopped_at", Instant),
    # Somebody wants it held.
    Column("pause_requested", Boolean, nullable=False, server_default=false()),
    # When it was last held, or went on from there; null: it never was.
    Column("counts_from", Instant),
    UniqueConstraint("execution_id"),
    Index("ix_executions_run_id", "run_id", "number"),
    Index("ix_executions_device", "device", "number"),
    Index("ix_executions_task_id", "task_id", "number"),
    Index("ix_executions_state", "state", "number"),
    # Exactly the live executions have a time at which a deadline may pass; these do not grow with history.
    Index("ix_executions_values_id", "values_id", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_executions_check_at", "check_at", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_executions_fenced", "device", sqlite_where=_FENCED, postgresql_where=_FENCED),
    Index("ix_executions_line", "device", "priority", "number", sqlite_where=_LIVE, postgresql_where=_LIVE),
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
    # Restored from a backup: what agents reported since is on the broker, and was acknowledged to it.
    Column("read_events_again", Boolean, nullable=False, server_default=false()),
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
    # The run's id, the rollout's, or of one member of a rollout; an execution names it.
    Column("values_id", String(96), primary_key=True),
    # JSON of the members that dispatch writes into the text, secrets left out: {"inputValues": {...}, "randomSeed": 7}.
    Column("given", Text, nullable=False),
    # JSON, name to secret; each becomes null when the last execution that names it has ended and nothing holds it.
    Column("secrets", Text, nullable=False),
    # The rollout or the schedule that may yet begin executions with it; empty: none.
    Column("held_by", String(64), nullable=False, server_default=""),
    Index("ix_run_values_held_by", "held_by"),
)

labels = Table(
    "labels",
    metadata,
    Column("device", String(128), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("value", String(256), nullable=False),
)

groups = Table(
    "groups",
    metadata,
    Column("name", String(128), primary_key=True),
    # A label query, evaluated at use; null: the group is static and lists its devices.
    Column("query", Text),
    Column("description", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
)

group_members = Table(
    "group_members",
    metadata,
    Column("group_name", String(128), primary_key=True),
    Column("device", String(128), primary_key=True),
)

rollouts = Table(
    "rollouts",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("rollout_id", String(64), nullable=False),
    Column("request_id", String(256), nullable=False),
    Column("digest", String(64), nullable=False),
    # JSON of the document, secrets left out.
    Column("spec", Text, nullable=False),
    Column("task_id", String(128), nullable=False),
    Column("revision", Integer, nullable=False),
    # JSON of `Subject`, but for the two above.
    Column("subject", Text, nullable=False),
    Column("state", String(24), nullable=False),
    Column("reason_code", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("wave", Integer, nullable=False),
    # JSON list.
    Column("wave_sizes", Text, nullable=False),
    Column("wave_opened_at", Instant),
    Column("version", BigInteger, nullable=False),
    # Of two controllers that plan the same rollout one is refused by it.
    Column("tick", BigInteger, nullable=False),
    # JSON of `Memory`.
    Column("memory", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("moved_at", Instant, nullable=False),
    Column("last_result_at", Instant),
    # Null exactly while it goes on.
    Column("ended_at", Instant),
    Column("schedule_id", String(64), nullable=False),
    Column("intended_at", Instant),
    Column("actor", Text, nullable=False),
    UniqueConstraint("rollout_id"),
    UniqueConstraint("request_id"),
    Index("ix_rollouts_open", "number", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_rollouts_schedule_id", "schedule_id", "number"),
)

rollout_members = Table(
    "rollout_members",
    metadata,
    Column("rollout_id", String(64), primary_key=True),
    # 0 is the dry run's, so that its device may be a member as well.
    Column("place", Integer, primary_key=True),
    Column("device", String(128), nullable=False),
    Column("wave", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("execution_id", String(64), nullable=False),
    Column("values_id", String(96), nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    Column("retry_at", Instant),
    # JSON list of code, step and screen of the last failure.
    Column("signature", Text),
    Column("reason", Text, nullable=False),
    Index("ix_rollout_members_wave", "rollout_id", "wave", "place"),
)

rollout_decisions = Table(
    "rollout_decisions",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("rollout_id", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("rule", String(32), nullable=False),
    Column("wave", Integer, nullable=False),
    # JSON object.
    Column("numbers", Text, nullable=False),
    Column("sentence", Text, nullable=False),
    Index("ix_rollout_decisions_rollout_id", "rollout_id", "number"),
)

rollout_membership = Table(
    "rollout_membership",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("rollout_id", String(64), nullable=False),
    Column("at", Instant, nullable=False),
    Column("device", String(128), nullable=False),
    Column("movement", String(16), nullable=False),
    Column("wave", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Index("ix_rollout_membership_rollout_id", "rollout_id", "number"),
)

schedules = Table(
    "schedules",
    metadata,
    Column("schedule_id", String(64), primary_key=True),
    Column("name", String(128), nullable=False),
    # JSON of the document, secrets left out.
    Column("spec", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("version", BigInteger, nullable=False),
    # Occurrences up to here are decided.
    Column("decided_until", Instant, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    UniqueConstraint("name"),
)

occurrences = Table(
    "occurrences",
    metadata,
    # The key makes one occurrence one run, whatever restarts and however many controllers.
    Column("schedule_id", String(64), primary_key=True),
    Column("intended_at", Instant, primary_key=True),
    # The words of `OccurrenceState`.
    Column("state", String(24), nullable=False),
    Column("reason", Text, nullable=False),
    Column("rollout_id", String(64), nullable=False),
    # When a window's occurrence ends; null: it is none, or its stop was carried out.
    Column("stop_at", Instant),
    Column("decided_at", Instant, nullable=False),
    Index("ix_occurrences_stop_at", "stop_at", sqlite_where=_STOPS, postgresql_where=_STOPS),
    Index("ix_occurrences_queued", "schedule_id", "intended_at", sqlite_where=_QUEUED, postgresql_where=_QUEUED),
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
    # When an artifact or a draft's picture last had this content; the file that was not used for longest goes first.
    Column("used_at", Instant, nullable=False),
    Index("ix_artifact_files_used_at", "used_at"),
)

drafts = Table(
    "drafts",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("draft_id", String(64), nullable=False),
    Column("request_id", String(256), nullable=False),
    # The words of `DraftState`.
    Column("state", String(16), nullable=False),
    # Grows with each change of state or text; what is logged leaves it alone.
    Column("version", BigInteger, nullable=False),
    # JSON of `Brief`.
    Column("brief", Text, nullable=False),
    # The proposal's JSON text, a person's as it was written; empty while there is none.
    Column("text", Text, nullable=False),
    # JSON list of `DraftIssue`.
    Column("issues", Text, nullable=False),
    Column("code", String(64), nullable=False),
    Column("message", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("max_tokens", BigInteger, nullable=False),
    Column("spent_tokens", BigInteger, nullable=False),
    # Null: the price is not known.
    Column("spent_money", Float),
    Column("currency", String(8), nullable=False),
    Column("last_sequence", Integer, nullable=False),
    # Of all entries' bodies.
    Column("entry_bytes", BigInteger, nullable=False),
    # The approval that is waited for; empty: none.
    Column("pending_approval_id", String(64), nullable=False),
    # JSON of `Accepted`; null until then.
    Column("accepted", Text),
    # JSON list of `Trial`.
    Column("trials", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("updated_at", Instant, nullable=False),
    UniqueConstraint("draft_id"),
    UniqueConstraint("request_id"),
    Index("ix_drafts_state", "state", "number"),
)

draft_entries = Table(
    "draft_entries",
    metadata,
    Column("draft_id", String(64), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("kind", String(32), nullable=False),
    # JSON of the entry.
    Column("body", Text, nullable=False),
)

draft_snapshots = Table(
    "draft_snapshots",
    metadata,
    Column("draft_id", String(64), primary_key=True),
    Column("snapshot_id", String(64), primary_key=True),
    # JSON of the snapshot, compressed with zlib.
    Column("body", LargeBinary, nullable=False),
    Column("size_bytes", Integer, nullable=False),
)

draft_pictures = Table(
    "draft_pictures",
    metadata,
    # Whose a picture is; its content is in `artifact_files` while it has a file.
    Column("draft_id", String(64), primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("media_type", String(64), nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("size_bytes", Integer, nullable=False),
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
