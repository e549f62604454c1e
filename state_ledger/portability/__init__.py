"""Sessions taken out of a store and put into another.

Source: session-db, section 9; case 16 (round trips keep the stored bytes); bug log 104 and 108.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from state_ledger.messages import rows as message_rows
from state_ledger.messages.rows import LIVE, decoded, decoders
from state_ledger.portability.imports import import_sessions
from state_ledger.schema import declared_columns
from state_ledger.sessions import conversations
from state_ledger.sqlite import Row
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer

__all__ = [
    "export_all", "export_session", "export_session_lineage", "import_sessions", "iterate_messages",
    "iterate_sessions",
]  # fmt: skip

Session = dict[str, Any]

_PAGE = 200  # messages read at a time

_SESSION_COLUMNS = declared_columns("sessions")
_USAGE_COLUMNS = declared_columns("session_model_usage")[1:]


def export_session(writer: Writer, session_id: str) -> Session | None:
    """A session as a dict that `import_sessions` takes; None if there is none of this id.

    All 48 columns of the session, and `messages` as from `get_messages` (live ones only). A message
    has a further key `stored` if one of its values would be written in other bytes than it is stored
    in: `{column: stored text}`. A session with accounted calls has `usage`: its rows of
    `session_model_usage`, without the session's id.
    """
    session_id = scrub(session_id)
    with _one_moment(writer):
        row = writer.row(f"SELECT {_session_columns(writer)} FROM sessions WHERE id = ?", (session_id,))
        return None if row is None else _exported(writer, dict(row))


def export_all(writer: Writer, source: str | None = None) -> list[Session]:
    """`export_session` of every session, or of those of one source, the last active first.

    Each has `last_active` too: the time of its newest message, else its start. The whole lot is in
    memory at once; `iterate_sessions` yields the same one by one.
    """
    return list(iterate_sessions(writer, source))


def iterate_sessions(writer: Writer, source: str | None = None) -> Iterator[Session]:
    """The sessions of `export_all`, one in memory at a time.

    The order is that of the beginning; a session deleted meanwhile is left out.
    """
    last_active = (
        "COALESCE((SELECT max(timestamp) FROM messages WHERE session_id = sessions.id), started_at) AS last_active"
    )
    where = "" if source is None else " WHERE source = :source"
    ids = writer.rows(
        f"SELECT id, {last_active} FROM sessions{where} ORDER BY last_active DESC, started_at DESC, id DESC",
        {} if source is None else {"source": scrub(source)},
    )
    select = f"SELECT {_session_columns(writer)}, {last_active} FROM sessions WHERE id = ?"
    for session_id, _ in ids:
        with _one_moment(writer):
            row = writer.row(select, (session_id,))
            session = None if row is None else _exported(writer, dict(row))
        if session is not None:
            yield session


def export_session_lineage(writer: Writer, session_id: str) -> Session | None:
    """A conversation over all its segments, or None if there is no session of this id.

    The columns of the last segment, with `segments` (each as from `export_session`, the first one
    first), `lineage_session_ids`, the sum of `message_count`, and the `messages` of all segments.
    """
    with _one_moment(writer):
        found = (export_session(writer, link) for link in conversations.get_compression_lineage(writer, session_id))
        segments = [segment for segment in found if segment is not None]
    if not segments:
        return None
    return {
        **{name: value for name, value in segments[-1].items() if name != "usage"},
        "message_count": sum(segment["message_count"] or 0 for segment in segments),
        "segments": segments,
        "lineage_session_ids": [segment["id"] for segment in segments],
        "messages": [message for segment in segments for message in segment["messages"]],
    }


def iterate_messages(writer: Writer, session_id: str, include_inactive: bool = False) -> Iterator[dict[str, Any]]:
    """The messages of a session as in an export, a page in memory at a time however many there are.

    Messages stored after the beginning are left out.
    """
    live = writer.shape.tables["messages"]
    condition = "" if include_inactive or "active" not in live else f" AND {LIVE}"
    ids = [
        row[0]
        for row in writer.rows(
            f"SELECT id FROM messages WHERE session_id = ?{condition} ORDER BY id", (scrub(session_id),)
        )
    ]
    page = (
        f"SELECT {message_rows.select_list(live)} FROM messages"
        f" WHERE id IN (SELECT value FROM json_each(?)){condition} ORDER BY id"
    )
    for start in range(0, len(ids), _PAGE):
        for row in writer.rows(page, (json.dumps(ids[start : start + _PAGE]),)):
            yield _message(row)


def _exported(writer: Writer, session: Session) -> Session:
    session["messages"] = list(iterate_messages(writer, session["id"]))
    usage = _usage(writer, session["id"])
    if usage:
        session["usage"] = usage
    return session


def _message(row: Row) -> dict[str, Any]:
    message = decoded(row)
    stored = {
        name: row[name]
        for name in decoders
        if isinstance(row[name], str) and not isinstance(message[name], str) and not _same_bytes(message, row, name)
    }
    if stored:
        message["stored"] = stored
    return message


def _same_bytes(message: dict[str, Any], row: Row, name: str) -> bool:
    """Whether writing the value again stores the text that is there now."""
    again = message_rows.entry("user", **{name: message[name]})
    return bool(again.values[message_rows.WRITTEN.index(name)] == row[name])


def _usage(writer: Writer, session_id: str) -> list[dict[str, Any]]:
    live = _live_columns(writer, "session_model_usage")
    if not live:
        return []
    names = [name for name in _USAGE_COLUMNS if name in live]
    rows = writer.rows(
        f"SELECT {', '.join(names)} FROM session_model_usage WHERE session_id = ? ORDER BY rowid", (session_id,)
    )
    return [dict(row) for row in rows]


def _session_columns(writer: Writer) -> str:
    live = _live_columns(writer, "sessions")
    return ", ".join(name if name in live else f"NULL AS {name}" for name in _SESSION_COLUMNS)


def _live_columns(writer: Writer, table: str) -> tuple[str, ...]:
    return writer.shape.tables.get(table, ())


@contextmanager
def _one_moment(writer: Writer) -> Iterator[None]:
    """Reads within see the store at one moment, whatever other programs write meanwhile."""
    with writer.lock:
        if writer.connection.in_transaction:
            yield
            return
        writer.connection.execute("BEGIN")
        try:
            yield
        finally:
            writer.connection.execute("COMMIT")
