"""Big indexes are rewritten on demand, in steps, while others write and searches find everything."""

from __future__ import annotations

import sqlite3 as pythons_own
import subprocess
import sys
from pathlib import Path

import pytest

from state_ledger import full_text, messages, migrate, schema
from state_ledger.full_text import WORDS
from state_ledger.full_text import layout as text_layout
from state_ledger.full_text import rewrite as index_rewrite
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests.migrated import MESSAGE_COLUMNS, OLD_SQLITE, assert_sound, rows


@pytest.fixture
def big(monkeypatch):
    """Every store counts as big."""
    monkeypatch.setattr(migrate, "LARGE_MESSAGES", 0)


@pytest.fixture
def in_small_steps(monkeypatch):
    monkeypatch.setattr(index_rewrite, "ROWS_PER_STEP", 3)
    monkeypatch.setattr(index_rewrite, "PAUSE_S", 0)


def _found(writer: Writer, word: str) -> set[int]:
    """Messages with a word: by the index, and by looking through what the gate names."""
    done, goal = text_layout.gate(writer.connection, WORDS) or (0, 0)
    return {
        row[0]
        for row in writer.rows(
            "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?1"
            " UNION SELECT id FROM messages WHERE id > ?2 AND id <= ?3"
            " AND (instr(lower(content), ?1) OR instr(lower(tool_calls), ?1))",
            (word, done, goal),
        )
    }


OLD = ["small-1.db", "small-10.db", "small-11.db", "small-22.db", "small-22-to-23.db", "schema-22.db"]


@pytest.mark.parametrize("name", [*OLD, "small-1-to-23.db", "small-23.db"])
def test_opening_a_big_store_rewrites_no_index(shared_store, big, name):
    path = shared_store(name)
    writer = Writer(path)
    assert index_rewrite.fts_optimize_available(writer)
    assert writer.value("SELECT value FROM state_meta WHERE key = 'fts_optimize_available'") == "1"
    # Whatever is in it, messages can be added, changed and deleted.
    session = writer.value("SELECT min(id) FROM sessions")
    writer.write(lambda c: c.execute("INSERT INTO messages(session_id, role, content, timestamp)"
                                     " VALUES (?, 'user', 'a quagga', 1)", (session,)))  # fmt: skip
    writer.write(lambda c: c.execute("UPDATE messages SET content = 'changed ' || id WHERE id % 2"))
    writer.write(lambda c: c.execute("DELETE FROM messages WHERE id % 3 = 0"))
    writer.close()
    once = path.read_bytes()
    Writer(path).close()
    assert path.read_bytes() == once


@pytest.mark.parametrize("name", [*OLD, "small-1-to-23.db", "small-23.db", "small-22-to-23-optimized.db"])
def test_a_rewrite_in_steps_finds_everything_at_every_step(shared_store, big, in_small_steps, name):
    path = shared_store(name)
    messages = rows(path, "messages", MESSAGE_COLUMNS)
    writer = Writer(path)
    other = Writer(path)
    session = writer.value("SELECT min(id) FROM sessions")
    added = 0
    seen = []

    def look(state):
        nonlocal added
        seen.append(state["phase"])
        if state["phase"] != "backfill":
            return
        other.write(lambda c: c.execute("INSERT INTO messages(session_id, role, content, timestamp)"
                                        " VALUES (?, 'user', 'a quagga', 1)", (session,)))  # fmt: skip
        added += 1
        assert len(_found(writer, "quagga")) == added
        assert index_rewrite.fts_rebuild_status(writer)["pending"]

    answer = index_rewrite.optimize_fts_storage(writer, progress_cb=look)
    assert answer["ok"] and added > 1
    assert seen[0] == "backfill" and seen[-1] == "done"
    assert not index_rewrite.fts_optimize_available(writer) and index_rewrite.fts_rebuild_status(writer) is None
    assert migrate.plan(writer.connection) == [] and not text_layout.leftovers(writer.connection)
    other.write(lambda c: c.execute("DELETE FROM messages WHERE content = 'a quagga'"))
    other.close()
    writer.close()
    had = [column for column in MESSAGE_COLUMNS if column not in ("active", "compacted")]
    assert len(rows(path, "messages", MESSAGE_COLUMNS, had)) == len(messages)
    assert_sound(path)


