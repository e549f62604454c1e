"""How a store is opened: made, refused, read, and left alone where its schema is newer."""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from state_ledger import full_text, schema
from state_ledger.errors import SchemaTooNewError, StoreAccessError
from state_ledger.sqlite import sqlite3
from state_ledger.writing import journal, opening
from state_ledger.writing.writer import Writer
from tests.writing import add_message, add_session, holding, needs_wal


def test_a_new_store_has_schema_23_in_a_file_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "state.db"
    writer = Writer(path)
    assert writer.rows("SELECT version FROM schema_version")[0][0] == 23
    assert set(schema.TABLES) <= set(writer.shape.tables)
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    writer.close()


def test_the_default_store_is_that_of_hermes_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    writer = Writer()
    assert writer.path == tmp_path / "home" / "state.db"
    writer.close()
    assert opening.default_path({}) == Path.home() / ".hermes" / "state.db"
    assert opening.default_path({"HERMES_HOME": " "}) == Path.home() / ".hermes" / "state.db"


def test_the_connection_is_what_programs_expect(writer: Writer) -> None:
    assert writer.connection.isolation_level is None
    assert writer.connection.row_factory is sqlite3.Row
    assert writer.value("PRAGMA foreign_keys") == 1
    assert writer.value("PRAGMA busy_timeout") == 1000
    with pytest.raises(sqlite3.IntegrityError):
        writer.write(lambda connection: add_message(connection, "of no session"))


def test_full_text_indexes_of_a_new_store_merge_late(writer: Writer) -> None:
    for index in full_text.INDEXES:
        found = dict(writer.rows(f"SELECT k, v FROM {index.name}_config"))
        assert (found["automerge"], found["crisismerge"]) == (16, 64)


@needs_wal
def test_a_new_store_keeps_a_write_ahead_log(writer: Writer) -> None:
    assert writer.value("PRAGMA journal_mode") == "wal"


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_store_that_exists_keeps_its_journal_mode(small_store: Callable[..., Path], mode: str) -> None:
    writer = Writer(small_store(journal=mode))
    assert writer.value("PRAGMA journal_mode") == mode
    writer.close()


def test_with_the_wal_reset_bug_a_new_store_has_no_log_and_a_warning_says_why(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(journal, "version_info", (3, 40, 1))
    with caplog.at_level(logging.WARNING):
        writer = Writer(path)
    assert writer.value("PRAGMA journal_mode") == "delete"
    writer.close()
    Writer(path).close()
    assert ["WAL-reset bug" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("version", "bad"),
    [
        ((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 44, 5), True), ((3, 44, 6), False),
        ((3, 45, 0), True), ((3, 50, 6), True), ((3, 50, 7), False), ((3, 51, 0), True), ((3, 51, 2), True),
        ((3, 51, 3), False), ((3, 52), False),
    ],
)  # fmt: skip
def test_versions_with_the_wal_reset_bug(version: tuple[int, ...], bad: bool) -> None:
    assert journal.has_wal_reset_bug(version) is bad


@needs_wal
def test_a_file_system_that_refuses_a_log_gets_none(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connection = sqlite3.connect(path, isolation_level=None)

    def refuse(action: int, name: str | None, value: str | None, *_rest: object) -> int:
        wal = action == sqlite3.SQLITE_PRAGMA and (name, value) == ("journal_mode", "wal")
        return sqlite3.SQLITE_DENY if wal else sqlite3.SQLITE_OK

    connection.set_authorizer(refuse)  # SQLite then says "not authorized", as some file systems do
    with caplog.at_level(logging.WARNING):
        assert journal.choose(connection, path) == "delete"
    assert "file system refuses" in caplog.text
    connection.close()


def test_opening_an_up_to_date_store_waits_for_no_writer(path: Path) -> None:
    Writer(path).close()
    holder = holding(path, 3)
    began = time.monotonic()
    Writer(path).close()
    Writer(path, read_only=True).close()
    assert time.monotonic() - began < 1
    assert holder.wait(10) == 0


def test_a_handle_to_read_changes_nothing(path: Path) -> None:
    Writer(path).close()
    before = path.read_bytes()
    reader = Writer(path, read_only=True)
    assert reader.value("SELECT count(*) FROM sessions") == 0
    with pytest.raises(StoreAccessError, match="read only"):
        reader.write(add_session)
    reader.close()
    assert path.read_bytes() == before
    with pytest.raises(StoreAccessError, match="no file"):
        Writer(path.parent / "absent.db", read_only=True)


def damaged(kind: str, path: Path) -> None:
    if kind == "text":
        path.write_text("this is a letter, not a database\n" * 40)
    elif kind == "zeroed":
        path.write_bytes(bytes(8192))
    elif kind == "half a header":
        path.write_bytes(b"SQLite format 3\x00" + bytes(20))
    elif kind == "cut off":
        Writer(path).close()
        os.truncate(path, path.stat().st_size // 2 + 100)
    elif kind == "another program's":
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE recipes (name)")
        other.close()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("kind", ["text", "zeroed", "half a header", "cut off", "another program's"])
def test_what_is_no_store_is_refused_and_left_alone(path: Path, kind: str, read_only: bool) -> None:
    damaged(kind, path)
    before = path.read_bytes()
    if read_only and kind == "another program's":
        pytest.skip("it can be read, and says by its shape that it is no store")
    with pytest.raises(StoreAccessError, match=path.name):
        Writer(path, read_only)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreAccessError, match="folder"):
        Writer(tmp_path)


# Newer schemas


def newer(path: Path, *changes: str) -> Writer:
    Writer(path).close()
    other = sqlite3.connect(path)
    other.execute("UPDATE schema_version SET version = 30")
    for change in changes:
        other.execute(change)
    other.commit()
    other.close()
    return Writer(path)


def test_a_newer_store_with_all_we_know_is_written_to_but_not_altered(path: Path) -> None:
    writer = newer(path, "ALTER TABLE sessions ADD COLUMN hidden INTEGER", "CREATE TABLE reactions (id)")
    declared = writer.rows("SELECT name, sql FROM sqlite_master")
    writer.write(add_session)
    writer.write(lambda connection: add_message(connection, "known"))
    assert writer.value("SELECT count(*) FROM messages") == 1
    assert writer.value("SELECT version FROM schema_version") == 30
    assert [tuple(row) for row in writer.rows("SELECT name, sql FROM sqlite_master")] == [
        tuple(row) for row in declared
    ]
    writer.close()


def test_a_newer_store_that_lacks_a_column_is_read_only(path: Path) -> None:
    writer = newer(path, "ALTER TABLE messages DROP COLUMN observed", "DROP TABLE compression_locks")
    assert writer.value("SELECT count(*) FROM sessions") == 0
    with pytest.raises(SchemaTooNewError, match=r"schema 30.*messages \(observed\); compression_locks") as caught:
        writer.write(add_session)
    assert caught.value.absent == {"messages": ("observed",), "compression_locks": ()}
    writer.close()


def test_a_store_that_becomes_newer_while_it_is_open_is_noticed(writer: Writer) -> None:
    writer.write(add_session)
    other = sqlite3.connect(writer.path)
    other.execute("UPDATE schema_version SET version = 31")
    other.execute("ALTER TABLE messages DROP COLUMN observed")
    other.commit()
    other.close()
    with pytest.raises(SchemaTooNewError, match="schema 31"):
        writer.write(lambda connection: add_message(connection, "unsure"))
