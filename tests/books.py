"""Small stores for tests of the accounting, made row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from state_ledger import ledger, schema
from state_ledger.search import functions
from state_ledger.sqlite import Connection, sqlite3

Row = Mapping[str, Any]


def write(
    path: Path,
    *,
    sessions: Iterable[Row] = (),
    usage: Iterable[Row] = (),
    messages: Iterable[Row] = (),
    without: Iterable[tuple[str, str | None]] = (),
) -> Path:
    """Writes a schema-23 store with these rows; foreign keys are not enforced.

    without: `(table, column)` to leave out, `(table, None)` for a whole table, as older stores do.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN")
    absent = set(without)
    for table, columns in schema.TABLES.items():
        if table not in {"sessions", "messages", "session_model_usage"} or (table, None) in absent:
            continue
        kept = [column for column in columns if (table, column.name) not in absent]
        # Keys are left out: a test's rows may break what the real program enforces.
        listed = ", ".join(f"{c.name} {c.type}{_rest(table, c)}" for c in kept)
        connection.execute(f"CREATE TABLE {table} ({listed})")
        rows = {"sessions": sessions, "messages": messages, "session_model_usage": usage}[table]
        for row in rows:
            given = {name: value for name, value in row.items() if (table, name) not in absent}
            connection.execute(
                f"INSERT INTO {table} ({', '.join(given)}) VALUES ({', '.join('?' * len(given))})",
                list(given.values()),
            )
    for table, on in (("messages", "session_id, timestamp"), ("sessions", "parent_session_id")):
        if not absent & {(table, name) for name in on.split(", ")}:
            connection.execute(f"CREATE INDEX idx_{table} ON {table}({on})")
    if ("session_model_usage", None) not in absent:
        connection.execute("CREATE INDEX idx_usage ON session_model_usage(session_id)")
    connection.execute("COMMIT")
    connection.close()
    return path


def _rest(table: str, column: schema.Column) -> str:
    if table == "sessions" and column.name == "id":
        return " PRIMARY KEY"
    if table == "messages" and column.name == "id":
        return " PRIMARY KEY"
    return f" DEFAULT {column.default}" if column.default is not None else ""


def open_books(path: Path, **options: Any) -> Connection:
    """A read-only connection with the semantic layer."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.text_factory = lambda raw: str(raw, "utf-8", "replace")
    if ledger.install(connection, **options).is_store:
        functions.install(connection)
    return connection


def session(id: str, **columns: Any) -> Row:
    """A session row; began on 2026-06-01 12:00 UTC unless told otherwise."""
    return {"id": id, "source": "cli", "started_at": 1780315200.0, **columns}


def call(session_id: str, model: str = "m", **columns: Any) -> Row:
    """A usage row."""
    return {"session_id": session_id, "model": model, **columns}


def message(session_id: str, timestamp: Any, role: str = "user", content: Any = "hello", **columns: Any) -> Row:
    """A message row."""
    return {"session_id": session_id, "timestamp": timestamp, "role": role, "content": content, **columns}
