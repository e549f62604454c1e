"""What a migration must leave as it is, read from a store as it lies there."""

from __future__ import annotations

import sqlite3 as pythons_own
from pathlib import Path
from typing import Any

from state_ledger import full_text, ledger
from state_ledger.sqlite import Connection, sqlite3

MESSAGE_COLUMNS = ("id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp",
                   "token_count", "finish_reason", "reasoning", "api_content", "active", "compacted")  # fmt: skip
SESSION_COLUMNS = ("id", "source", "model", "parent_session_id", "started_at", "ended_at", "end_reason", "title",
                   "message_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
                   "reasoning_tokens", "api_call_count", "estimated_cost_usd", "actual_cost_usd",
                   "cost_status", "system_prompt")  # fmt: skip

OLD_SQLITE = pythons_own.sqlite_version_info < (3, 41) and pythons_own.sqlite_version != sqlite3.sqlite_version
"""Whether there are two SQLites here that see NULs in a trigram index differently."""


def raw(path: Path) -> Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.text_factory = bytes
    return connection


def columns(connection: Connection, table: str) -> list[str]:
    return [row[1].decode() if isinstance(row[1], bytes) else row[1]
            for row in connection.execute(f"PRAGMA table_info({table})")]  # fmt: skip


def rows(path: Path, table: str, wanted: tuple[str, ...], only: list[str] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a table in bytes, with the columns of `wanted` that it has (or that are in `only`)."""
    connection = raw(path)
    try:
        live = columns(connection, table) if only is None else only
        kept = [name for name in wanted if name in live]
        return sorted(map(tuple, connection.execute(f"SELECT {', '.join(kept)} FROM {table}")), key=repr)
    finally:
        connection.close()


def live_columns(path: Path, table: str) -> list[str]:
    connection = raw(path)
    try:
        return columns(connection, table)
    finally:
        connection.close()


def totals(path: Path) -> tuple[Any, ...]:
    """Tokens and dollars of the whole store, as the ledger counts them."""
    connection = sqlite3.connect(path)
    connection.text_factory = lambda raw: str(raw, "utf-8", "replace")
    ledger.install(connection, profile="x")
    sums = connection.execute(
        "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), coalesce(sum(cache_read_tokens), 0),"
        " coalesce(sum(cache_write_tokens), 0), coalesce(sum(reasoning_tokens), 0),"
        " round(coalesce(sum(cost_usd), 0), 9) FROM ledger_usage"
    ).fetchone()
    connection.close()
    return tuple(sums)


def definitions(path: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
    connection.close()
    return found


def assert_sound(path: Path) -> None:
    """The file, its references and every readable index are whole."""
    connection = sqlite3.connect(path, isolation_level=None)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    for index in full_text.INDEXES:
        full_text.check(connection, index)
    connection.close()
