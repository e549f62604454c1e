"""Which journal a store keeps: a write-ahead log unless something speaks against it.

Source: store-format, section 4 ("Journal mode").
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from state_ledger.sqlite import Connection, sqlite3, version_info
from state_ledger.writing.contention import result_code

_log = logging.getLogger(__name__)

_PROTOCOL, _AUTH = 15, 23
_REFUSALS = ("locking protocol", "not authorized")


def has_wal_reset_bug(version: tuple[int, ...] | None = None) -> bool:
    """Whether an SQLite can corrupt a file when two connections reset its write-ahead log at once.

    version: `(3, 40, 1)`, by default that of the linked library. So do 3.7.0 to 3.51.2 but 3.50.7
    and later of 3.50, and 3.44.6 and later of 3.44.
    """
    number = (*(version_info if version is None else version), 0, 0)[:3]
    if (3, 44, 6) <= number < (3, 45) or (3, 50, 7) <= number < (3, 51):
        return False
    return (3, 7) <= number <= (3, 51, 2)


def choose(connection: Connection, path: Path) -> str:
    """Sets the journal mode of a new, empty file and returns it: `wal` or `delete`.

    `delete` on an SQLite with the WAL-reset bug and on a file system that refuses a write-ahead log
    (network file systems do), each with a warning that says why. A file that is in write-ahead mode
    already stays so.
    Raises sqlite3.OperationalError if the file is locked, or if it is in write-ahead mode and the
    file system refuses that.
    """
    mode = mode_of(connection)
    if mode == "wal":
        return mode
    if has_wal_reset_bug():
        _log.warning(
            "%s is made without a write-ahead log: SQLite %s can corrupt a file that has one "
            "(the WAL-reset bug). Writers and readers will wait for each other; install pysqlite3 or "
            "SQLite 3.51.3 to have the log.",
            path,
            sqlite3.sqlite_version,
        )
        return _set(connection, "delete")
    try:
        mode = _set(connection, "wal")
    except sqlite3.DatabaseError as error:  # Python's class for "not authorized"
        if not refuses_wal(error):
            raise
        reason = str(error)
    else:
        if mode == "wal":
            return mode
        reason = f"SQLite stayed in mode {mode}"
    _log.warning(
        "%s is made without a write-ahead log: its file system refuses one (%s), as network file systems "
        "do. Writers and readers will wait for each other.",
        path,
        reason,
    )
    return _set(connection, "delete")


def mode_of(connection: Connection) -> str:
    """The journal mode a connection finds: `wal`, `delete`, …"""
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0]).lower()


def refuses_wal(error: sqlite3.Error) -> bool:
    """Whether an error is how a file system without shared memory or locks answers."""
    code = result_code(error)
    return code in (_PROTOCOL, _AUTH) if code is not None else str(error) in _REFUSALS


def make_durable(connection: Connection) -> None:
    """On macOS, where a plain fsync leaves data in the drive's cache, asks for the full one."""
    if sys.platform == "darwin":
        connection.execute("PRAGMA checkpoint_fullfsync = 1").fetchall()
        connection.execute("PRAGMA synchronous = FULL").fetchall()


def _set(connection: Connection, mode: str) -> str:
    return str(connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0]).lower()
