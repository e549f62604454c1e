"""Bringing the write-ahead log back into the store, off the path of whoever writes.

Source: design, "Writing"; store-format, section 4 ("Checkpoint").
"""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from pathlib import Path

from state_ledger.sqlite import Connection, sqlite3
from state_ledger.writing.journal import has_wal_reset_bug

EVERY_N_WRITES = 50
TRUNCATE_ABOVE_BYTES = 64 << 20
"""A log that grew beyond this is emptied when no reader needs it; otherwise it keeps its size."""
TRUNCATE_PATIENCE_S = 0.1
"""Emptying the log holds writers up while it waits for readers, so it waits this short only."""


class Checkpoints:
    """Counts the writes of one handle, and checkpoints on a thread and a connection of its own.

    Does nothing for a store without a write-ahead log, and nothing on an SQLite with the WAL-reset
    bug, where a checkpoint beside a writer is what corrupts; SQLite's own checkpoints remain.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writes = 0
        self._thread: threading.Thread | None = None

    def count(self) -> None:
        """One more write was committed; each fiftieth starts a checkpoint, unless one runs."""
        self._writes += 1
        if self._writes % EVERY_N_WRITES or (self._thread is not None and self._thread.is_alive()):
            return
        if wal_bytes(self._path) == 0 or has_wal_reset_bug():
            return
        self._thread = threading.Thread(target=self._run, name="state-ledger-checkpoint")
        with suppress(RuntimeError):  # no thread can be started while the interpreter ends
            self._thread.start()

    def wait(self) -> None:
        """Returns when no checkpoint runs any more."""
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        # The next fiftieth write tries again: a checkpoint that fails loses nothing.
        with (
            suppress(sqlite3.DatabaseError),
            closing(sqlite3.connect(self._path, timeout=TRUNCATE_PATIENCE_S, isolation_level=None)) as own,
        ):
            own.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            if wal_bytes(self._path) > TRUNCATE_ABOVE_BYTES:
                truncate(own)


def truncate(connection: Connection) -> bool:
    """Tries to bring the whole log into the store and to empty it; False if somebody is in the way."""
    if has_wal_reset_bug():
        return False
    before = connection.execute("PRAGMA busy_timeout").fetchone()[0]
    connection.execute(f"PRAGMA busy_timeout = {int(TRUNCATE_PATIENCE_S * 1000)}").fetchall()
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {before}").fetchall()
    return not busy


def wal_bytes(path: Path) -> int:
    """The size of a store's write-ahead log; 0 if it has none."""
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0
