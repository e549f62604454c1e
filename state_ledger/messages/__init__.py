"""Messages of a session: appending them, and reading them as rows.

Source: session-db, section 4. The first parameter of each function is the open store; the others,
results and edges are those of the method of the same name of `SessionDB`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from state_ledger import content as contents
from state_ledger.errors import CompressionSessionBusyError, CompressionSessionClosedError
from state_ledger.messages import rows as message_rows
from state_ledger.messages.rows import LIVE
from state_ledger.messages.windows import get_anchored_view, get_messages_around
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.surrogates import scrub
from state_ledger.writing.writer import Writer

__all__ = [
    "append_message", "append_messages", "get_anchored_view", "get_first_assistant_text", "get_messages",
    "get_messages_around", "has_archived_messages", "has_platform_message_id", "list_recent_user_messages",
    "message_count",
]  # fmt: skip

PREVIEW_CHARACTERS = 80
"""How long the preview of a message may be; a longer one ends in `...`."""

_STATE = (
    "SELECT ended_at IS NOT NULL AND end_reason IS 'compression',"
    " (SELECT holder FROM compression_locks WHERE session_id = sessions.id AND expires_at > ?)"
    " FROM sessions WHERE id = ?"
)
_COUNT = (
    "UPDATE sessions SET message_count = COALESCE(message_count, 0) + ?,"
    " tool_call_count = COALESCE(tool_call_count, 0) + ? WHERE id = ?"
)


def append_message(
    writer: Writer,
    session_id: str,
    role: str,
    content: Any = None,
    tool_name: str | None = None,
    tool_calls: Any = None,
    tool_call_id: str | None = None,
    token_count: int | None = None,
    finish_reason: str | None = None,
    reasoning: str | None = None,
    reasoning_content: str | None = None,
    reasoning_details: Any = None,
    codex_reasoning_items: Any = None,
    codex_message_items: Any = None,
    platform_message_id: str | None = None,
    observed: bool = False,
    effect_disposition: str | None = None,
    timestamp: Any = None,
    api_content: str | None = None,
    display_kind: str | None = None,
    display_metadata: Mapping[str, Any] | str | None = None,
    compression_lock_holder: str | None = None,
) -> int:
    """Stores one message at the end of a session; returns its row id.

    content: text, or a list or dict (stored as JSON), bytes, a number, None; what JSON cannot say is
        stored as its `str()`. Lone surrogates become U+FFFD.
    tool_calls: a list of calls, or its JSON text; the session's `tool_call_count` grows by its length.
    reasoning_details, codex_reasoning_items, codex_message_items: values, or the JSON text of an
        object or list, which is stored as it is.
    timestamp: epoch seconds, or what has `.timestamp()`; now if it is no time.
    token_count: kept with the message only; `update_token_counts` counts.
    compression_lock_holder: who the caller is, if it may hold the session's compression lock.

    Raises CompressionSessionBusyError while somebody else compresses the session,
    CompressionSessionClosedError if it was ended by compression, sqlite3.IntegrityError for an unknown
    session, StoreBusyError when the store stays locked, TypeError for a text field that is no text.
    """
    values, calls = message_rows.entry(
        role, content, tool_name, tool_calls, tool_call_id, token_count, finish_reason, reasoning, reasoning_content,
        reasoning_details, codex_reasoning_items, codex_message_items, platform_message_id, observed,
        effect_disposition, timestamp, api_content, display_kind, display_metadata,
    )  # fmt: skip
    session_id = scrub(session_id)

    def work(connection: Connection) -> int:
        refuse_append(connection, session_id, compression_lock_holder)
        row_id = message_rows.insert_one(connection, session_id, values)
        connection.execute(_COUNT, (1, calls, session_id))
        return row_id

    return writer.write(work)


def append_messages(
    writer: Writer,
    session_id: str,
    messages: Iterable[Mapping[str, Any]],
    compression_lock_holder: str | None = None,
) -> list[int]:
    """Stores the messages of a whole turn in one transaction, all or none; returns their row ids in order.

    messages: mappings with the names and values of `append_message`, `role` at least; also rows of
    `get_messages`, which become new, live rows. Messages without a timestamp get times that rise by a
    microsecond. Of an empty turn nothing is written.

    Raises what `append_message` raises, and TypeError for a message with a name that cannot be stored.
    """
    turn = list(message_rows.entries(messages, strict=True))
    session_id = scrub(session_id)

    def work(connection: Connection) -> list[int]:
        refuse_append(connection, session_id, compression_lock_holder)
        ids, calls = message_rows.insert(connection, session_id, turn)
        connection.execute(_COUNT, (len(ids), calls, session_id))
        return ids

    return writer.write(work) if turn else []


def refuse_append(connection: Connection, session_id: str, holder: str | None = None) -> None:
    """Raises what `append_message` raises for a session to which nothing may be added.

    Belongs into the transaction that adds, or the answer may be out of date.
    """
    state = connection.execute(_STATE, (time.time(), session_id)).fetchone()
    if state is None:
        raise unknown_session(session_id)
    closed, locked_by = state
    if locked_by is not None and locked_by != holder:
        raise CompressionSessionBusyError(session_id, locked_by)
    if closed:
        raise CompressionSessionClosedError(session_id)


def unknown_session(session_id: str) -> sqlite3.IntegrityError:
    """The error for a message of a session that is not there, also in files without foreign keys."""
    return sqlite3.IntegrityError(f"FOREIGN KEY constraint failed: there is no session {session_id!r}.")


def get_messages(
    writer: Writer,
    session_id: str,
    include_inactive: bool = False,
    limit: int | None = None,
    offset: int = 0,
) -> list[dict[str, Any]]:
    """The messages of a session in the order they were stored: dicts of all 23 columns.

    `content`, `tool_calls` and `display_metadata` are decoded (tool calls that are not JSON are `[]`);
    `reasoning_details`, `codex_reasoning_items` and `codex_message_items` stay JSON text. A column
    that the file lacks is None. include_inactive: also what was summarised away or taken back.
    limit, offset: which part; without a limit, or with a negative one, all from the offset on.
    """
    live = writer.shape.tables["messages"]
    condition = "" if include_inactive or "active" not in live else f" AND {LIVE}"
    sql = f"SELECT {message_rows.select_list(live)} FROM messages WHERE session_id = ?{condition} ORDER BY id"
    parameters: list[object] = [scrub(session_id)]
    if limit is not None or offset:
        sql += " LIMIT ? OFFSET ?"
        parameters += [-1 if limit is None else limit, offset]
    return [message_rows.decoded(row) for row in writer.rows(sql, parameters)]


def message_count(writer: Writer, session_id: str | None = None) -> int:
    """How many messages are stored, of one session or of all; inactive ones count."""
    if session_id is None:
        return int(writer.value("SELECT count(*) FROM messages"))
    return int(writer.value("SELECT count(*) FROM messages WHERE session_id = ?", (scrub(session_id),)))


def get_first_assistant_text(writer: Writer, session_id: str) -> str:
    """The first text that the assistant said in a session; `""` if there is none or it is no text."""
    stored = writer.value(
        "SELECT content FROM messages WHERE session_id = ? AND role = 'assistant'"
        f" AND content IS NOT NULL AND content <> '' {_and_live(writer)} ORDER BY id LIMIT 1",
        (scrub(session_id),),
    )
    text = contents.restore(stored)
    return text if isinstance(text, str) else ""


def list_recent_user_messages(
    writer: Writer, session_id: str, limit: int = 20, include_inactive: bool = False
) -> list[dict[str, Any]]:
    """The last messages of the user, newest first: `{"id", "timestamp", "preview"}`.

    preview: the text on one line, cut to 77 characters and `...` where it has more than 80; of
    structured content its text parts, or `[multimodal content]`.
    """
    rows = writer.rows(
        "SELECT id, timestamp, content FROM messages WHERE session_id = ? AND role = 'user'"
        f" {'' if include_inactive else _and_live(writer)} ORDER BY id DESC LIMIT ?",
        (scrub(session_id), limit),
    )
    return [{"id": row[0], "timestamp": row[1], "preview": preview(contents.restore(row[2]))} for row in rows]


def preview(content: Any) -> str:
    """One line of a message's content, as `list_recent_user_messages` shows it."""
    if isinstance(content, (list, dict)):
        parts = content if isinstance(content, list) else [content]
        texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
        content = " ".join(texts) or "[multimodal content]"
    line = " ".join(content.split()) if isinstance(content, str) else ""
    return line if len(line) <= PREVIEW_CHARACTERS else line[: PREVIEW_CHARACTERS - 3] + "..."


def has_platform_message_id(writer: Writer, session_id: str, platform_message_id: str) -> bool:
    """Whether a message of the chat system with this id is stored in the session."""
    if not platform_message_id or "platform_message_id" not in writer.shape.tables["messages"]:
        return False
    parameters: Sequence[object] = (scrub(session_id), scrub(str(platform_message_id)))
    return bool(
        writer.value("SELECT 1 FROM messages WHERE session_id = ? AND platform_message_id = ? LIMIT 1", parameters)
    )


def has_archived_messages(writer: Writer, session_id: str) -> bool:
    """Whether the session has messages that were summarised away or taken back."""
    if "active" not in writer.shape.tables["messages"]:
        return False
    return bool(
        writer.value("SELECT 1 FROM messages WHERE session_id = ? AND active = 0 LIMIT 1", (scrub(session_id),))
    )


def _and_live(writer: Writer) -> str:
    return f"AND {LIVE}" if "active" in writer.shape.tables["messages"] else ""
