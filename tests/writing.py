"""What tests of writing share: rows to write, and a process that keeps others out."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from state_ledger.sqlite import Connection
from state_ledger.writing import journal

needs_wal = pytest.mark.skipif(journal.has_wal_reset_bug(), reason="this SQLite makes files without a log")


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
