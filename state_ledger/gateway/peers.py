"""Messaging peers: who a gateway session talks with, and which session goes on when they write again.

Source: session-db, section 13. A gateway session is one with a session key, the gateway's own name
for a talk; the newest session of a key is the one that counts.
"""

from __future__ import annotations

from typing import Any

from state_ledger.sessions import select_columns
from state_ledger.sqlite import Row
from state_ledger.surrogates import scrub_optional
from state_ledger.writing.writer import Writer

LOST_CLIENT = ("agent_close", "ws_orphan_reap")
"""Ends that only say that the program on the other side went away: the talk may go on."""

_NEWEST = "(SELECT max(m.timestamp) FROM messages AS m WHERE m.session_id = s.id)"


def record_gateway_session_peer(
    writer: Writer,
    session_id: str,
    *,
    source: str,
    user_id: str | None = None,
    session_key: str | None = None,
    chat_id: str | None = None,
    chat_type: str | None = None,
    thread_id: str | None = None,
    display_name: str | None = None,
    origin_json: str | None = None,
) -> None:
    """Notes who a session talks with, in place of what was noted before.

    A name or an origin that is not given stays as it is. Nothing happens without a session key, and
    for an unknown session.
    """
    if not session_id or not session_key:
        return
    values = [
        scrub_optional(value)
        for value in (
            source, user_id, session_key, chat_id, chat_type, thread_id, display_name, origin_json, session_id,
        )
    ]  # fmt: skip
    writer.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET source = ?, user_id = ?, session_key = ?, chat_id = ?, chat_type = ?,"
            " thread_id = ?, display_name = coalesce(?, display_name), origin_json = coalesce(?, origin_json)"
            " WHERE id = ?",
            values,
        )
    )


def set_expiry_finalized(writer: Writer, session_id: str, finalized: bool = True) -> None:
    """Notes that the gateway is done with the reset of a session, or that it is not."""
    writer.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET expiry_finalized = ? WHERE id = ?", (int(bool(finalized)), session_id)
        )
    )


def list_gateway_sessions(
    writer: Writer, *, platform: str | None = None, active_only: bool = True
) -> list[dict[str, Any]]:
    """The newest session of each session key: all its columns and `last_active`, most recently active first.

    platform: only sessions of this source, in either case. active_only: leaves out keys whose newest
    session has ended. last_active: the newest message, else the start, epoch seconds.
    """
    if not writer.shape.has("sessions", "session_key"):
        return []
    conditions, parameters = ["s.session_key <> ''"], list[object]()
    if platform:
        conditions.append("lower(s.source) = lower(?)")
        parameters.append(platform)
    if active_only:
        conditions.append("s.ended_at IS NULL")
    newer = "n.session_key = s.session_key AND (n.started_at, n.rowid) > (s.started_at, s.rowid)"
    rows = writer.rows(
        f"SELECT {select_columns(writer.shape, 's')}, coalesce({_NEWEST}, s.started_at) AS last_active"
        f" FROM sessions AS s WHERE {' AND '.join(conditions)}"
        f" AND NOT EXISTS (SELECT 1 FROM sessions AS n WHERE {newer})"
        " ORDER BY last_active DESC, s.started_at DESC, s.rowid DESC",
        parameters,
    )
    return [dict(row) for row in rows]


def find_session_by_origin(
    writer: Writer,
    *,
    platform: str,
    chat_id: str,
    thread_id: str | None = None,
    user_id: str | None = None,
) -> str | None:
    """The id of the newest live gateway session of a chat, None where there is none or no telling which.

    thread_id: only that thread; any by default. Where several users have a session in the chat, it
    has to be the one of `user_id`.
    """
    if not platform or not chat_id or not writer.shape.has("sessions", "session_key"):
        return None
    conditions = "lower(source) = lower(?) AND chat_id = ? AND session_key <> '' AND ended_at IS NULL"
    parameters: list[object] = [platform, str(chat_id)]
    if thread_id:
        conditions += " AND thread_id = ?"
        parameters.append(str(thread_id))
    found = writer.rows(
        f"SELECT id, coalesce(user_id, '') AS user FROM sessions WHERE {conditions}"
        " ORDER BY started_at DESC, rowid DESC",
        parameters,
    )
    if len({row["user"] for row in found}) > 1:
        found = [row for row in found if user_id and row["user"] == user_id]
    return str(found[0]["id"]) if found else None


def find_latest_gateway_session_for_peer(
    writer: Writer,
    *,
    source: str,
    user_id: str | None = None,
    session_key: str | None = None,
    chat_id: str | None = None,
    chat_type: str | None = None,
    thread_id: str | None = None,
) -> dict[str, Any] | None:
    """The session to go on with when a peer writes again: all its columns, None if a new one is due.

    It is the newest with messages that is live or only lost its client, of this source and session
    key; else, of the same user in the same chat, kind of chat and thread. Without a session key
    there is none.
    """
    if not session_key or not writer.shape.has("sessions", "session_key"):
        return None
    with writer.lock:
        row = _latest(writer, "s.source = ? AND s.session_key = ?", [source, session_key])
        if row is None and user_id and chat_id and chat_type:
            row = _latest(
                writer,
                "s.source = ? AND s.user_id = ? AND s.chat_id = ? AND s.chat_type = ?"
                " AND coalesce(s.thread_id, '') = ?",
                [source, user_id, chat_id, chat_type, thread_id or ""],
            )
    return None if row is None else dict(row)


def _latest(writer: Writer, condition: str, parameters: list[object]) -> Row | None:
    marks = ", ".join("?" * len(LOST_CLIENT))
    return writer.row(
        f"SELECT {select_columns(writer.shape, 's')} FROM sessions AS s WHERE {condition}"
        f" AND (s.ended_at IS NULL OR s.end_reason IN ({marks}))"
        " AND EXISTS (SELECT 1 FROM messages AS m WHERE m.session_id = s.id)"
        " ORDER BY s.started_at DESC, s.rowid DESC LIMIT 1",
        (*parameters, *LOST_CLIENT),
    )
