"""Schema 23 of a Hermes Agent store, declared once.

Source: store-format, section 1. A file's `schema_version` says little about its shape (columns come
and go without a bump), so this declaration is what we *write*; what a file really has is
`state_ledger.shape`'s to find out. The full-text part is in `state_ledger.full_text`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from state_ledger import full_text
from state_ledger.sqlite import Connection

SCHEMA_VERSION = 23
"""What `schema_version.version` of a store made here holds."""


@dataclass(frozen=True)
class Column:
    """One declared column.

    type: the declared SQLite type: TEXT, INTEGER or REAL.
    not_null: whether NULL is refused.
    default: the default as an SQL literal (`0`, `''`, `'pending'`), None for none.
    key: place in the primary key, counted from 1; 0 outside of it.
    references: `table(column)` and any action, None for no foreign key.
    """

    name: str
    type: str
    not_null: bool = False
    default: str | None = None
    key: int = 0
    references: str | None = None


@dataclass(frozen=True)
class Index:
    """One named index: `terms` as in CREATE INDEX, `where` for a partial one."""

    name: str
    table: str
    terms: tuple[str, ...]
    unique: bool = False
    where: str | None = None

    @property
    def sql(self) -> str:
        """Its CREATE statement."""
        unique = "UNIQUE " if self.unique else ""
        made = f"CREATE {unique}INDEX {self.name} ON {self.table}({', '.join(self.terms)})"
        return f"{made} WHERE {self.where}" if self.where else made


def _text(name: str, *, not_null: bool = False, default: str | None = None, key: int = 0) -> Column:
    return Column(name, "TEXT", not_null, default, key)


def _integer(name: str, *, not_null: bool = False, default: str | None = None, key: int = 0) -> Column:
    return Column(name, "INTEGER", not_null, default, key)


def _real(name: str, *, not_null: bool = False, default: str | None = None) -> Column:
    return Column(name, "REAL", not_null, default)


def _counter(name: str) -> Column:
    """A counter that starts at 0 but may be NULL, as the session row has them."""
    return _integer(name, default="0")


def _tally(name: str) -> Column:
    """A counter that is never NULL."""
    return _integer(name, not_null=True, default="0")


_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")

_SESSIONS = (
    _text("id", key=1),
    _text("source", not_null=True),
    *map(
        _text, ("user_id", "session_key", "chat_id", "chat_type", "thread_id", "display_name", "origin_json")
    ),
    _counter("expiry_finalized"),
    *map(_text, ("model", "model_config", "system_prompt")),
    Column("parent_session_id", "TEXT", references="sessions(id)"),
    _real("started_at", not_null=True),
    _real("ended_at"),
    _text("end_reason"),
    *map(_counter, ("message_count", "tool_call_count", *_TOKENS)),
    *map(
        _text, ("cwd", "git_branch", "git_repo_root", "billing_provider", "billing_base_url", "billing_mode")
    ),
    *map(_real, ("estimated_cost_usd", "actual_cost_usd")),
    *map(_text, ("cost_status", "cost_source", "pricing_version", "title")),
    _counter("api_call_count"),
    *map(_text, ("handoff_state", "handoff_platform", "handoff_error")),
    _real("compression_failure_cooldown_until"),
    _text("compression_failure_error"),
    *map(_tally, ("compression_fallback_streak", "compression_ineffective_count")),
    _text("profile_name"),
    *map(_tally, ("rewind_count", "archived", "pinned")),
)

_MESSAGES = (
    _integer("id", key=1),
    Column("session_id", "TEXT", not_null=True, references="sessions(id)"),
    _text("role", not_null=True),
    *map(_text, ("content", "tool_call_id", "tool_calls", "tool_name", "effect_disposition")),
    _real("timestamp", not_null=True),
    _integer("token_count"),
    *map(_text, ("finish_reason", "reasoning", "reasoning_content", "reasoning_details")),
    *map(_text, ("codex_reasoning_items", "codex_message_items", "platform_message_id")),
    _counter("observed"),
    _integer("active", not_null=True, default="1"),
    _tally("compacted"),
    *map(_text, ("api_content", "display_kind", "display_metadata")),
)

_USAGE = (
    Column("session_id", "TEXT", not_null=True, key=1, references="sessions(id) ON DELETE CASCADE"),
    _text("model", not_null=True, key=2),
    _text("billing_provider", not_null=True, default="''", key=3),
    _text("billing_base_url", not_null=True, default="''", key=4),
    _text("billing_mode", not_null=True, default="''", key=5),
    _text("task", not_null=True, default="''", key=6),
    *map(_tally, ("api_call_count", *_TOKENS)),
    _real("estimated_cost_usd", not_null=True, default="0"),
    _real("actual_cost_usd", not_null=True, default="0"),
    *map(_text, ("cost_status", "cost_source")),
    *map(_real, ("first_seen", "last_seen")),
)

_ASYNC_DELEGATIONS = (
    _text("delegation_id", key=1),
    _text("origin_session", not_null=True),
    _text("origin_ui_session_id", not_null=True, default="''"),
    _text("parent_session_id"),
    _text("state", not_null=True),
    _real("dispatched_at", not_null=True),
    _real("completed_at"),
    _real("updated_at", not_null=True),
    *map(_text, ("event_json", "result_json")),
    _text("delivery_state", not_null=True, default="'pending'"),
    _tally("delivery_attempts"),
    _real("delivered_at"),
    *map(_integer, ("owner_pid", "owner_started_at")),
    *map(_text, ("task_json", "delivery_claim")),
    _real("delivery_claimed_at"),
)

TABLES: Mapping[str, tuple[Column, ...]] = MappingProxyType(
    {
        "schema_version": (_integer("version", not_null=True),),
        "sessions": _SESSIONS,
        "messages": _MESSAGES,
        "session_model_usage": _USAGE,
        "state_meta": (_text("key", key=1), _text("value")),
        "gateway_routing": (
            _text("scope", not_null=True, default="''", key=1),
            _text("session_key", not_null=True, key=2),
            _text("entry_json", not_null=True),
            _real("updated_at", not_null=True),
        ),
        "compression_locks": (
            _text("session_id", key=1),
            _text("holder", not_null=True),
            _real("acquired_at", not_null=True),
            _real("expires_at", not_null=True),
        ),
        "async_delegations": _ASYNC_DELEGATIONS,
    }
)
"""Every table of schema 23 but the full-text ones, with its columns in the order of a fresh file."""

INDEXES: tuple[Index, ...] = (
    Index("idx_sessions_source", "sessions", ("source",)),
    Index("idx_sessions_source_id", "sessions", ("source", "id")),
    Index("idx_sessions_parent", "sessions", ("parent_session_id",)),
    Index("idx_sessions_started", "sessions", ("started_at DESC",)),
    Index("idx_sessions_session_key", "sessions", ("session_key", "started_at DESC")),
    Index(
        "idx_sessions_gateway_peer",
        "sessions",
        ("source", "user_id", "chat_id", "chat_type", "thread_id", "started_at DESC"),
    ),
    Index("idx_sessions_handoff_state", "sessions", ("handoff_state", "started_at")),
    Index("idx_sessions_title_unique", "sessions", ("title",), unique=True, where="title IS NOT NULL"),
    Index("idx_messages_session", "messages", ("session_id", "timestamp")),
    Index("idx_messages_session_active", "messages", ("session_id", "active", "timestamp")),
    Index("idx_messages_active_null", "messages", ("active",), where="active IS NULL"),
    Index(
        "idx_messages_platform_msg_id",
        "messages",
        ("session_id", "platform_message_id"),
        where="platform_message_id IS NOT NULL",
    ),
    Index("idx_compression_locks_expires", "compression_locks", ("expires_at",)),
    Index("idx_session_model_usage_session", "session_model_usage", ("session_id",)),
    Index("idx_session_model_usage_model", "session_model_usage", ("model",)),
    Index("idx_async_delegations_delivery", "async_delegations", ("delivery_state", "completed_at")),
)
"""The sixteen named indexes; those of the primary keys come with the tables."""


def declared_columns(table: str) -> tuple[str, ...]:
    """Names of the columns schema 23 declares for `table`, in order.

    Raises KeyError for a table that schema 23 does not declare.
    """
    return tuple(column.name for column in TABLES[table])


def create_table_sql(table: str) -> str:
    """The CREATE TABLE statement of a declared table."""
    columns = TABLES[table]
    keys = [column.name for column in sorted(columns, key=lambda c: c.key) if column.key]
    lines = [_column_sql(column, alone=len(keys) == 1) for column in columns]
    if len(keys) > 1:
        lines.append(f"PRIMARY KEY ({', '.join(keys)})")
    return f"CREATE TABLE {table} (\n    " + ",\n    ".join(lines) + "\n)"


def _column_sql(column: Column, *, alone: bool) -> str:
    words = [column.name, column.type]
    if column.key and alone:
        # Ids of messages are never used twice, which is what makes "newest first by id" hold.
        words.append("PRIMARY KEY AUTOINCREMENT" if column.type == "INTEGER" else "PRIMARY KEY")
    if column.not_null:
        words.append("NOT NULL")
    if column.default is not None:
        words.append(f"DEFAULT {column.default}")
    if column.references:
        words.append(f"REFERENCES {column.references}")
    return " ".join(words)


def create_tables(connection: Connection) -> None:
    """Makes the tables and the `schema_version` row, without indexes: for loading in bulk."""
    for table in TABLES:
        connection.execute(create_table_sql(table))
    connection.execute("INSERT INTO schema_version(version) VALUES (?)", (SCHEMA_VERSION,))


def create_indexes(connection: Connection) -> None:
    """Makes the sixteen named indexes over whatever the tables hold.

    Raises sqlite3.IntegrityError if two sessions share a title.
    """
    for index in INDEXES:
        connection.execute(index.sql)


def create(connection: Connection) -> None:
    """Makes an empty schema-23 store in an empty database.

    Foreign keys, journal mode and transaction are the caller's. Where the linked SQLite cannot make
    a trigram index, the store goes without that one index.

    Raises sqlite3.OperationalError if the database already has one of the tables.
    """
    create_tables(connection)
    create_indexes(connection)
    full_text.create(connection)
