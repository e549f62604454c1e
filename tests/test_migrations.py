"""Every older store becomes schema 23 when it is opened to write, and loses nothing."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from state_ledger import migrate, schema
from state_ledger.migrate import migration_set
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests.migrated import (
    MESSAGE_COLUMNS,
    SESSION_COLUMNS,
    assert_sound,
    definitions,
    live_columns,
    raw,
    rows,
    totals,
)

NAMES = [
    *(f"small-{n}.db" for n in (1, 2, *range(4, 24), "23a", "23-cjk", "1-to-23", "22-to-23", "22-to-23-optimized")),
    *(f"schema-{n}.db" for n in (11, 13, 14, 16, 19, 22, 23)),
]


def _open(path: Path) -> None:
    Writer(path).close()


def _versions(path: Path) -> list[tuple[int]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT version FROM schema_version").fetchall()
    connection.close()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_message_token_and_dollar_is_kept(shared_store, name):
    path = shared_store(name)
    had = {table: live_columns(path, table) for table in ("messages", "sessions")}
    messages = rows(path, "messages", MESSAGE_COLUMNS)
    sessions = rows(path, "sessions", SESSION_COLUMNS)
    money = totals(path)
    _open(path)
    assert rows(path, "messages", MESSAGE_COLUMNS, had["messages"]) == messages
    assert rows(path, "sessions", SESSION_COLUMNS, had["sessions"]) == sessions
    assert totals(path) == money
    assert _versions(path) == [(23,)]
    assert_sound(path)


@pytest.mark.parametrize("name", NAMES)
def test_columns_keys_and_objects_are_those_declared(shared_store, tmp_path, name):
    path = shared_store(name)
    _open(path)
    for table in schema.TABLES:
        assert set(schema.declared_columns(table)) <= set(live_columns(path, table)), table
    fresh = tmp_path / "fresh.db"
    _open(fresh)
    extra = {n for _, n, _ in definitions(path)} - {n for _, n, _ in definitions(fresh)}
    assert {n for _, n, _ in definitions(fresh)} <= {n for _, n, _ in definitions(path)}
    assert all("cjk" in n for n in extra), extra
    declared = [c.name for c in schema.TABLES["session_model_usage"] if c.key]
    connection = sqlite3.connect(path)
    key = sorted((r[5], r[1]) for r in connection.execute("PRAGMA table_info(session_model_usage)") if r[5])
    connection.close()
    assert [n for _, n in key] == declared


@pytest.mark.parametrize("name", NAMES)
def test_a_second_opening_changes_no_byte(shared_store, name):
    path = shared_store(name)
    _open(path)
    once = path.read_bytes()
    connection = sqlite3.connect(path)
    assert migrate.plan(connection) == []
    connection.close()
    _open(path)
    assert path.read_bytes() == once


@pytest.mark.parametrize("name", ["small-24.db", "small-25.db", "schema-25.db", "small-30-handmade.db"])
def test_a_newer_store_is_left_alone(shared_store, name):
    path = shared_store(name)
    before = definitions(path), rows(path, "messages", MESSAGE_COLUMNS)
    _open(path)
    assert (definitions(path), rows(path, "messages", MESSAGE_COLUMNS)) == before


@pytest.mark.parametrize("name", ["small-19.db", "small-22.db", "small-23.db"])
def test_a_store_is_adopted_at_its_version(shared_store, name):
    path = shared_store(name)
    version = _versions(path)[0][0]
    connection = sqlite3.connect(path)
    expected = [n for n in migration_set.MODULES if migration_set.version(n) > version]
    assert [n for n in migrate._to_run(connection) if n != migration_set.TEXT_INDEX] == [
        n for n in expected if n != migration_set.TEXT_INDEX
    ]
    connection.close()
    _open(path)
    connection = sqlite3.connect(path)
    recorded = {n for (n,) in connection.execute("SELECT name FROM _sqlite_migrations")}
    connection.close()
    assert recorded == set(migration_set.MODULES)


def test_a_number_ahead_of_the_tables_is_not_believed(shared_store):
    path = shared_store("small-19.db")
    money = totals(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE schema_version SET version = 23")
    connection.commit()
    connection.close()
    _open(path)
    connection = sqlite3.connect(path)
    seeded = connection.execute(
        "SELECT count(*) FROM session_model_usage AS u JOIN sessions AS s ON s.id = u.session_id"
        " AND u.first_seen = s.started_at"
    ).fetchone()
    connection.close()
    assert seeded[0] > 0
    assert totals(path) == money


def test_a_number_behind_the_tables_counts_no_call_twice(shared_store):
    path = shared_store("small-22.db")
    money = totals(path)
    usage = rows(path, "session_model_usage", schema.declared_columns("session_model_usage"))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE schema_version SET version = 15")
    connection.commit()
    connection.close()
    _open(path)
    assert totals(path) == money
    assert set(usage) <= set(rows(path, "session_model_usage", schema.declared_columns("session_model_usage")))


@pytest.mark.parametrize("versions", [[], [7, 7], ["x"]])
def test_one_version_row_is_left_whatever_was_there(shared_store, versions):
    path = shared_store("small-23.db")
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM schema_version")
    connection.executemany("INSERT INTO schema_version VALUES (?)", [(v,) for v in versions])
    connection.commit()
    connection.close()
    _open(path)
    assert _versions(path) == [(23,)]


def test_a_column_that_is_missing_at_23_is_added(shared_store):
    path = shared_store("small-23.db")
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE messages DROP COLUMN reasoning_content")
    connection.commit()
    connection.close()
    _open(path)
    assert "reasoning_content" in live_columns(path, "messages")


OLD_USAGE = """
DROP TABLE session_model_usage;
CREATE TABLE session_model_usage (
  session_id TEXT NOT NULL, model TEXT NOT NULL, billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT,
  billing_mode TEXT, api_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, note TEXT,
  estimated_cost_usd REAL DEFAULT 0, first_seen REAL, last_seen REAL,
  PRIMARY KEY (session_id, model{key}));
