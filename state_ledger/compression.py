"""Compressing a session: what is noted about it, and putting the summary in its place as a new session.

Source: session-db, sections 4, 10 and 13. The lock that keeps others out meanwhile is in `locks`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from state_ledger import locks, sessions
from state_ledger.errors import CompressionSessionBusyError, CompressionSessionClosedError
from state_ledger.ledger.columns import column
from state_ledger.ledger.sessions import may_continue
from state_ledger.messages import rows as message_rows
from state_ledger.messages import unknown_session
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.surrogates import scrub, scrub_optional
from state_ledger.writing.writer import Writer

ORPHANED = "orphaned_compression"
ORPHANED_AFTER_S = 7 * 86_400
"""How long ago a continuation that nobody took up has to have been made."""


def publish_compression_child(
    writer: Writer,
    *,
    parent_session_id: str,
    child_session_id: str,
    source: str,
    messages: Iterable[Mapping[str, Any]],
    model: str | None = None,
    model_config: Mapping[str, Any] | None = None,
    system_prompt: str | None = None,
    cwd: str | None = None,
    profile_name: str | None = None,
    compression_lock_holder: str | None = None,
    require_compression_lease: bool = True,
) -> str:
    """Ends a session by compression and makes its continuation with these messages, in one transaction.

    So nobody ever finds the one without the other. messages: as for `replace_messages`. What the
    child is not given it takes over from its parent, as `create_session` says.
    require_compression_lease: whether `compression_lock_holder` has to hold the parent's compression
    lock now; without, it is enough that nobody else does.
    Returns the child's id. Raises CompressionSessionBusyError if the lock is not the caller's,
    CompressionSessionClosedError if the parent was ended by compression before, sqlite3.IntegrityError
    if there is no such parent or the child's id is taken; then nothing is changed.
    """
    ready = list(message_rows.entries(messages))
    parent, child = scrub(parent_session_id), scrub(child_session_id)

    def work(connection: Connection) -> None:
        row = connection.execute("SELECT end_reason FROM sessions WHERE id = ?", (parent,)).fetchone()
        if row is None:
            raise unknown_session(parent)
        holder = locks.get_compression_lock_holder(writer, parent)
        if require_compression_lease if holder is None else holder != compression_lock_holder:
            raise CompressionSessionBusyError(parent, holder)
        if row["end_reason"] == "compression":
            raise CompressionSessionClosedError(parent)
        if connection.execute("SELECT 1 FROM sessions WHERE id = ?", (child,)).fetchone():
            raise sqlite3.IntegrityError(f"UNIQUE constraint failed: there is a session {child!r} already.")
        connection.execute(
            "UPDATE sessions SET ended_at = coalesce(ended_at, ?), end_reason = 'compression' WHERE id = ?",
            (time.time(), parent),
        )
        sessions.create_session(
            writer,
            child,
            source,
            model=model,
            model_config=model_config,
            system_prompt=system_prompt,
            parent_session_id=parent,
            cwd=cwd,
            profile_name=profile_name,
        )
        ids, calls = message_rows.insert(connection, child, ready)
        connection.execute(
            "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?", (len(ids), calls, child)
        )

    writer.write(work)
    return child


def finalize_orphaned_compression_sessions(writer: Writer) -> int:
    """Ends continuations that nobody took up, with the reason `orphaned_compression`; returns their number.

    Such a one continues a compressed session, has messages and never ended, no call was ever made in
    it, and it was made more than seven days ago: whoever compressed the session did not get further.
    """
    shape = writer.shape
    now = time.time()

    def work(connection: Connection) -> int:
        return connection.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id IN (SELECT s.id FROM sessions AS s"
            " JOIN sessions AS p ON p.id = s.parent_session_id"
            f" WHERE s.ended_at IS NULL AND s.started_at < ? AND {may_continue(shape, 's')}"
            f" AND coalesce({column(shape, 'sessions', 'api_call_count', 's')}, 0) = 0"
            " AND EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id)"
            " AND NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id AND m.timestamp >= ?))",
            (now, ORPHANED, now - ORPHANED_AFTER_S, now - ORPHANED_AFTER_S),
        ).rowcount

    return writer.write(work)


def record_compression_failure_cooldown(
    writer: Writer, session_id: str, cooldown_until: float, error: str | None = None
) -> None:
    """Notes that compressing a session failed and is not to be tried again before a time (epoch seconds)."""
    _note(
        writer, session_id,
        compression_failure_cooldown_until=float(cooldown_until), compression_failure_error=scrub_optional(error),
    )  # fmt: skip


def get_compression_failure_cooldown(writer: Writer, session_id: str) -> dict[str, Any] | None:
    """`{"cooldown_until", "remaining_seconds", "error"}` while a cooldown runs, None else."""
    if not writer.shape.has("sessions", "compression_failure_cooldown_until"):
        return None
    row = writer.row(
        "SELECT compression_failure_cooldown_until, compression_failure_error FROM sessions WHERE id = ?", (session_id,)
    )
    remaining = row[0] - time.time() if row is not None and isinstance(row[0], (int, float)) else 0.0
    if row is None or remaining <= 0:
        return None
    return {"cooldown_until": row[0], "remaining_seconds": remaining, "error": row[1]}


def clear_compression_failure_cooldown(writer: Writer, session_id: str) -> None:
    """Ends a cooldown."""
    _note(writer, session_id, compression_failure_cooldown_until=None, compression_failure_error=None)


def get_compression_fallback_streak(writer: Writer, session_id: str) -> int:
    """How many times in a row a session was compressed by the fallback; 0 for an unknown session."""
    return _tally(writer, session_id, "compression_fallback_streak")


def set_compression_fallback_streak(writer: Writer, session_id: str, streak: int) -> None:
    """Notes how many times in a row a session was compressed by the fallback; never below 0."""
    _note(writer, session_id, compression_fallback_streak=max(int(streak), 0))


def get_compression_ineffective_count(writer: Writer, session_id: str) -> int:
    """How many times compressing a session saved too little; 0 for an unknown session."""
    return _tally(writer, session_id, "compression_ineffective_count")


def set_compression_ineffective_count(writer: Writer, session_id: str, count: int) -> None:
    """Notes how many times compressing a session saved too little; never below 0."""
    _note(writer, session_id, compression_ineffective_count=max(int(count), 0))


def _tally(writer: Writer, session_id: str, name: str) -> int:
    if not writer.shape.has("sessions", name):
        return 0
    return int(writer.value(f"SELECT {name} FROM sessions WHERE id = ?", (session_id,)) or 0)


def _note(writer: Writer, session_id: str, **columns: object) -> None:
    settings = ", ".join(f"{name} = ?" for name in columns)
    values = (*columns.values(), session_id)
    writer.write(lambda connection: connection.execute(f"UPDATE sessions SET {settings} WHERE id = ?", values))
