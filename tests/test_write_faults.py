"""Many processes on one store, and a disk that is full: nothing acknowledged is lost.

`STATE_LEDGER_STRESS=1` runs the long form: 2,500 appends per process instead of 300.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from state_ledger.errors import StoreFullError
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from state_ledger.writing import journal
from tests import prepared
from tests.conftest import ROOT, STRESS, fewer
from tests.killing import assert_clean

PROCESSES = 8
APPENDS = 2500 if STRESS else fewer(300, 60)


def appender(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.appending", str(path), name, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def append_at_once(path: Path, names: list[str], count: int) -> list[subprocess.CompletedProcess[str]]:
    """Processes that do nothing else, one for each name, of which none waits for its imports."""

    def append(name: str) -> subprocess.CompletedProcess[str]:
        return prepared.run("-m", "tests.appending", path, name, str(count), timeout=900)

    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(append, names))


def contents(path: Path, session: str) -> list[str]:
    with SessionDB(path, read_only=True) as db:
        return [row["content"] for row in db.get_messages(session)]


@pytest.mark.parametrize("log", [True, False], ids=["with a log", "without a log"])
def test_eight_processes_append_without_pause(tmp_path: Path, log: bool) -> None:
    path = tmp_path / "state.db"
    if log and journal.has_wal_reset_bug():
        pytest.skip("this SQLite makes files without a log")
    if not log:
        with SessionDB(path) as db:
            db._conn.execute("PRAGMA journal_mode = DELETE").fetchone()
    names = [f"session {number}" for number in range(PROCESSES)]
    count = APPENDS if log else APPENDS // 3
    for ended in append_at_once(path, names, count):
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.split() == [str(number) for number in range(count)]
    for name in names:
        assert contents(path, name) == [f"{name} {number}" for number in range(count)]
    assert_clean(path)


def test_eight_processes_start_at_once_on_a_new_store(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(PROCESSES)]
    for attempt in range(3):
        path = tmp_path / f"{attempt}" / "state.db"
        for ended in append_at_once(path, names, 1):
            assert (ended.returncode, ended.stdout) == (0, "0\n"), ended.stderr
        assert [contents(path, name) for name in names] == [[f"{name} 0"] for name in names]
        assert_clean(path)


def test_a_full_disk_is_an_error_and_keeps_earlier_rows(disk: Callable[[int], Path]) -> None:
    small_disk = disk(4)
    path = small_disk / "state.db"
    stored = []
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        with pytest.raises(StoreFullError, match="no room"):
            for number in range(1000):
                text = f"{number} {os.urandom(10_000).hex()}"
                db.append_message("s", "user", text)
                stored.append(text)
        assert stored
        assert [row["content"] for row in db.get_messages("s")] == stored
    assert contents(path, "s") == stored
    # On the full disk the log could not be brought in; checking the indexes needs room too.
    copy = small_disk.parent / "copy.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    assert_clean(copy)
