"""The CJK index: kept where its tokenizer is there, never in the way where it is not (case 04)."""

from __future__ import annotations

import pytest

from state_ledger import full_text, migrate
from state_ledger.full_text import CJK, cjk
from state_ledger.full_text import rewrite as index_rewrite
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests.migrated import assert_sound

ADD = (
    "INSERT INTO messages(session_id, role, content, timestamp)"
    " SELECT min(id), 'user', '桂林旅游 quagga', 1 FROM sessions RETURNING id"
)


@pytest.fixture
def store(shared_store):
    """A store with an index whose tokenizer this SQLite lacks."""
    return shared_store("small-23-cjk.db")


@pytest.fixture
def stand_in(shared_store):
    """A store whose CJK index has a tokenizer that every SQLite has, in the place of the extension's."""
    path = shared_store("small-23.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(full_text.source_view_sql(CJK))
    connection.execute(full_text.table_sql(CJK).replace("cjk_unicode61", "trigram"))
    for sql in full_text.trigger_sql(CJK):
        connection.execute(sql)
    connection.execute("INSERT INTO messages_fts_cjk(messages_fts_cjk) VALUES ('rebuild')")
    connection.close()
    return path


def _triggers(writer):
    return writer.value("SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'messages_fts_cjk%'")


def _stale(writer):
    return writer.value("SELECT value FROM state_meta WHERE key = 'fts_cjk_stale'")


def test_without_the_tokenizer_messages_are_stored_and_the_index_is_stale(store):
    writer = Writer(store)
    assert (_triggers(writer), _stale(writer)) == (0, "1")
    assert writer.value("SELECT 1 FROM sqlite_master WHERE name = 'messages_fts_cjk'") == 1
    added = writer.write(lambda c: c.execute(ADD).fetchone()[0])
    writer.write(lambda c: c.execute("UPDATE messages SET content = '夜行' WHERE id = ?", (added,)))
    writer.write(lambda c: c.execute("DELETE FROM messages WHERE id = 1"))
    assert not cjk.serves(writer.connection)
    assert migrate.plan(writer.connection) == []
    writer.close()
    assert_sound(store)


def test_maintenance_leaves_the_unreadable_index_alone(store):
    writer = Writer(store)
    before = writer.rows("SELECT id, block FROM messages_fts_cjk_data ORDER BY id")
    assert index_rewrite.optimize_fts(writer) == 2
    assert index_rewrite.rebuild_fts(writer) == 2
    assert index_rewrite.optimize_fts_storage(writer)["ok"]
    assert index_rewrite.fts_cjk_rebuild_status(writer) is None and not index_rewrite.fts_cjk_rebuild_step(writer)
    assert writer.rows("SELECT id, block FROM messages_fts_cjk_data ORDER BY id") == before
    writer.close()


def test_a_big_store_is_freed_of_the_triggers_too(store, monkeypatch):
    monkeypatch.setattr(migrate, "LARGE_MESSAGES", 0)
    writer = Writer(store)
    assert writer.write(lambda c: c.execute(ADD).fetchone()[0])
    writer.close()


def test_with_the_tokenizer_the_index_is_kept_in_step(stand_in):
    writer = Writer(stand_in)
    assert cjk.serves(writer.connection) and _triggers(writer) == 3
    added = writer.write(lambda c: c.execute(ADD).fetchone()[0])
    assert writer.value("SELECT rowid FROM messages_fts_cjk WHERE messages_fts_cjk MATCH '桂林旅'") == added
    assert index_rewrite.optimize_fts(writer) == 3
    writer.close()


def test_a_stale_index_is_filled_anew_before_it_serves(stand_in):
    connection = sqlite3.connect(stand_in, isolation_level=None)
    cjk.step_aside(connection)
    added = connection.execute(ADD).fetchone()[0]
    assert not cjk.serves(connection)
    connection.close()
    writer = Writer(stand_in)
    assert (_triggers(writer), _stale(writer)) == (3, None)
    assert cjk.serves(writer.connection)
    assert writer.value("SELECT rowid FROM messages_fts_cjk WHERE messages_fts_cjk MATCH '桂林旅'") == added
    full_text.check(writer.connection, CJK)
    writer.close()


def test_a_stale_index_of_a_big_store_is_filled_in_steps(stand_in, monkeypatch):
    monkeypatch.setattr(migrate, "LARGE_MESSAGES", 0)
    monkeypatch.setattr(index_rewrite, "ROWS_PER_STEP", 3)
    connection = sqlite3.connect(stand_in, isolation_level=None)
    cjk.step_aside(connection)
    connection.close()
    writer = Writer(stand_in)
    assert _stale(writer) == "1" and _triggers(writer) == 0
    phases = []
    answer = index_rewrite.optimize_fts_storage(writer, progress_cb=lambda state: phases.append(state["total"]))
    assert answer["ok"] and any(phases)
    assert cjk.serves(writer.connection) and _stale(writer) is None
    writer.write(lambda c: c.execute("DELETE FROM messages WHERE id = 2"))
    full_text.check(writer.connection, CJK)
    writer.close()


def test_the_extension_is_looked_for_where_it_is_put(tmp_path):
    home, named = tmp_path / "home", tmp_path / "named.so"
    (home / "lib").mkdir(parents=True)
    environ = {"HERMES_HOME": str(home)}
    assert cjk.extension_path(environ) is None
    (home / "lib" / "libfts5_cjk.so").touch()
    assert cjk.extension_path(environ) == home / "lib" / "libfts5_cjk.so"
    named.touch()
    environ["HERMES_FTS5_CJK_SO"] = str(named)
    assert cjk.extension_path(environ) == named
    for off in ("0", "false", "OFF", "no"):
        assert cjk.extension_path({**environ, "HERMES_CJK_FTS": off}) is None


def test_a_file_that_is_no_extension_does_no_harm(tmp_path):
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    connection = sqlite3.connect(":memory:")
    assert cjk.load(connection, {"HERMES_FTS5_CJK_SO": str(broken)}) is False
    with pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT load_extension(?)", (str(broken),))
    connection.close()
