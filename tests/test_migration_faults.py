"""Migrating while others start, and dying in the middle of it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from state_ledger import migrate
from state_ledger.full_text import rewrite as index_rewrite
from state_ledger.sqlite import sqlite3
from state_ledger.writing.writer import Writer
from tests.conftest import fewer
from tests.migrated import MESSAGE_COLUMNS, assert_sound, live_columns, rows, totals

OPEN = """
import sys, time
from state_ledger import migrate
from state_ledger.full_text import rewrite as index_rewrite
from state_ledger.writing.writer import Writer
if len(sys.argv) > 2:
    migrate.LARGE_MESSAGES, index_rewrite.ROWS_PER_STEP = 0, 10
print("ready", flush=True)
sys.stdin.readline()
writer = Writer(sys.argv[1])
if len(sys.argv) > 2:
    index_rewrite.optimize_fts_storage(writer)
writer.close()
"""
"""Opens argv[1] after a line of input; with a further argument its indexes are rewritten in steps."""


def _start(path, *arguments):
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", OPEN, str(path), *arguments], stdin=pipe, stdout=pipe, text=True)
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


@pytest.mark.skipif(os.name != "posix", reason="needs a signal that cannot be caught")
@pytest.mark.parametrize("in_steps", [False, True], ids=["on-opening", "in-steps"])
@pytest.mark.parametrize("name", ["small-1.db", "schema-16.db", "schema-22.db"])
def test_killed_at_any_instant_it_is_as_before_or_as_after(shared_store, tmp_path, name, in_steps):
    origin = shared_store(name)
    had = live_columns(origin, "messages")
    before, money = rows(origin, "messages", MESSAGE_COLUMNS), totals(origin)
    arguments = ["in steps"] if in_steps else []
    began = time.monotonic()
    trial = tmp_path / "trial.db"
    shutil.copyfile(origin, trial)
    process = _start(trial, *arguments)
    began = time.monotonic()
    _go(process)
    assert process.wait(timeout=60) == 0
    takes = time.monotonic() - began
    chance = random.Random(f"{name} {in_steps}")
    cut_short = 0
    for attempt in range(fewer(8, 4)):
        path = tmp_path / f"killed-{attempt}.db"
        shutil.copyfile(origin, path)
        process = _start(path, *arguments)
        _go(process)
        time.sleep(chance.uniform(0, takes))
        process.send_signal(signal.SIGKILL)
        cut_short += process.wait(timeout=60) == -signal.SIGKILL
        assert rows(path, "messages", MESSAGE_COLUMNS, had) == before
        assert totals(path) == money
        Writer(path).close()
        writer = Writer(path)
        index_rewrite.optimize_fts_storage(writer)
        assert migrate.plan(writer.connection) == []
        writer.close()
        assert rows(path, "messages", MESSAGE_COLUMNS, had) == before
        assert totals(path) == money
        assert_sound(path)
    assert cut_short


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
