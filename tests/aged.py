"""Sessions of some age, and whether a clean-up left a store whole."""

from __future__ import annotations

import time
from typing import Any

from state_ledger import full_text
from state_ledger.writing.writer import Writer

DAY = 86_400.0
NOW = time.time()


def ago(days: float) -> float:
    return NOW - days * DAY


def add(writer: Writer, id: str, *texts: str, at: float | None = None, **columns: Any) -> None:
    """A session with messages, all at one time (by default its start)."""
    row = {"id": id, "source": "cli", "started_at": ago(200), **columns}
    row["message_count"] = columns.get("message_count", len(texts))
    marks = ", ".join("?" * len(row))
    writer.connection.execute(f"INSERT INTO sessions({', '.join(row)}) VALUES ({marks})", list(row.values()))
    for text in texts:
        writer.connection.execute(
            "INSERT INTO messages(session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
            (id, text, row["started_at"] if at is None else at),
        )


def household(writer: Writer) -> None:
    """One session of every kind a clean-up has to tell apart (case 12)."""
    add(writer, "left_open", "waiting", at=ago(395), started_at=ago(396), source="telegram")
    add(writer, "used_lately", "fresh", at=ago(1), **ended(1))
    add(writer, "finished", "concluded", at=ago(199), **ended(199))
    add(writer, "keepsake", "treasure", at=ago(199), pinned=1, **ended(199))
    add(writer, "segment", "chapter", at=ago(150), **ended(150, "compression"))
    add(writer, "sequel", "continuing", at=ago(1), started_at=ago(150), parent_session_id="segment")
    add(writer, "nightly", "done", started_at=ago(2), source="cron", **ended(2, "done"))
    add(writer, "silent", **ended(200))


def ended(days: float, reason: str = "exit") -> dict[str, Any]:
    return {"ended_at": ago(days), "end_reason": reason}


def lock(writer: Writer, session: str, lasts_s: float = 3600) -> None:
    """A compression lock on a session from now on, whenever the tests began."""
    until = time.time() + lasts_s
    writer.connection.execute(
        "INSERT INTO compression_locks(session_id, holder, acquired_at, expires_at) VALUES (?, 'somebody', ?, ?)",
        (session, until - 300, until),
    )


def sessions(writer: Writer) -> dict[str, str | None]:
    return {row[0]: row[1] for row in writer.rows("SELECT id, parent_session_id FROM sessions ORDER BY id")}


def assert_clean(writer: Writer) -> None:
    """Nothing refers to what is gone, and the indexes hold exactly the messages."""
    assert writer.rows("PRAGMA foreign_key_check") == []
    for table in ("messages", "session_model_usage"):
        assert writer.value(f"SELECT count(*) FROM {table} WHERE session_id NOT IN (SELECT id FROM sessions)") == 0
    for index in full_text.INDEXES:
        full_text.check(writer.connection, index)
