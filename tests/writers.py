"""Those who write to a store while it is read: one that never stops, one that never finished."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from state_ledger.sqlite import sqlite3

WRITER = """
import sys, time
from state_ledger.sqlite import sqlite3
path, seconds = sys.argv[1], float(sys.argv[2])
connection = sqlite3.connect(path, timeout=0, isolation_level=None)
locked = written = 0
print("ready", flush=True)
end = time.monotonic() + seconds
while time.monotonic() < end:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO messages (session_id, role, content, timestamp) "
                           "VALUES ('first', 'user', 'more', 1)")
        connection.execute("COMMIT")
        written += 1
    except sqlite3.OperationalError as error:
        locked += 1
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    time.sleep(0.002)
print(written, locked)
"""
"""Python code: appends messages to argv[1] for argv[2] seconds without ever waiting for a lock; prints how
many it wrote and how often it was locked out, after a line `ready`."""


def crashed_in_the_middle_of_a_write(small_store: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of a store and its journal, taken while a writer had spilled half a transaction."""
    live, path = small_store("live.db"), tmp_path / "crashed.db"
    writer = sqlite3.connect(live, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE messages SET content = 'half'")
    writer.executemany(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('first', 'user', ?, 1)",
        [("x" * 2000,)] * 200,
    )
    for suffix in ("", "-journal"):
        shutil.copyfile(f"{live}{suffix}", f"{path}{suffix}")
    writer.execute("ROLLBACK")
    writer.close()
    os.utime(f"{path}-journal", (1, 1))
    return path