INSERT INTO session_model_usage(session_id, model, billing_provider, billing_base_url, input_tokens, note)
VALUES ((SELECT min(id) FROM sessions), 'm', 'p', NULL, 10, 'kept'), ('gone', 'm', 'p', NULL, 7, NULL);
"""


@pytest.mark.parametrize(
    "key", [", billing_provider", ", billing_provider, billing_base_url, billing_mode"], ids=["three", "five"]
)
def test_an_old_key_of_the_usage_table_is_widened_and_orphans_are_kept(shared_store, caplog, key):
    path = shared_store("small-23.db")
    connection = sqlite3.connect(path)
    connection.executescript(OLD_USAGE.format(key=key))
    connection.close()
    with caplog.at_level(logging.WARNING):
        writer = Writer(path)
    assert "1 usage rows belong to sessions that are no longer there" in caplog.text
    found = writer.rows("SELECT session_id, billing_base_url, input_tokens, note FROM session_model_usage ORDER BY 3")
    assert [tuple(row)[1:] for row in found] == [("", 7, None), ("", 10, "kept")]
    assert writer.value("PRAGMA foreign_keys") == 1
    writer.close()


def test_an_old_key_of_gateway_routing_is_widened(shared_store):
    path = shared_store("small-23.db")
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TABLE gateway_routing; CREATE TABLE gateway_routing(session_key TEXT PRIMARY KEY,"
        " entry_json TEXT NOT NULL, updated_at REAL NOT NULL);"
        "INSERT INTO gateway_routing VALUES ('k', '{}', 5.5)"
    )
    connection.close()
    _open(path)
    assert rows(path, "gateway_routing", schema.declared_columns("gateway_routing")) == [(b"", b"k", b"{}", 5.5)]


def test_rows_of_an_interrupted_rebuild_come_back_once(shared_store):
    path = shared_store("small-23.db")
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        DELETE FROM session_model_usage;
        CREATE TABLE session_model_usage_v21 AS SELECT * FROM session_model_usage;
        INSERT INTO session_model_usage_v21(session_id, model, billing_provider, billing_base_url, billing_mode, task,
            input_tokens) SELECT id, 'm', '', '', '', '', 100 FROM sessions ORDER BY id LIMIT 1;
        INSERT INTO session_model_usage SELECT session_id, 'm', '', '', '', '', 1, 100, 0, 0, 0, 0, 0, 0, NULL, NULL,
            NULL, NULL FROM session_model_usage_v21;
        INSERT INTO session_model_usage_v21(session_id, model, billing_provider, billing_base_url, billing_mode, task,
            input_tokens) SELECT id, 'm', '', '', '', '', 40 FROM sessions ORDER BY id DESC LIMIT 1;
        """
    )
    connection.close()
    money = totals(path)
    _open(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT sum(input_tokens) FROM session_model_usage").fetchone() == (140,)
    assert not live_columns(path, "session_model_usage_v21")
    connection.close()
    assert totals(path) == money


def test_a_model_config_that_is_no_json_stops_no_other_row(shared_store, caplog):
    path = shared_store("small-14.db")
    connection = sqlite3.connect(path)
    parent = connection.execute("SELECT id FROM sessions WHERE parent_session_id IS NULL").fetchone()[0]
    connection.execute("UPDATE sessions SET end_reason = NULL WHERE id = ?", (parent,))
    for name, config in (("broken", "{oops"), ("list", "[1]"), ("none", None), ("good", '{"a": 1}')):
        connection.execute(
            "INSERT INTO sessions(id, source, parent_session_id, model_config, started_at) VALUES (?, 'cli', ?, ?, 1)",
            (name, parent, config),
        )
    connection.commit()
    connection.close()
    with caplog.at_level(logging.WARNING):
        writer = Writer(path)
    assert "2 delegate sessions could not be marked" in caplog.text
    configs = {row["id"]: row["model_config"] for row in writer.rows("SELECT id, model_config FROM sessions")}
    writer.close()
    assert (configs["broken"], configs["list"]) == ("{oops", "[1]")
    assert json.loads(configs["none"]) == {"_delegate_from": parent}
    assert json.loads(configs["good"]) == {"a": 1, "_delegate_from": parent}


def test_messaging_peers_come_from_the_file_beside_the_store(shared_store):
    path = shared_store("small-16.db")
    connection = sqlite3.connect(path)
    session = connection.execute("SELECT min(id) FROM sessions").fetchone()[0]
    connection.close()
    (path.parent / "sessions").mkdir()
    entry = {
        "session_id": session,
        "origin": {"chat_id": 42, "thread_id": None},
        "display_name": "Ada",
        "memory_flushed": 1,
    }
    (path.parent / "sessions" / "sessions.json").write_text(json.dumps({"peer": entry, "_x": entry, "y": 5}))
    writer = Writer(path)
    row = writer.row(
        "SELECT session_key, chat_id, display_name, expiry_finalized FROM sessions WHERE id = ?", (session,)
    )
    writer.close()
    assert row is not None and tuple(row) == ("peer", "42", "Ada", 1)


def test_of_two_sessions_with_one_title_the_newer_keeps_it(shared_store, caplog):
    path = shared_store("small-2.db")
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE sessions ADD COLUMN title TEXT")
    connection.execute("UPDATE sessions SET title = 'same'")
    newest = connection.execute("SELECT id FROM sessions ORDER BY rowid DESC").fetchone()[0]
    connection.commit()
    connection.close()
    writer = Writer(path)
    found = writer.rows("SELECT id FROM sessions WHERE title = 'same'")
    writer.close()
    assert [row["id"] for row in found] == [newest]
    assert "gives its title" in caplog.text


def test_messages_without_an_active_mark_become_live(shared_store):
    path = shared_store("small-13.db")
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE messages ADD COLUMN active INTEGER")
    connection.commit()
    connection.close()
    _open(path)
    assert {row[0] for row in rows(path, "messages", ("active",))} == {1}


def test_a_dry_run_lists_and_changes_nothing(shared_store):
    path = shared_store("small-20.db")
    before = path.read_bytes()
    code = "from state_ledger.cli import main; main()"
    told = subprocess.run(
        [sys.executable, "-c", code, "migrate", "--dry-run", str(path)], capture_output=True, text=True, check=True
    )
    assert "Make session_model_usage anew" in told.stdout and "Rewrite the full-text indexes" in told.stdout
    assert path.read_bytes() == before


def test_bytes_that_are_no_utf8_survive(shared_store):
    path = shared_store("small-7.db")
    connection = raw(path)
    connection.execute("UPDATE messages SET content = CAST(x'61ff00fe62' AS TEXT) WHERE id = 1")
    connection.close()
    _open(path)
    assert dict(rows(path, "messages", ("id", "content")))[1] == b"a\xff\x00\xfeb"
    assert_sound(path)
