"""One handle on a store: how it writes, whom it waits for, what becomes of its log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger.errors import StoreAccessError, StoreBusyError, StoreFullError
from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing import checkpoints, contention, opening
from state_ledger.writing.writer import Writer
from tests.writing import add_message, add_session, holding, needs_wal

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc/locks is Linux's")


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
