"""Migrating while others start, and failing in the middle of it."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from state_ledger import migrate
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests.migrated import MESSAGE_COLUMNS, assert_sound, live_columns, rows, totals

OPEN = """
import sys
from state_ledger.writing.writer import Writer
print("ready", flush=True)
sys.stdin.readline()
Writer(sys.argv[1]).close()
"""
"""Opens argv[1] after a line of input."""


def _start(path):
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", OPEN, str(path)], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def _go(process):
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("name", ["small-1.db", "small-10.db", "schema-16.db", "small-21.db"])
def test_several_processes_open_one_old_store_at_once(shared_store, name):
    path = shared_store(name)
    had = live_columns(path, "messages")
    before, money = rows(path, "messages", MESSAGE_COLUMNS), totals(path)
    processes = [_start(path) for _ in range(4)]
    for process in processes:
        _go(process)
    assert [process.wait(timeout=60) for process in processes] == [0] * 4
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT version FROM schema_version").fetchall() == [(23,)]
    assert migrate.plan(connection) == []
    connection.close()
    assert rows(path, "messages", MESSAGE_COLUMNS, had) == before
    assert totals(path) == money
    assert_sound(path)


def test_opening_waits_for_another_writer(shared_store):
    path = shared_store("small-19.db")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    process = _start(path)
    _go(process)
    time.sleep(2)
    assert process.poll() is None
    holder.execute("COMMIT")
    holder.close()
    assert process.wait(timeout=60) == 0
    assert_sound(path)


def test_an_error_in_the_middle_leaves_the_store_as_it_was(shared_store, monkeypatch):
    path = shared_store("small-20.db")
    before = path.read_bytes()

    def fail(connection):
        raise RuntimeError("in the middle")

    monkeypatch.setattr(migrate, "_make_indexes", fail)
    with pytest.raises(RuntimeError):
        Writer(path)
    assert path.read_bytes() == before
    monkeypatch.undo()
    Writer(path).close()
    assert_sound(path)