def test_messages_changed_in_the_middle_of_a_rewrite_are_indexed_once(shared_store, big, in_small_steps):
    path = shared_store("small-22.db")
    writer = Writer(path)
    writer.write(index_rewrite._begin)
    assert index_rewrite.fts_rebuild_step(writer)
    done, goal = text_layout.gate(writer.connection, WORDS)
    for id in (1, done, done + 1, goal):
        writer.write(lambda c, id=id: c.execute("UPDATE messages SET content = 'quagga' WHERE id = ?", (id,)))
    writer.write(lambda c: c.execute("DELETE FROM messages WHERE id = ?", (goal - 1,)))
    assert _found(writer, "quagga") == {1, done, done + 1, goal}
    writer.close()
    writer = Writer(path)  # another start of the program takes it up
    while index_rewrite.fts_rebuild_step(writer):
        pass
    assert index_rewrite.optimize_fts_storage(writer, vacuum=False) == {"ok": True, "vacuumed": False}
    assert _found(writer, "quagga") == {1, done, done + 1, goal}
    writer.close()
    assert_sound(path)


def test_the_command_rewrites_and_says_when_there_is_no_room(shared_store, monkeypatch):
    from click.testing import CliRunner

    from state_ledger.cli import main

    monkeypatch.setattr(migrate, "LARGE_MESSAGES", 0)
    path = shared_store("small-22.db")
    monkeypatch.setattr(index_rewrite, "room", lambda writer, vacuum=True: index_rewrite.Room(100, 99))
    refused = CliRunner().invoke(main, ["migrate", str(path)])
    assert refused.exit_code == 1 and "99 are free" in refused.output
    monkeypatch.undo()
    monkeypatch.setattr(migrate, "LARGE_MESSAGES", 0)
    done = CliRunner().invoke(main, ["migrate", str(path), "--yes", "--no-backup"])
    assert done.exit_code == 0 and "is up to date" in done.output, done.output
    assert_sound(path)
    again = CliRunner().invoke(main, ["migrate", "--dry-run", str(path)])
    assert "nothing would be done" in again.output


@pytest.mark.parametrize("name", ["small-23.db", "small-22.db"])
def test_indexes_are_merged_and_filled_anew(shared_store, name):
    writer = Writer(shared_store(name))
    assert index_rewrite.optimize_fts(writer) == 2
    writer.write(lambda c: c.execute("INSERT INTO messages_fts(messages_fts) VALUES ('delete-all')"))
    with pytest.raises(sqlite3.DatabaseError):
        full_text.check(writer.connection, WORDS)
    assert index_rewrite.rebuild_fts(writer) == 2
    full_text.check(writer.connection, WORDS)
    writer.close()


def test_a_read_only_handle_rewrites_nothing(shared_store):
    writer = Writer(shared_store("small-22.db"), read_only=True)
    assert index_rewrite.optimize_fts_storage(writer) == {"ok": False, "reason": "read_only"}
    writer.close()


