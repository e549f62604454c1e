"""Compression locks: who gets one, who loses it, whom it keeps out."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from state_ledger.errors import CompressionSessionBusyError, CompressionSessionClosedError
from state_ledger.session_db import SessionDB


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        opened.create_session("s", "cli")
        yield opened


def test_a_lock_has_one_holder(db: SessionDB) -> None:
    assert db.try_acquire_compression_lock("s", "one")
    assert not db.try_acquire_compression_lock("s", "two")
    assert db.get_compression_lock_holder("s") == "one"
    assert db.try_acquire_compression_lock("s", "one"), "its holder may take it again"
    db.release_compression_lock("s", "two")
    assert db.get_compression_lock_holder("s") == "one"
    db.release_compression_lock("s", "one")
    assert db.get_compression_lock_holder("s") is None
    assert db.try_acquire_compression_lock("s", "two")


def test_a_lock_without_a_session_is_not_given(db: SessionDB) -> None:
    assert not db.try_acquire_compression_lock("", "one")
    assert db.try_acquire_compression_lock("a session that is not stored yet", "one")


def test_a_lock_runs_out_and_can_still_be_renewed_by_its_holder(db: SessionDB) -> None:
    assert db.try_acquire_compression_lock("s", "one", ttl_seconds=0.01)
    time.sleep(0.05)
    assert db.get_compression_lock_holder("s") is None
    assert not db.refresh_compression_lock("s", "two")
    assert db.refresh_compression_lock("s", "one")
    assert db.get_compression_lock_holder("s") == "one"
    db.refresh_compression_lock("s", "one", 0.01)
    time.sleep(0.05)
    assert db.try_acquire_compression_lock("s", "two")
    assert not db.refresh_compression_lock("s", "one")


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not asked after there")
def test_the_lock_of_a_process_that_ended_is_taken_over(db: SessionDB) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert db.try_acquire_compression_lock("s", f"host:pid={process.pid}:x")
    assert not db.try_acquire_compression_lock("s", "two")
    process.communicate(b"\n")
    assert db.try_acquire_compression_lock("s", "two")
    for odd in ("pid=", "pid=0", "stupid=999999999", "pid=99999999999999999999999"):
        assert db.try_acquire_compression_lock(odd, odd)
        assert not db.try_acquire_compression_lock(odd, "two"), odd


def test_of_many_that_ask_at_once_one_gets_it(db: SessionDB) -> None:
    got: list[str] = []

    def ask(name: str) -> None:
        with SessionDB(db.db_path) as own:
            if own.try_acquire_compression_lock("s", name):
                got.append(name)

    threads = [threading.Thread(target=ask, args=(f"thread {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [db.get_compression_lock_holder("s")]


def test_a_lock_keeps_the_messages_of_others_out(db: SessionDB) -> None:
    db.try_acquire_compression_lock("s", "one")
    with pytest.raises(CompressionSessionBusyError):
        db.append_message("s", "user", "from somebody")
    db.append_message("s", "user", "from the holder", compression_lock_holder="one")
    db.release_compression_lock("s", "one")
    db.append_message("s", "user", "from anybody")
    assert [row["content"] for row in db.get_messages("s")] == ["from the holder", "from anybody"]


def test_a_session_closed_by_compression_takes_no_messages(db: SessionDB) -> None:
    db.end_session("s", "compression")
    with pytest.raises(CompressionSessionClosedError) as caught:
        db.append_message("s", "user", "too late")
    assert caught.value.session_id == "s"
    assert isinstance(caught.value, RuntimeError)
    db.reopen_session("s")
    db.end_session("s", "cli_close")
    db.append_message("s", "user", "any other end does not matter")
