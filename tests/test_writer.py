"""One handle on a store: how it is opened, how it writes, whom it waits for, when it refuses."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import full_text, schema
from state_ledger.errors import SchemaTooNewError, StoreAccessError, StoreBusyError, StoreFullError
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing import checkpoints, contention, journal, opening
from state_ledger.writing.writer import Writer

needs_wal = pytest.mark.skipif(journal.has_wal_reset_bug(), reason="this SQLite makes files without a log")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc/locks is Linux's")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    opened = Writer(path)
    yield opened
    opened.close()


def add_session(connection: Connection, name: str = "a") -> None:
    connection.execute("INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', 1)", (name,))


def add_message(connection: Connection, content: str, session: str = "a") -> int:
    made = connection.execute(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1)",
        (session, content),
    )
    assert made.lastrowid is not None
    return made.lastrowid


def holding(path: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that has the write lock by the time this returns, and gives it back after `seconds`."""
    code = textwrap.dedent(
        """
        import sys, time
        from state_ledger.sqlite import sqlite3
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        time.sleep(float(sys.argv[2]))
        connection.execute("COMMIT")
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


# Opening


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


# Writing


def test_a_write_is_stored_whole_or_not_at_all(writer: Writer) -> None:
    class Mistake(Exception):
        pass

    def half(connection: Connection) -> None:
        add_session(connection)
        add_message(connection, "gone")
        raise Mistake

    with pytest.raises(Mistake):
        writer.write(half)
    assert writer.value("SELECT count(*) FROM sessions") == 0
    assert not writer.connection.in_transaction
    assert writer.write(lambda connection: (add_session(connection), "done")[1]) == "done"


def test_a_write_within_a_write_belongs_to_it(writer: Writer) -> None:
    def outer(connection: Connection) -> None:
        writer.write(add_session)
        assert connection.in_transaction
        raise KeyError("undo both")

    with pytest.raises(KeyError):
        writer.write(outer)
    assert writer.row("SELECT * FROM sessions") is None


def test_threads_share_a_handle(writer: Writer) -> None:
    writer.write(add_session)

    def append(name: str) -> None:
        for number in range(50):
            writer.write(lambda connection, text=f"{name} {number}": add_message(connection, text))  # type: ignore[misc]

    threads = [threading.Thread(target=append, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [row[0] for row in writer.rows("SELECT content FROM messages ORDER BY id")]
    assert len(found) == 200
    for name in "abcd":
        assert [text for text in found if text.startswith(name)] == [f"{name} {n}" for n in range(50)]


def test_a_writer_waits_for_a_lock_that_is_held_for_five_seconds(writer: Writer) -> None:
    writer.write(add_session)
    holder = holding(writer.path, 5)
    began = time.monotonic()
    writer.write(lambda connection: add_message(connection, "patient"))
    assert 4 < time.monotonic() - began < 12
    assert [row[0] for row in writer.rows("SELECT content FROM messages")] == ["patient"]
    assert holder.wait(10) == 0


def test_patience_ends_with_the_wait_and_the_holder(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention.Patience.__init__, "__defaults__", (2,))
    writer.write(add_session)
    holder = holding(writer.path, 20)
    try:
        with pytest.raises(StoreBusyError) as caught:
            writer.write(lambda connection: add_message(connection, "in vain"))
    finally:
        holder.kill()
        holder.wait()
    assert isinstance(caught.value, sqlite3.OperationalError)
    assert 1.9 < caught.value.waited_s < 6
    assert f"{caught.value.waited_s:.1f} s" in str(caught.value)
    if sys.platform.startswith("linux"):
        assert f"process {holder.pid}" in str(caught.value)
        assert Path(sys.executable).name in str(caught.value)
    assert writer.value("SELECT count(*) FROM messages") == 0
    writer.write(lambda connection: add_message(connection, "then it goes on"))


@linux
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_the_holder_of_a_lock_has_a_name(small_store: Callable[..., Path], mode: str) -> None:
    path = small_store(journal=mode)
    assert contention.holder_of(path) is None
    holder = holding(path, 20)
    try:
        found = contention.holder_of(path)
    finally:
        holder.kill()
        holder.wait()
    assert found is not None and found.startswith(f"process {holder.pid} (")


@pytest.mark.parametrize(
    ("error", "busy"),
    [("database is locked", True), ("no such table: locked", False), ("near \"busy\": syntax error", False)],
)
def test_without_a_result_code_only_the_words_of_sqlite_count(error: str, busy: bool) -> None:
    assert contention.is_busy(sqlite3.OperationalError(error)) is busy


def test_a_table_named_locked_is_no_lock(writer: Writer) -> None:
    began = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        writer.write(lambda connection: connection.execute("INSERT INTO locked_and_busy VALUES (1)"))
    assert time.monotonic() - began < 0.5


def test_a_full_disk_is_said_and_loses_nothing(writer: Writer) -> None:
    writer.write(add_session)
    first = writer.write(lambda connection: add_message(connection, "kept"))
    limit = writer.value("PRAGMA page_count")
    writer.connection.execute(f"PRAGMA max_page_count = {limit}").fetchall()
    with pytest.raises(StoreFullError, match="no room"):
        writer.write(lambda connection: add_message(connection, "x" * 1_000_000))
    writer.connection.execute("PRAGMA max_page_count = 1000000").fetchall()
    writer.write(lambda connection: add_message(connection, "after"))
    assert [row[0] for row in writer.rows("SELECT content FROM messages")] == ["kept", "after"]
    assert first == 1
    assert writer.value("PRAGMA integrity_check") == "ok"


def test_a_store_that_was_replaced_is_not_written_to(writer: Writer) -> None:
    writer.write(add_session)
    writer.path.rename(writer.path.with_name("moved.db"))
    with pytest.raises(StoreAccessError, match="removed or replaced"):
        writer.write(lambda connection: add_message(connection, "for nobody"))


@needs_wal
def test_a_log_that_was_removed_is_not_written_to(writer: Writer) -> None:
    writer.write(add_session)
    Path(f"{writer.path}-wal").unlink()
    with pytest.raises(StoreAccessError, match="removed or replaced"):
        writer.write(lambda connection: add_message(connection, "for nobody"))


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_text_comes_back_as_it_went_in(text: str) -> None:
    with_memory = _memory()
    assert with_memory.execute("SELECT ?", (text,)).fetchone()[0] == text


def _memory() -> Connection:
    connection = sqlite3.connect(":memory:")
    connection.text_factory = opening.decode_text
    return connection


def test_invalid_utf_8_is_read_with_replacement_characters(writer: Writer) -> None:
    writer.write(add_session)
    writer.write(
        lambda connection: connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) "
            "VALUES ('a', 'user', CAST(X'6869FF' AS TEXT), 1)"
        )
    )
    assert writer.value("SELECT content FROM messages") == "hi\ufffd"


def test_a_message_of_50_megabytes_is_stored(writer: Writer) -> None:
    writer.write(add_session)
    text = "long " * 10_000_000
    writer.write(lambda connection: add_message(connection, text))
    assert writer.value("SELECT content FROM messages") == text


@needs_wal
def test_a_handle_that_gives_the_log_up_goes_on_writing(writer: Writer) -> None:
    writer.write(add_session)
    assert writer.value("PRAGMA journal_mode = DELETE") == "delete"
    writer.write(lambda connection: add_message(connection, "without a log"))
    assert writer.value("SELECT count(*) FROM messages") == 1


@needs_wal
def test_a_link_leads_to_the_store_and_its_log(tmp_path: Path) -> None:
    link = tmp_path / "links" / "state.db"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "real.db")
    writer = Writer(link)
    writer.write(add_session)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["links", "real.db", "real.db-shm", "real.db-wal"]
    (tmp_path / "real.db-wal").unlink()
    with pytest.raises(StoreAccessError, match="removed or replaced"):
        writer.write(lambda connection: add_message(connection, "for nobody"))
    writer.close()


def test_a_relative_path_holds_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    writer = Writer("state.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer.write(add_session)
    writer.close()
    reader = Writer(tmp_path / "state.db", read_only=True)
    assert reader.value("SELECT count(*) FROM sessions") == 1
    reader.close()


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


# The log


@needs_wal
def test_closing_empties_the_log_and_can_be_done_twice(path: Path) -> None:
    writer, other = Writer(path), Writer(path, read_only=True)
    writer.write(add_session)
    assert checkpoints.wal_bytes(path) > 0
    writer.close()
    assert checkpoints.wal_bytes(path) == 0
    writer.close()
    other.close()


@needs_wal
def test_fifty_writes_start_a_checkpoint_on_another_thread(writer: Writer) -> None:
    writer.write(add_session)
    writer.connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    size = writer.path.stat().st_size
    for number in range(48):
        writer.write(lambda connection, text=str(number): add_message(connection, text * 500))  # type: ignore[misc]
    assert writer.path.stat().st_size == size, "nothing was checkpointed yet"
    writer.write(lambda connection: add_message(connection, "the fiftieth"))
    writer._checkpoints.wait()
    assert writer.path.stat().st_size > size


@needs_wal
def test_a_big_log_is_emptied_unless_a_reader_needs_it(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "TRUNCATE_ABOVE_BYTES", 100_000)
    monkeypatch.setattr(checkpoints, "EVERY_N_WRITES", 1)
    writer.write(add_session)
    reader = sqlite3.connect(writer.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages").fetchone()
    writer.write(lambda connection: add_message(connection, "x" * 300_000))
    writer._checkpoints.wait()
    assert checkpoints.wal_bytes(writer.path) > 300_000
    reader.execute("ROLLBACK")
    writer.write(lambda connection: add_message(connection, "y"))
    writer._checkpoints.wait()
    assert checkpoints.wal_bytes(writer.path) == 0
    reader.close()
