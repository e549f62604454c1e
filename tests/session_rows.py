"""Session rows as any program may have left them."""

from __future__ import annotations

from typing import Any

from state_ledger.session_db import SessionDB


def add(db: SessionDB, session_id: str, parent: str | None = None, **columns: Any) -> None:
    """Puts a session row into a store; foreign keys are not asked."""
    row = {"id": session_id, "source": "cli", "started_at": 100.0, "parent_session_id": parent, **columns}
    db._conn.execute("PRAGMA foreign_keys = OFF")
    db._conn.execute(f"INSERT INTO sessions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
    db._conn.execute("PRAGMA foreign_keys = ON")
