"""Waiting for a store that another program has locked: how long, and for whom.

Source: store-format, section 4 ("Write"). SQLite waits a second by itself; then we sleep a random
moment and try again, so that several waiting programs do not come back in step.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from state_ledger.errors import StoreBusyError
from state_ledger.sqlite import Connection, sqlite3

T = TypeVar("T")

BUSY_TIMEOUT_S = 1.0
"""How long SQLite itself waits for a lock within one try."""
MAX_RETRIES = 15
RETRY_MIN_S = 0.020
RETRY_MAX_S = 0.150

POLL_MIN_S = 0.0005
POLL_MAX_S = 0.002
"""How often somebody asks for the lock who had to wait for it lately.

SQLite asks ever more rarely, every 100 ms in the end. A program that writes without pause gives the
lock back for a tenth of a millisecond at a time, so that of eight of them an unlucky one waited up to
10 s. When all of them ask alike often, each gets its share.
"""
WAITED_S = 0.005
"""Who got the lock sooner did not wait for it, but perhaps for its turn on the processor."""
REMEMBERED_S = 1.0
"""How long a wait makes a writer ask often."""

_BUSY, _LOCKED = 5, 6  # SQLITE_BUSY and SQLITE_LOCKED; Python names them from 3.11 on
_BUSY_MESSAGES = ("database is locked", "database table is locked", "database schema is locked")

_PENDING_BYTE = 0x40000000
_SHARED_LAST = _PENDING_BYTE + 511
_WAL_WRITE_BYTE = 120


class Patience:
    """How much longer one write may wait for the lock.

    >>> patience = Patience(path)
    >>> while True:
    ...     try:
    ...         return attempt()
    ...     except sqlite3.OperationalError as error:
    ...         patience.pause(error)
    """

    def __init__(self, path: Path, retries: int = MAX_RETRIES) -> None:
        self._path = path
        self._left = retries
        self._began = time.monotonic()

    def pause(self, error: sqlite3.OperationalError) -> None:
        """Sleeps before the next try.

        Raises `error` itself if it is not about a lock, StoreBusyError if there were enough tries.
        """
        if not is_busy(error):
            raise error
        self._left -= 1
        if self._left <= 0:
            waited = time.monotonic() - self._began
            raise StoreBusyError(self._path, waited, holder_of(self._path)) from error
        time.sleep(random.uniform(RETRY_MIN_S, RETRY_MAX_S))


class Queue:
    """How the writes of one handle stand in line for the lock.

    As SQLite does it while nobody is in the way, by asking often once somebody was.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._eager_until = 0.0

    def begin(self) -> None:
        """Begins a transaction that writes, waiting a second for the lock.

        Raises sqlite3.OperationalError if another has the lock still.
        """
        began = time.monotonic()
        try:
            if began < self._eager_until:
                self._ask_often(began + BUSY_TIMEOUT_S)
            else:
                self._connection.execute("BEGIN IMMEDIATE")
        finally:
            ended = time.monotonic()
            if ended - began > WAITED_S:
                self._eager_until = ended + REMEMBERED_S

    def _ask_often(self, deadline: float) -> None:
        before = self._connection.execute("PRAGMA busy_timeout").fetchone()[0]
        self._connection.execute("PRAGMA busy_timeout = 0").fetchall()
        try:
            while True:
                try:
                    self._connection.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or time.monotonic() > deadline:
                        raise
                time.sleep(random.uniform(POLL_MIN_S, POLL_MAX_S))
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {before}").fetchall()


def patiently(path: Path, attempt: Callable[[], T]) -> T:
    """Runs `attempt()` until it is not kept out by a lock; it has to be harmless to run it again.

    Raises StoreBusyError when patience runs out, and whatever else `attempt` raises.
    """
    patience = Patience(path)
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            patience.pause(error)


def result_code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code of an error; None where Python (before 3.11) does not tell."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def is_busy(error: sqlite3.Error) -> bool:
    """Whether an error says that somebody else has the lock, which passes."""
    code = result_code(error)
    if code is not None:
        return code in (_BUSY, _LOCKED)
    # SQLite's own words and nothing else: a row or a table may have "locked" in its name.
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith(_BUSY_MESSAGES)


def holder_of(path: Path) -> str | None:
    """Who holds the write lock of a store, for instance `process 4711 (python -m gateway)`.

    Linux only, from /proc/locks: the write lock is a byte of `-shm` with a write-ahead log, else one
    of the store itself. None if nobody holds it any more or the system does not tell.
    """
    if not sys.platform.startswith("linux"):
        return None
    places = {}
    base = os.path.realpath(path)
    for file, first, last in (
        (Path(base), _PENDING_BYTE, _SHARED_LAST),
        (Path(f"{base}-shm"), _WAL_WRITE_BYTE, _WAL_WRITE_BYTE),
    ):
        try:
            places[file.stat().st_ino] = (first, last)
        except OSError:
            continue
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        pid = _writer_in(line, places)
        if pid is not None:
            return describe(pid)
    return None


def _writer_in(line: str, places: dict[int, tuple[int, int]]) -> int | None:
    """The process of a line of /proc/locks, if it is about a write lock on one of the places.

    A line: `1: POSIX  ADVISORY  WRITE 4711 fe:01:1234 1073741825 1073741825`; one that waits has `->`.
    """
    words = line.split()
    if "->" in words or len(words) != 8 or words[3] != "WRITE":
        return None
    inode = words[5].rpartition(":")[2]
    place = places.get(int(inode)) if inode.isdigit() else None
    if place is None or not words[6].isdigit() or not words[4].isdigit():
        return None
    first, last = int(words[6]), sys.maxsize if words[7] == "EOF" else int(words[7])
    return int(words[4]) if first <= place[1] and last >= place[0] else None


def describe(pid: int) -> str:
    """A process for a reader: its number and how its command begins."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\x00")
    except OSError:
        return f"process {pid}"
    # Enough to know the program by; what follows may be long, or secret.
    command = " ".join(word for word in words[:3] if word)
    return f"process {pid} ({' '.join(command.split())[:80]})" if command else f"process {pid}"
