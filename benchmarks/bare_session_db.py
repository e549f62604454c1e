"""The bare side of the storage benchmarks: the statements of an append on a plain SQLite connection."""

from __future__ import annotations

import time
from pathlib import Path

from state_ledger.sqlite import sqlite3

STATE = (
    "SELECT ended_at IS NOT NULL AND end_reason IS 'compression',"
    " (SELECT holder FROM compression_locks WHERE session_id = sessions.id AND expires_at > ?)"
    " FROM sessions WHERE id = ?"
)
INSERT = (
    "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, effect_disposition,"
    " timestamp, token_count, finish_reason, reasoning, reasoning_content, reasoning_details,"
    " codex_reasoning_items, codex_message_items, platform_message_id, observed, api_content, display_kind,"
    " display_metadata, active) VALUES (?, ?, ?, NULL, NULL, NULL, NULL, ?, NULL, NULL, NULL, NULL, NULL,"
    " NULL, NULL, NULL, 0, NULL, NULL, NULL, 1)"
)
COUNT = (
    "UPDATE sessions SET message_count = coalesce(message_count, 0) + ?,"
    " tool_call_count = coalesce(tool_call_count, 0) + ? WHERE id = ?"
)


class SessionDB:
    """As much of the class as a benchmark of appends needs: no retries, SQLite's own wait of 30 s."""

    def __init__(self, path: Path) -> None:
        self._conn = sqlite3.connect(path, timeout=30.0, isolation_level=None)
        self._conn.execute("PRAGMA foreign_keys = ON")

    def create(self, session_id: str) -> str:
        """A new session to append to."""
        inserted = "INSERT INTO sessions(id, source, started_at) VALUES (?, 'cli', ?)"
        self._conn.execute(inserted, (session_id, time.time()))
        return session_id

    def append_message(self, session_id: str, role: str, content: str) -> int:
        connection = self._conn
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(STATE, (time.time(), session_id)).fetchone()
        row_id = connection.execute(INSERT, (session_id, role, content, time.time())).lastrowid
        connection.execute(COUNT, (1, 0, session_id))
        connection.execute("COMMIT")
        assert row_id is not None
        return row_id

    def close(self) -> None:
        self._conn.close()