def test_a_missing_trigger_makes_the_index_anew(shared_store):
    path = shared_store("small-23.db")
    Writer(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER messages_fts_insert")
    connection.execute(
        "INSERT INTO messages(session_id, role, content, timestamp) SELECT min(id), 'user', 'quagga', 1 FROM sessions"
    )
    connection.close()
    writer = Writer(path)
    assert len(_found(writer, "quagga")) == 1
    writer.close()
    assert_sound(path)


CHANGES = """
import sys
{which}
c = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    c.execute(statement)
"""
OLDER, NEWER = "import sqlite3", "from state_ledger.sqlite import sqlite3"
ADD = (
    "INSERT INTO messages(session_id, role, content, timestamp)"
    " VALUES ('s', 'user', char(0) || 'json:[\"harbour\"]', 1)"
)


@pytest.mark.skipif(not OLD_SQLITE, reason="both SQLites here treat a NUL alike")
@pytest.mark.parametrize(("first", "second"), [(OLDER, NEWER), (NEWER, OLDER)], ids=["older-first", "newer-first"])
def test_structured_content_of_one_sqlite_is_deleted_by_another(tmp_path, first, second):
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path, isolation_level=None)
    schema.create(connection)
    connection.execute("INSERT INTO sessions(id, source, started_at) VALUES ('s', 'cli', 1)")
    connection.close()
    _run(first, path, ADD, ADD, ADD)
    _run(second, path, "DELETE FROM messages WHERE id = 1", "UPDATE messages SET content = 'plain' WHERE id = 2")
    assert_sound(path)
    connection = pythons_own.connect(path)
    connection.execute("INSERT INTO messages_fts_trigram(messages_fts_trigram, rank) VALUES ('integrity-check', 1)")
    connection.close()


def _run(which: str, path: Path, *statements: str) -> None:
    subprocess.run([sys.executable, "-c", CHANGES.format(which=which), str(path), *statements], check=True)


PARTS = ("data", "idx", "docsize", "config")


def lose(path, index, part):
    connection = sqlite3.connect(path)
    connection.execute(f"DROP TABLE {index}_{part}")
    connection.commit()
    connection.close()


def assert_indexed(writer):
    row_id = messages.append_message(writer, "s", "user", "a zebra")
    for index in full_text.INDEXES:
        found = writer.rows(f"SELECT rowid FROM {index.name} WHERE {index.name} MATCH 'zebra'")
        assert [row[0] for row in found] == [1, row_id]
        full_text.check(writer.connection, index)


@pytest.mark.parametrize("index", ["messages_fts", "messages_fts_trigram"])
@pytest.mark.parametrize("part", PARTS)
def test_an_index_that_lost_a_table_is_made_anew_by_opening_a_small_store(store, index, part):
    messages.append_message(store, "s", "user", "zebra")
    store.close()
    lose(store.path, index, part)
    writer = Writer(store.path)
    assert_indexed(writer)
    writer.close()


@pytest.mark.parametrize("part", PARTS)
def test_an_index_that_loses_a_table_meanwhile_keeps_no_message_out(store, part, caplog):
    messages.append_message(store, "s", "user", "zebra")
    lose(store.path, "messages_fts", part)
    assert_indexed(store)
    assert "is made anew" in caplog.text


@pytest.mark.parametrize("part", PARTS)
def test_a_lost_table_of_a_big_store_keeps_no_message_out(store, part, big, in_small_steps):
    messages.append_message(store, "s", "user", "zebra")
    store.close()
    lose(store.path, "messages_fts", part)
    writer = Writer(store.path)
    added = messages.append_message(writer, "s", "user", "meanwhile")
    assert writer.value("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'meanwhile'") == added
    assert index_rewrite.optimize_fts_storage(writer)["ok"]
    assert writer.value("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'zebra'") == 1
    for index in full_text.INDEXES:
        full_text.check(writer.connection, index)
    writer.close()


@pytest.mark.parametrize("how", ["rewrite", "begin"])
def test_rewritten_indexes_merge_late_like_new_ones(store, how):
    def settings():
        return {
            (index.name, key): store.value(f"SELECT v FROM {index.name}_config WHERE k = ?", (key,))
            for index in full_text.INDEXES
            for key in ("automerge", "crisismerge")
        }

    fresh = settings()
    assert set(fresh.values()) == {16, 64}
    store.write(getattr(text_layout, how))
    assert settings() == fresh
