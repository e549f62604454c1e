"""Compression locks: a session that is being compressed takes no messages from anybody else.

Source: session-db, section 13. A lock is a row with a holder's name and an end; who compresses has to
renew it, so that the lock of a program that died is free again after a while.
"""

from __future__ import annotations

import re
import time

from state_ledger import processes
from state_ledger.sqlite import Connection
from state_ledger.writing.writer import Writer

DEFAULT_TTL_S = 300.0

_PID = re.compile(r"(?<![A-Za-z0-9])pid=([0-9]+)")


def try_acquire_compression_lock(
    writer: Writer, session_id: str, holder: str, ttl_seconds: float = DEFAULT_TTL_S
) -> bool:
    """Takes the lock of a session, or renews it; False while another holder has it.

    A lock that has run out is taken over, and one whose holder names a process of this machine
    (`pid=4711` in its text) that does not run any more. An empty session id is never locked.
    """
    if not session_id:
        return False

    def take(connection: Connection) -> bool:
        now = time.time()
        found = connection.execute(
            "SELECT holder, expires_at FROM compression_locks WHERE session_id = ?", (session_id,)
        ).fetchone()
        if found and found[0] != holder and found[1] > now and not _is_dead(found[0]):
            return False
        connection.execute(
            "INSERT INTO compression_locks (session_id, holder, acquired_at, expires_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (session_id) DO UPDATE SET "
            "holder = excluded.holder, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at",
            (session_id, holder, now, now + ttl_seconds),
        )
        return True

    return writer.write(take)


def refresh_compression_lock(
    writer: Writer, session_id: str, holder: str, ttl_seconds: float = DEFAULT_TTL_S
) -> bool:
    """Gives a lock more time; False if it is not the holder's (any more). One that ran out can be renewed."""
    return writer.write(
        lambda connection: connection.execute(
            "UPDATE compression_locks SET expires_at = ? WHERE session_id = ? AND holder = ?",
            (time.time() + ttl_seconds, session_id, holder),
        ).rowcount
        > 0
    )


def release_compression_lock(writer: Writer, session_id: str, holder: str) -> None:
    """Gives a lock back; nothing happens if it is another's."""
    writer.write(
        lambda connection: connection.execute(
            "DELETE FROM compression_locks WHERE session_id = ? AND holder = ?", (session_id, holder)
        )
    )


def get_compression_lock_holder(writer: Writer, session_id: str) -> str | None:
    """Who holds the lock of a session now, None if nobody does."""
    found = writer.value(*_live_lock(session_id))
    return None if found is None else str(found)


def _live_lock(session_id: str) -> tuple[str, tuple[str, float]]:
    return (
        "SELECT holder FROM compression_locks WHERE session_id = ? AND expires_at > ?",
        (session_id, time.time()),
    )


def _is_dead(holder: str) -> bool:
    """Whether a holder names a process that surely does not run."""
    named = _PID.search(holder)
    return named is not None and processes.surely_ended(int(named.group(1)))
