"""Sessions handed over from the command line to a messaging platform.

Source: session-db, section 13. A handoff is `pending` until a gateway claims it, then `running`, and
ends as `completed` or `failed`; after that the session may be handed over again.
"""

from __future__ import annotations

from typing import Any

from state_ledger.sessions import select_columns
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer

LONGEST_ERROR = 500
"""Characters of what went wrong that are kept."""


def request_handoff(writer: Writer, session_id: str, platform: str) -> bool:
    """Asks that a session go on at a platform; False if it is on its way already, or unknown."""
    return _move(
        writer,
        "handoff_state = 'pending', handoff_platform = ?, handoff_error = NULL",
        (scrub(platform), session_id),
        "coalesce(handoff_state, '') NOT IN ('pending', 'running')",
    )


def claim_handoff(writer: Writer, session_id: str) -> bool:
    """Takes a pending handoff over; False if it is not pending (any more), so that only one gateway gets it."""
    return _move(writer, "handoff_state = 'running'", (session_id,), "handoff_state = 'pending'")


def complete_handoff(writer: Writer, session_id: str) -> None:
    """Notes that the session goes on at the platform."""
    _move(writer, "handoff_state = 'completed', handoff_error = NULL", (session_id,))


def fail_handoff(writer: Writer, session_id: str, error: str) -> None:
    """Notes that it did not work, and why: the first 500 characters."""
    _move(
        writer,
        "handoff_state = 'failed', handoff_error = ?",
        (None if error is None else scrub(str(error))[:LONGEST_ERROR], session_id),
    )


def get_handoff_state(writer: Writer, session_id: str) -> dict[str, Any] | None:
    """`{"state", "platform", "error"}` of a session, all None if it was never handed over; None if unknown."""
    shape = writer.shape
    names = {"state": "handoff_state", "platform": "handoff_platform", "error": "handoff_error"}
    columns = ", ".join(f"{name if shape.has('sessions', name) else 'NULL'} AS {key}" for key, name in names.items())
    row = writer.row(f"SELECT {columns} FROM sessions WHERE id = ?", (session_id,))
    return None if row is None else dict(row)


def list_pending_handoffs(writer: Writer) -> list[dict[str, Any]]:
    """The sessions that wait for a gateway, all columns, the oldest start first."""
    if not writer.shape.has("sessions", "handoff_state"):
        return []
    rows = writer.rows(
        f"SELECT {select_columns(writer.shape, 's')} FROM sessions AS s WHERE s.handoff_state = 'pending'"
        " ORDER BY s.started_at, s.rowid"
    )
    return [dict(row) for row in rows]


def _move(writer: Writer, settings: str, parameters: tuple[object, ...], condition: str = "1") -> bool:
    return writer.write(
        lambda connection: (
            connection.execute(f"UPDATE sessions SET {settings} WHERE id = ? AND {condition}", parameters).rowcount > 0
        )
    )
