"""Telegram topics: tables that a store gets when a chat first uses them, and what they bind."""

from __future__ import annotations

from typing import Any

import pytest

from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3

TOPIC: dict[str, Any] = {"chat_id": "c", "thread_id": "7", "user_id": "u", "session_key": "k"}


def tables(db: SessionDB) -> list[str]:
    return [row[0] for row in db._conn.execute("SELECT name FROM sqlite_master WHERE name LIKE 'telegram%'")]


@pytest.fixture
def chat(db: SessionDB) -> SessionDB:
    for id in ("one", "two"):
        db.create_session(id, "telegram", user_id="u", chat_id="c")
    return db


def test_a_store_without_the_tables_answers_as_one_without_topics(chat: SessionDB) -> None:
    assert not chat.is_telegram_topic_mode_enabled(chat_id="c", user_id="u")
    assert chat.list_telegram_topic_bindings_for_chat(chat_id="c") == []
    assert chat.get_telegram_topic_binding(chat_id="c", thread_id="7") is None
    assert not chat.is_telegram_session_linked_to_topic(session_id="one")
    assert chat.delete_telegram_topic_binding(chat_id="c", thread_id="7") == 0
    chat.disable_telegram_topic_mode(chat_id="c")
    assert [row["id"] for row in chat.list_unlinked_telegram_sessions_for_user(chat_id="c", user_id="u")] == [
        "two", "one",
    ]  # fmt: skip
    assert tables(chat) == []
    chat.apply_telegram_topic_migration()
    assert sorted(tables(chat)) == ["telegram_dm_topic_bindings", "telegram_dm_topic_mode"]
    assert chat.get_meta("telegram_dm_topic_schema_version") == "2"
    chat.apply_telegram_topic_migration()


def test_topics_are_turned_on_and_off(chat: SessionDB) -> None:
    chat.enable_telegram_topic_mode(chat_id="c", user_id="u")
    chat.enable_telegram_topic_mode(
        chat_id="c", user_id="u", has_topics_enabled=True, allows_users_to_create_topics=False
    )
    mode = dict(chat._conn.execute("SELECT * FROM telegram_dm_topic_mode").fetchone())
    assert (mode["enabled"], mode["has_topics_enabled"], mode["allows_users_to_create_topics"]) == (1, 1, 0)
    assert mode["activated_at"] < mode["updated_at"] == mode["capability_checked_at"]
    assert chat.is_telegram_topic_mode_enabled(chat_id="c", user_id="u")
    assert not chat.is_telegram_topic_mode_enabled(chat_id="c", user_id="v")
    chat.bind_telegram_topic(session_id="one", **TOPIC)
    chat.disable_telegram_topic_mode(chat_id="c", clear_bindings=False)
    assert not chat.is_telegram_topic_mode_enabled(chat_id="c", user_id="u")
    assert len(chat.list_telegram_topic_bindings_for_chat(chat_id="c")) == 1
    chat.disable_telegram_topic_mode(chat_id="c")
    assert chat.list_telegram_topic_bindings_for_chat(chat_id="c") == []


def test_a_topic_has_one_session_and_a_session_one_topic(chat: SessionDB) -> None:
    chat.bind_telegram_topic(session_id="one", **TOPIC)
    first = chat.get_telegram_topic_binding(chat_id="c", thread_id="7")
    assert first == chat.get_telegram_topic_binding_by_session(session_id="one")
    assert first is not None and (first["managed_mode"], first["session_key"]) == ("auto", "k")
    with pytest.raises(ValueError, match="already linked"):
        chat.bind_telegram_topic(session_id="one", **{**TOPIC, "thread_id": "8"})
    with pytest.raises(sqlite3.IntegrityError):
        chat.bind_telegram_topic(session_id="none", **{**TOPIC, "thread_id": "8"})
    chat.bind_telegram_topic(session_id="two", managed_mode="restored", **TOPIC)
    second = chat.get_telegram_topic_binding(chat_id="c", thread_id="7")
    assert second is not None and (second["session_id"], second["managed_mode"]) == ("two", "restored")
    assert second["linked_at"] == first["linked_at"] < second["updated_at"]
    listed = chat.list_unlinked_telegram_sessions_for_user(chat_id="c", user_id="u")
    assert [row["id"] for row in listed] == ["one"]
    assert chat.delete_telegram_topic_binding(chat_id="c", thread_id="7") == 1


def test_a_binding_goes_with_its_session(chat: SessionDB) -> None:
    chat.bind_telegram_topic(session_id="one", **TOPIC)
    assert chat.delete_session("one")
    assert chat.list_telegram_topic_bindings_for_chat(chat_id="c") == []


def test_free_sessions_come_with_their_first_words_most_recent_first(chat: SessionDB) -> None:
    chat.append_message("one", "user", "The tide tables, please", timestamp=4e9)
    chat.create_session("foreign", "telegram", user_id="v")
    listed = chat.list_unlinked_telegram_sessions_for_user(chat_id="c", user_id="u")
    assert [(row["id"], row["preview"]) for row in listed] == [("one", "The tide tables, please"), ("two", "")]
    assert listed[0]["last_active"] == 4e9
    assert len(chat.list_unlinked_telegram_sessions_for_user(chat_id="c", user_id="u", limit=1)) == 1


def test_tables_of_the_first_version_are_brought_to_the_second(chat: SessionDB) -> None:
    chat._conn.executescript(
        """
        CREATE TABLE telegram_dm_topic_bindings (chat_id TEXT NOT NULL, thread_id TEXT NOT NULL, user_id TEXT NOT NULL,
          session_key TEXT NOT NULL, session_id TEXT NOT NULL REFERENCES sessions(id),
          managed_mode TEXT NOT NULL DEFAULT 'auto', linked_at REAL NOT NULL, updated_at REAL NOT NULL,
          PRIMARY KEY (chat_id, thread_id));
        CREATE UNIQUE INDEX idx_telegram_dm_topic_bindings_session ON telegram_dm_topic_bindings(session_id);
        INSERT INTO telegram_dm_topic_bindings VALUES ('c', '7', 'u', 'k', 'one', 'auto', 1, 1);
        """
    )
    chat.apply_telegram_topic_migration()
    assert [row["session_id"] for row in chat.list_telegram_topic_bindings_for_chat(chat_id="c")] == ["one"]
    links = chat._conn.execute("PRAGMA foreign_key_list(telegram_dm_topic_bindings)").fetchall()
    assert [row["on_delete"] for row in links] == ["CASCADE"]
    indexes = {row["name"] for row in chat._conn.execute("PRAGMA index_list(telegram_dm_topic_bindings)")}
    assert {"idx_telegram_dm_topic_bindings_session", "idx_telegram_dm_topic_bindings_user"} <= indexes
