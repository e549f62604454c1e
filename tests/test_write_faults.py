"""Many processes on one store, some of them killed, and a disk that is full: nothing acknowledged is lost.

`STATE_LEDGER_STRESS=1` runs the long form: 2,500 appends per process instead of 300.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from state_ledger import full_text
from state_ledger.errors import StoreFullError
from state_ledger.session_db import SessionDB
from state_ledger.sqlite import sqlite3
from state_ledger.writing import journal
from tests import prepared
from tests.conftest import ROOT, STRESS, fewer, unix

PROCESSES = 8
APPENDS = 2500 if STRESS else fewer(300, 60)
KILLS = 150 if STRESS else fewer(25, 8)
KILL_EVERY_S = 0.2


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


def assert_clean(path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for index in (full_text.WORDS, full_text.TRIGRAMS):
            full_text.check(connection, index)
        assert connection.execute("SELECT count(*) FROM schema_version").fetchone() == (1,)
        wrong = connection.execute(
            "SELECT id FROM sessions WHERE message_count <> "
            "(SELECT count(*) FROM messages WHERE session_id = sessions.id)"
        ).fetchall()
        assert wrong == []
    finally:
        connection.close()


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


@unix
def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    chance = random.Random(3)
    running: dict[str, subprocess.Popen[str]] = {}
    acknowledged: dict[str, list[int]] = {}
    born = 0

    def start() -> None:
        nonlocal born
        running[f"session {born}"] = appender(path, f"session {born}", 1_000_000)
        born += 1

    def end(name: str) -> None:
        process = running.pop(name)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        assert "Error" not in err, err
        # The last line is whole or empty: each is one write to the pipe.
        acknowledged[name] = [int(line) for line in out.split()]

    for _ in range(4):
        start()
    kills = 0
    while kills < KILLS:
        time.sleep(KILL_EVERY_S)
        # Only who has written something: on a busy machine a process needs longer than that to begin.
        writing = [name for name, process in running.items() if select.select([process.stdout], [], [], 0)[0]]
        if writing:
            end(chance.choice(writing))
            start()
            kills += 1
    for name in list(running):
        end(name)

    assert sum(map(len, acknowledged.values())) > 4 * KILLS
    for name, numbers in acknowledged.items():
        stored = contents(path, name)
        assert numbers == list(range(len(numbers)))
        # One more may have been stored before the process could say so.
        assert len(stored) - len(numbers) in (0, 1)
        assert stored == [f"{name} {number}" for number in range(len(stored))]
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
