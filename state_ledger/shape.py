"""What a file really has: its tables, their live columns, what of it cannot be read here.

The version number of a store says little about its shape (columns are added without a bump, and a
number can stand above what the tables hold), so everything is decided by `PRAGMA table_info`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from state_ledger.sqlite import Connection, quoted, sqlite3

READ_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sessions": (
        "id", "source", "user_id", "model", "model_config", "parent_session_id", "started_at", "ended_at",
        "end_reason", "message_count", "tool_call_count", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cwd", "git_branch",
        "billing_provider", "billing_base_url", "billing_mode", "estimated_cost_usd", "actual_cost_usd",
        "cost_status", "cost_source", "title", "api_call_count", "profile_name", "rewind_count",
        "archived", "pinned",
    ),
    "messages": (
        "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
        "finish_reason", "reasoning", "reasoning_content", "active", "compacted", "observed",
        "api_content", "display_kind", "token_count",
    ),
    "session_model_usage": (
        "session_id", "model", "billing_provider", "billing_base_url", "billing_mode", "task",
        "api_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
        "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source",
        "first_seen", "last_seen",
    ),
}  # fmt: skip
"""The columns of a schema-23 store that the semantic layer reads; an absent one is NULL there."""

LEFTOVER_USAGE_TABLES = ("session_model_usage_v21", "session_model_usage_legacy_pk")
"""What an interrupted rebuild of the usage table can leave behind; its rows are still calls."""


OPERATED_TABLES = ("compression_locks", "session_turn_leases", "async_delegations", "gateway_routing")
"""Tables by which the running programs agree; any may be absent."""


@dataclass(frozen=True)
class Shape:
    """The live tables of one file, as a connection sees them.

    tables: live column names by table or view name, for the tables the layer reads and every view.
    unreadable: virtual tables that this SQLite cannot open, with SQLite's reason, for instance
        `{"messages_fts_cjk": "no such tokenizer: cjk_unicode61"}`.
    virtual: every virtual table with its CREATE text.
    version: the number in `schema_version`, or None; to be shown, never to be decided by.
    """

    tables: Mapping[str, tuple[str, ...]]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    virtual: Mapping[str, str] = field(default_factory=dict)
    version: int | None = None

    @classmethod
    def read(cls, connection: Connection) -> Shape:
        """Reads the shape of the main database of `connection`.

        Raises sqlite3.DatabaseError if the file is not a database or cannot be read.
        """
        tables: dict[str, tuple[str, ...]] = {}
        unreadable: dict[str, str] = {}
        virtual: dict[str, str] = {}
        names = connection.execute(
            "SELECT name, type, sql FROM main.sqlite_master WHERE type IN ('table', 'view')"
        ).fetchall()
        for name, _kind, sql in names:
            if sql is not None and sql.lstrip()[:20].upper().startswith("CREATE VIRTUAL"):
                virtual[name] = sql
                reason = _why_unreadable(connection, name, sql)
                if reason is not None:
                    unreadable[name] = reason
                else:
                    tables[name] = ()
            elif name in READ_COLUMNS or name in LEFTOVER_USAGE_TABLES or name in OPERATED_TABLES:
                tables[name] = _columns(connection, name)
            else:
                tables[name] = ()
        return cls(tables, unreadable, virtual, _version(connection) if "schema_version" in tables else None)

    @property
    def is_store(self) -> bool:
        """True for a Hermes store: it has `sessions` and `messages` with their keys."""
        return (
            {"id", "source", "started_at"} <= set(self.tables.get("sessions", ()))
            and {"id", "session_id", "role", "content"} <= set(self.tables.get("messages", ()))
        )  # fmt: skip

    @property
    def leftover_usage_tables(self) -> tuple[str, ...]:
        """Usage tables left by an interrupted rebuild."""
        return tuple(name for name in LEFTOVER_USAGE_TABLES if "session_id" in self.tables.get(name, ()))

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """Columns of schema 23 that the layer would read and this file lacks, by table."""
        found: dict[str, tuple[str, ...]] = {}
        for table, columns in READ_COLUMNS.items():
            live = set(self.tables.get(table, ()))
            absent = tuple(column for column in columns if column not in live)
            if absent:
                found[table] = absent
        return found

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the file has this table or, given a column, that column of it."""
        live = self.tables.get(table)
        return live is not None and (column is None or column in live)

    @property
    def key(self) -> tuple[object, ...]:
        """What the semantic layer depends on: two files with equal keys get the same views."""
        read = (*READ_COLUMNS, *LEFTOVER_USAGE_TABLES, *OPERATED_TABLES)
        return (
            tuple((name, self.tables[name]) for name in read if name in self.tables),
            tuple(sorted(self.unreadable)),
            tuple(sorted(self.virtual.items())),
        )


def _columns(connection: Connection, table: str) -> tuple[str, ...]:
    return tuple(row[1] for row in connection.execute(f"PRAGMA main.table_info({quoted(table)})"))


def _why_unreadable(connection: Connection, table: str, sql: str) -> str | None:
    """SQLite's reason why a virtual table cannot be used here, or None.

    A missing tokenizer shows when the table is opened (SQLite 3.40) or only when a query needs to be
    tokenised (3.53), hence a real MATCH on a full-text table.
    """
    probe = f"SELECT 1 FROM main.{quoted(table)}"
    if "fts5" in sql.lower():
        probe += f""" WHERE {quoted(table)} MATCH '""'"""
    try:
        connection.execute(f"{probe} LIMIT 1").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


def _version(connection: Connection) -> int | None:
    try:
        row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    except sqlite3.DatabaseError:
        return None
    return row[0] if row and isinstance(row[0], int) else None
