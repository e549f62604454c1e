"""Rewriting the messages of a session: replacing, compacting, taking back, clearing.

Source: session-db, section 4; accounting, rule 15 (live, summarised away, taken back).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from state_ledger import content as contents
from state_ledger.errors import CompressionSessionClosedError
from state_ledger.messages import rows as message_rows
from state_ledger.messages import unknown_session
from state_ledger.messages.rows import LIVE, Entry
from state_ledger.sqlite import Connection
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer

_CLOSED = "SELECT 1 FROM sessions WHERE id = ? AND ended_at IS NOT NULL AND end_reason = 'compression'"


def replace_messages(
    writer: Writer, session_id: str, messages: Iterable[Mapping[str, Any]], active_only: bool = False
) -> None:
    """Puts these messages in the place of all messages of a session, in one transaction.

    messages: mappings with the names of `append_message`, `message_id` for `platform_message_id` too;
        other names are left out. Fields of reasoning are kept for the assistant only; a message
        without a valid timestamp gets the present, rising by a microsecond; one without a role is
        `unknown`.
    active_only: replaces the live messages alone; what was summarised away or taken back stays.
    `message_count` and `tool_call_count` are those of the new messages afterwards.

    Raises CompressionSessionClosedError for a session that was ended by compression,
    sqlite3.IntegrityError for an unknown session (unless there is nothing to store), TypeError for a
    message that is no mapping; then nothing is changed.
    """
    ready = list(message_rows.entries(messages))
    session_id = scrub(session_id)

    def work(connection: Connection) -> None:
        if connection.execute(_CLOSED, (session_id,)).fetchone():
            raise CompressionSessionClosedError(session_id)
        connection.execute(
            f"DELETE FROM messages WHERE session_id = ?{f' AND {LIVE}' if active_only else ''}", (session_id,)
        )
        _store(connection, session_id, ready)

    writer.write(work)


def archive_and_compact(writer: Writer, session_id: str, compacted_messages: Iterable[Mapping[str, Any]]) -> int:
    """Marks the live messages as summarised away and stores what stands for them; returns how many were marked.

    The marked messages stay in the record and in search. `message_count` and `tool_call_count` are
    those of the new messages afterwards. Messages are taken as by `replace_messages`.
    Raises sqlite3.IntegrityError for an unknown session, unless there is nothing to store.
    """
    ready = list(message_rows.entries(compacted_messages))
    session_id = scrub(session_id)

    def work(connection: Connection) -> int:
        marked = connection.execute(
            f"UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND {LIVE}", (session_id,)
        ).rowcount
        _store(connection, session_id, ready)
        return marked

    return writer.write(work)


def rewind_to_message(writer: Writer, session_id: str, target_message_id: int) -> dict[str, Any]:
    """Takes back a message of the user and everything after it.

    Taken-back messages stay in the file, hidden from transcripts and search, and `message_count` does
    not go down; `rewind_count` goes up by one, also when nothing was left to take back.
    Returns `{"rewound_count", "target_message", "new_head_id"}`: how many live messages were taken
    back, the target as it was before, and the id of the last live message (None if there is none).
    Raises ValueError if the target is not a message of the user in this session.
    """
    session_id = scrub(session_id)
    selected = message_rows.select_list(message_rows.COLUMNS)

    def work(connection: Connection) -> dict[str, Any]:
        row = connection.execute(
            f"SELECT {selected} FROM messages WHERE session_id = ? AND id = ?", (session_id, target_message_id)
        ).fetchone()
        if row is None:
            raise ValueError(f"Session {session_id} has no message {target_message_id}.")
        target = message_rows.decoded(row)
        if target["role"] != "user":
            raise ValueError(
                f"Message {target_message_id} is of the role {target['role']}; "
                "a session is rewound to a message of the user."
            )
        taken_back = connection.execute(
            f"UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ? AND {LIVE}",
            (session_id, target_message_id),
        ).rowcount
        connection.execute(
            "UPDATE sessions SET rewind_count = COALESCE(rewind_count, 0) + 1 WHERE id = ?", (session_id,)
        )
        head = connection.execute(f"SELECT max(id) FROM messages WHERE session_id = ? AND {LIVE}", (session_id,))
        return {"rewound_count": taken_back, "target_message": target, "new_head_id": head.fetchone()[0]}

    return writer.write(work)


def restore_rewound(writer: Writer, session_id: str, since_message_id: int) -> int:
    """Makes every inactive message from this id on live again, compacted ones too; returns how many."""
    session_id = scrub(session_id)

    def work(connection: Connection) -> int:
        return connection.execute(
            "UPDATE messages SET active = 1, compacted = 0 WHERE session_id = ? AND id >= ? AND active = 0",
            (session_id, since_message_id),
        ).rowcount

    return writer.write(work)


def clear_messages(writer: Writer, session_id: str) -> None:
    """Deletes all messages of a session and zeroes its counts of them; title, tokens and usage stay.

    Neither a compression lock nor the end of the session stands in the way.
    """
    session_id = scrub(session_id)

    def work(connection: Connection) -> None:
        connection.execute("DELETE FROM messages WHERE session_id = ?", (session_id,))
        _store(connection, session_id, ())

    writer.write(work)


def set_latest_user_api_content(writer: Writer, session_id: str, content: Any, api_content: str | None) -> int:
    """Notes the exact text that was sent for the newest live message of the user; returns 1 if it was noted.

    Nothing is noted (0) if that message does not have this content: it is another message then.
    """
    session_id, stored = scrub(session_id), contents.encode(content)
    sent = scrub(api_content) if isinstance(api_content, str) else None

    def work(connection: Connection) -> int:
        return connection.execute(
            "UPDATE messages SET api_content = ? WHERE content IS ? AND id ="
            f" (SELECT max(id) FROM messages WHERE session_id = ? AND role = 'user' AND {LIVE})",
            (sent, str(stored) if isinstance(stored, (int, float)) else stored, session_id),
        ).rowcount

    return writer.write(work)


def set_latest_matching_message_display_kind(
    writer: Writer,
    session_id: str,
    *,
    role: str,
    content: Any,
    display_kind: str | None,
    display_metadata: Mapping[str, Any] | str | None = None,
) -> bool:
    """Says how the newest live message of a role with this content is to be shown; False if there is none.

    display_metadata: an object, or its JSON text; takes the place of what was there, None too.
    """
    session_id = scrub(session_id)
    values = message_rows.entry(role, content, display_kind=display_kind, display_metadata=display_metadata).values
    of = dict(zip(message_rows.WRITTEN, values, strict=True))
    stored = of["content"]

    def work(connection: Connection) -> bool:
        return connection.execute(
            "UPDATE messages SET display_kind = ?, display_metadata = ? WHERE id ="
            f" (SELECT max(id) FROM messages WHERE session_id = ? AND role = ? AND content IS ? AND {LIVE})",
            (
                of["display_kind"], of["display_metadata"], session_id, of["role"],
                str(stored) if isinstance(stored, (int, float)) else stored,
            ),
        ).rowcount > 0  # fmt: skip

    return writer.write(work)


def _store(connection: Connection, session_id: str, ready: Iterable[Entry]) -> None:
    """Stores messages as the live ones of a session and counts them into its row."""
    found = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if found is None and ready:
        raise unknown_session(session_id)
    ids, calls = message_rows.insert(connection, session_id, ready)
    connection.execute(
        "UPDATE sessions SET message_count = ?, tool_call_count = ? WHERE id = ?", (len(ids), calls, session_id)
    )
