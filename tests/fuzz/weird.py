"""Stores that no program of today writes, and SQLite holds all the same: the wrong thing in every column."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from state_ledger import schema
from state_ledger.sqlite import Connection, quoted, sqlite3

START = 1_790_000_000.0

MARKUP = "<img src=x onerror=alert(1)>\"'&{{7*7}}"

VALUES: tuple[Any, ...] = (
    None, -1, 0, 2**63 - 1, -(2**63), 1.5, -0.0, 1e308, float("inf"), "", "-", "2026-01-01", "NaN", "1e999",
    b"", b"\xff\x00\xfe", b"{\xff", "\ud83d".encode("utf-16-le", "surrogatepass"), MARKUP, "a\x00b",
    "\u202eabc\u2066", "[]", "{}", "[" * 2000, '{"a":' * 600, "\x00json:[", "\x00json:" + json.dumps([1, None,
    {"type": []}]),
    '\x00json:[{"type": "text", "text": "\\ud83d"}, {"type": "\\udc00", "\\ud83d": 1}]',
    '[{"id": "\\ud83d", "function": {"name": "\\ud83d", "arguments": "{\\"a\\": \\"\\\\ud83d\\"}"}}]',
    '{"a": "\\ud83d", "\\udfff": NaN}',
    '[{"function": 3, "id": []}]', '[{"function": {"name": {}, "arguments": [NaN]}}]', "x" * 70_000,
)  # fmt: skip
"""What stands where a number, a moment, a name or JSON was expected."""

NOT_UTF8 = "CAST(x'c328ff20' AS TEXT)"
"""As SQL: text in a column of text that is not UTF-8."""

TABLES = ("sessions", "messages", "session_model_usage", "state_meta", "gateway_routing", "compression_locks",
          "async_delegations")  # fmt: skip


def _lax(table: str) -> str:
    """The table without what would refuse a row; the number of a message stays what it is."""
    lines = []
    for column in schema.TABLES[table]:
        key = " PRIMARY KEY AUTOINCREMENT" if table == "messages" and column.name == "id" else ""
        lines.append(f"{column.name} {column.type}{key}")
    return f"CREATE TABLE {table} ({', '.join(lines)})"


def _insert(connection: Connection, table: str, row: dict[str, Any], sql: dict[str, str] | None = None) -> None:
    given = {**dict.fromkeys(row, "?"), **(sql or {})}
    values = [value for name, value in row.items() if name not in (sql or {})]
    names = ", ".join(map(quoted, given))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join(given.values())})", values)


def _sound(table: str, number: int) -> dict[str, Any]:
    """A row that nothing is wrong with."""
    session, time = f"w{number}", START + 60 * number
    if table == "sessions":
        return {"id": session, "source": "cli", "model": "m", "started_at": time, "ended_at": time + 50,
                "message_count": 1, "input_tokens": 10, "output_tokens": 5, "estimated_cost_usd": 0.5,
                "api_call_count": 1, "title": f"t {number}", "end_reason": "done"}  # fmt: skip
    if table == "messages":
        return {"session_id": session, "role": "user", "content": f"pier {number}", "timestamp": time, "active": 1,
                "compacted": 0, "observed": 0}  # fmt: skip
    if table == "session_model_usage":
        return {"session_id": session, "model": "m", "billing_provider": "p", "billing_base_url": "",
        "billing_mode": "",
                "task": "", "api_call_count": 1, "input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3,
                "cache_write_tokens": 1, "reasoning_tokens": 0, "estimated_cost_usd": 0.25, "actual_cost_usd": 0.0,
                "first_seen": time, "last_seen": time + 9}  # fmt: skip
    columns = schema.TABLES[table]
    return {column.name: f"{column.name} {number}" if column.type == "TEXT" else time for column in columns}


def weird_store(path: Path, share: int = 1) -> Path:
    """A store in which every column of every table holds each of VALUES, and text that is not UTF-8.

    share: only each so many of them, others in each column.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for table in schema.TABLES:
            connection.execute(_lax(table))
        connection.execute("INSERT INTO schema_version VALUES (23)")
        number = 0
        for table in TABLES:
            for column in schema.TABLES[table]:
                if (table, column.name) == ("messages", "id"):
                    continue
                for value in (*VALUES, NOT_UTF8):
                    number += 1
                    if number % share:
                        continue
                    for each in dict.fromkeys(("sessions", "messages", "session_model_usage", table)):
                        row = _sound(each, number)
                        if each == table and value is NOT_UTF8:
                            _insert(connection, each, row, {column.name: NOT_UTF8})
                        else:
                            _insert(connection, each, {**row, column.name: value} if each == table else row)
        connection.commit()
    return path
