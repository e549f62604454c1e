"""Telegram topics: threads of a private chat, each bound to a session of its own.

Source: session-db, section 13; store-format, section 1.4. The two tables are no part of schema 23:
they are made when a chat first uses topics, and a store without them answers as one without topics.
"""

from __future__ import annotations

import time
from typing import Any

from state_ledger.ledger.columns import column
from state_ledger.sessions import previews, select_columns
from state_ledger.sqlite import Connection
from state_ledger.writing import meta
from state_ledger.writing.writer import Writer

VERSION_KEY, VERSION = "telegram_dm_topic_schema_version", "2"

_MODE, _BINDINGS = "telegram_dm_topic_mode", "telegram_dm_topic_bindings"

_TABLES = (
    f"CREATE TABLE IF NOT EXISTS {_MODE} (\n"
    "    chat_id TEXT PRIMARY KEY,\n    user_id TEXT NOT NULL,\n    enabled INTEGER NOT NULL DEFAULT 1,\n"
    "    activated_at REAL NOT NULL,\n    updated_at REAL NOT NULL,\n    has_topics_enabled INTEGER,\n"
    "    allows_users_to_create_topics INTEGER,\n    capability_checked_at REAL,\n    intro_message_id TEXT,\n"
    "    pinned_message_id TEXT\n)",
    f"CREATE TABLE IF NOT EXISTS {_BINDINGS} (\n"
    "    chat_id TEXT NOT NULL,\n    thread_id TEXT NOT NULL,\n    user_id TEXT NOT NULL,\n"
    "    session_key TEXT NOT NULL,\n    session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,\n"
    "    managed_mode TEXT NOT NULL DEFAULT 'auto',\n    linked_at REAL NOT NULL,\n    updated_at REAL NOT NULL,\n"
    "    PRIMARY KEY (chat_id, thread_id)\n)",
)
_INDEXES = (
    f"CREATE UNIQUE INDEX IF NOT EXISTS idx_{_BINDINGS}_session ON {_BINDINGS}(session_id)",
    f"CREATE INDEX IF NOT EXISTS idx_{_BINDINGS}_user ON {_BINDINGS}(user_id, chat_id)",
)


def apply_telegram_topic_migration(writer: Writer) -> None:
    """Makes the tables of topics where they are missing; a chat that turns topics on does so by itself."""
    writer.write(lambda connection: _make_tables(writer, connection))
    writer.renew_shape()


def enable_telegram_topic_mode(
    writer: Writer,
    *,
    chat_id: str,
    user_id: str,
    has_topics_enabled: bool | None = None,
    allows_users_to_create_topics: bool | None = None,
) -> None:
    """Turns topics on for a chat. The two flags are what the platform says of the chat, None if unknown."""
    now = time.time()
    flags = [None if flag is None else int(flag) for flag in (has_topics_enabled, allows_users_to_create_topics)]

    def work(connection: Connection) -> None:
        _make_tables(writer, connection)
        connection.execute(
            f"INSERT INTO {_MODE} (chat_id, user_id, enabled, activated_at, updated_at, has_topics_enabled,"
            " allows_users_to_create_topics, capability_checked_at) VALUES (?, ?, 1, ?, ?, ?, ?, ?)"
            " ON CONFLICT (chat_id) DO UPDATE SET user_id = excluded.user_id, enabled = 1,"
            " updated_at = excluded.updated_at, has_topics_enabled = excluded.has_topics_enabled,"
            " allows_users_to_create_topics = excluded.allows_users_to_create_topics,"
            " capability_checked_at = excluded.capability_checked_at",
            (str(chat_id), str(user_id), now, now, *flags, now),
        )

    writer.write(work)


def disable_telegram_topic_mode(writer: Writer, *, chat_id: str, clear_bindings: bool = True) -> None:
    """Turns topics off for a chat; clear_bindings: its topics forget their sessions."""
    if not _has(writer, _MODE):
        return

    def work(connection: Connection) -> None:
        connection.execute(
            f"UPDATE {_MODE} SET enabled = 0, updated_at = ? WHERE chat_id = ?", (time.time(), str(chat_id))
        )
        if clear_bindings:
            connection.execute(f"DELETE FROM {_BINDINGS} WHERE chat_id = ?", (str(chat_id),))

    writer.write(work)


def is_telegram_topic_mode_enabled(writer: Writer, *, chat_id: str, user_id: str) -> bool:
    """Whether topics are on for a chat with this user."""
    return _has(writer, _MODE) and bool(
        writer.value(
            f"SELECT 1 FROM {_MODE} WHERE chat_id = ? AND user_id = ? AND enabled <> 0", (str(chat_id), str(user_id))
        )
    )


def bind_telegram_topic(
    writer: Writer,
    *,
    chat_id: str,
    thread_id: str,
    user_id: str,
    session_key: str,
    session_id: str,
    managed_mode: str = "auto",
) -> None:
    """Binds a topic to a session, in place of the one it had.

    managed_mode: how the binding came about, the gateway's own word.
    Raises ValueError if another topic has the session, sqlite3.IntegrityError for an unknown session.
    """
    now = time.time()
    place = (str(chat_id), str(thread_id))

    def work(connection: Connection) -> None:
        _make_tables(writer, connection)
        elsewhere = connection.execute(
            f"SELECT thread_id FROM {_BINDINGS} WHERE session_id = ? AND NOT (chat_id = ? AND thread_id = ?)",
            (session_id, *place),
        ).fetchone()
        if elsewhere is not None:
            raise ValueError(f"Session {session_id} is already linked to another Telegram topic ({elsewhere[0]}).")
        connection.execute(
            f"INSERT INTO {_BINDINGS} (chat_id, thread_id, user_id, session_key, session_id, managed_mode,"
            " linked_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (chat_id, thread_id) DO UPDATE SET user_id = excluded.user_id,"
            " session_key = excluded.session_key, session_id = excluded.session_id,"
            " managed_mode = excluded.managed_mode, updated_at = excluded.updated_at",
            (*place, str(user_id), session_key, session_id, managed_mode, now, now),
        )

    writer.write(work)


def delete_telegram_topic_binding(writer: Writer, *, chat_id: str, thread_id: str) -> int:
    """Frees a topic of its session; returns how many bindings there were, 0 or 1."""
    if not _has(writer, _BINDINGS):
        return 0
    return writer.write(
        lambda connection: (
            connection.execute(
                f"DELETE FROM {_BINDINGS} WHERE chat_id = ? AND thread_id = ?", (str(chat_id), str(thread_id))
            ).rowcount
        )
    )


def get_telegram_topic_binding(writer: Writer, *, chat_id: str, thread_id: str) -> dict[str, Any] | None:
    """What a topic is bound to: all columns, None if it is free."""
    return _first(writer, "chat_id = ? AND thread_id = ?", str(chat_id), str(thread_id))


def get_telegram_topic_binding_by_session(writer: Writer, *, session_id: str) -> dict[str, Any] | None:
    """The binding of a session, None if no topic has it."""
    return _first(writer, "session_id = ?", session_id)


def is_telegram_session_linked_to_topic(writer: Writer, *, session_id: str) -> bool:
    """Whether a topic has this session."""
    return get_telegram_topic_binding_by_session(writer, session_id=session_id) is not None


def list_telegram_topic_bindings_for_chat(writer: Writer, *, chat_id: str) -> list[dict[str, Any]]:
    """The bindings of a chat, the last changed first."""
    return _bindings(writer, "chat_id = ?", str(chat_id))


def list_unlinked_telegram_sessions_for_user(
    writer: Writer, *, chat_id: str, user_id: str, limit: int = 10
) -> list[dict[str, Any]]:
    """The user's Telegram sessions that no topic has, most recently active first.

    All columns, `last_active` (the newest message, else the start, epoch seconds) and `preview`.
    chat_id: the chat that asks; sessions of all the user's chats are listed, as a topic may take any.
    """
    shape = writer.shape
    free = f"NOT EXISTS (SELECT 1 FROM {_BINDINGS} AS b WHERE b.session_id = s.id)" if _has(writer, _BINDINGS) else "1"
    rows = writer.rows(
        f"SELECT {select_columns(shape, 's')}, coalesce((SELECT max(m.timestamp) FROM messages AS m"
        " WHERE m.session_id = s.id), s.started_at) AS last_active FROM sessions AS s"
        f" WHERE s.source = 'telegram' AND {column(shape, 'sessions', 'user_id', 's')} = ? AND {free}"
        " ORDER BY last_active DESC, s.started_at DESC, s.rowid DESC LIMIT ?",
        (str(user_id), limit),
    )
    words = previews.first_words(writer, [row["id"] for row in rows]) if rows else {}
    return [{**dict(row), "preview": words.get(row["id"], "")} for row in rows]


def _make_tables(writer: Writer, connection: Connection) -> None:
    old = f"{_BINDINGS}_v1"
    links = connection.execute(f"PRAGMA foreign_key_list({_BINDINGS})").fetchall()
    if any(link["on_delete"] != "CASCADE" for link in links):
        # Version 1 kept a session from being deleted; what it says of deleted ones has no meaning.
        connection.execute(f"ALTER TABLE {_BINDINGS} RENAME TO {old}")
    for sql in _TABLES:
        connection.execute(sql)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (old,)).fetchone():
        columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({old})"))
        connection.execute(
            f"INSERT OR IGNORE INTO {_BINDINGS} ({columns}) SELECT {columns} FROM {old}"
            " WHERE session_id IN (SELECT id FROM sessions)"
        )
        connection.execute(f"DROP TABLE {old}")
    for sql in _INDEXES:
        connection.execute(sql)
    if meta.get_meta(writer, VERSION_KEY) != VERSION:
        meta.set_meta(writer, VERSION_KEY, VERSION)


def _has(writer: Writer, table: str) -> bool:
    return writer.value("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)) is not None


def _first(writer: Writer, condition: str, *parameters: object) -> dict[str, Any] | None:
    found = _bindings(writer, condition, *parameters)
    return found[0] if found else None


def _bindings(writer: Writer, condition: str, *parameters: object) -> list[dict[str, Any]]:
    if not _has(writer, _BINDINGS):
        return []
    sql = f"SELECT * FROM {_BINDINGS} WHERE {condition} ORDER BY updated_at DESC, thread_id"
    return [dict(row) for row in writer.rows(sql, parameters)]
