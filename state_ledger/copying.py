"""Copying a store whole, as it was at one moment, while others may write to it.

A live store is copied by SQLite's backup API: the bytes of the main file alone lack what is in the
write-ahead log. With a log the copy is made within one read transaction, which holds no writer up, so
that no write makes it begin again; only the log waits to be emptied until it ends. Without a log a
reader keeps writers out, so a large store is read a step at a time, and anew when somebody wrote.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from state_ledger import access, private, unfinished
from state_ledger.errors import StoreAccessError, StoreBusyError, StoreFullError, StoreUnreadableError
from state_ledger.sqlite import Connection, read_only_uri, sqlite3
from state_ledger.writing.contention import holder_of, is_busy, result_code

STEP_BYTES = 1 << 20
"""What one step of a backup reads before it lets others in."""
PAUSE_S = POLL_S = 0.001
RESTARTS = 3
"""A backup in steps begins again when somebody writes between two; how often that is put up with."""
HELD_BYTES = 64 << 20
"""Up to this size a store without a write-ahead log is read in one go, which takes less than a writer waits."""
PATIENCE_S = 60.0
"""How long one attempt waits for a writer that holds the whole file."""
ATTEMPTS = 5
_LOCKED = (5, 6)  # SQLITE_BUSY and SQLITE_LOCKED; Python names them from 3.11 on
_IOERR = 10
_FULL = "database or disk is full"

T = TypeVar("T")
Tell = Callable[[int, int], None]
"""Told of bytes done and bytes in all, as often as a step ends."""


class _KeptChangingError(Exception):
    """Somebody wrote while the copy was made."""


@dataclass(frozen=True)
class Witness(Generic[T]):
    """Who looks at the store at the moment of its copy.

    prepare: called with a connection to the store before that moment, for what ends a transaction. look: called
    with the same connection when it sees exactly what is copied.
    """

    prepare: Callable[[Connection], object]
    look: Callable[[Connection], T]


def copy(path: Path, target: Path, *, witness: Witness[T] | None = None, tell: Tell | None = None) -> T | None:
    """Copies a store to `target`, a new file that only this user may read, its log included.

    Returns what the witness saw; None where it cannot be known, see `Backup.compared`. Nothing is written
    beside the store and no writer is held up.
    Raises StoreAccessError if the store cannot be copied, StoreBusyError if it stays locked, StoreFullError if
    there is no room; what is left of `target` then is the caller's to remove.
    """
    for _ in range(ATTEMPTS):
        unfinished.remove(target)
        private.new_file(target)
        try:
            return _attempt(path, target, witness, tell)
        except _KeptChangingError:
            time.sleep(0.2)
    raise StoreAccessError(
        path, f"{path} changes faster than it can be copied.", "Try again when the agent has less to write."
    )


def size_of(path: Path) -> int:
    """About how many bytes a copy takes. Raises StoreAccessError if there is no store to read."""
    access.header_of(path)
    return path.stat().st_size + access.Sidecars.of(path).wal_bytes


def settle(source: Path, target: Path) -> None:
    """Recovers a copy and leaves it a single file that needs nothing beside it."""
    try:
        with closing(sqlite3.connect(target)) as made:
            made.execute("PRAGMA synchronous = OFF")
            made.execute("SELECT count(*) FROM sqlite_master").fetchone()
            made.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.DatabaseError as error:
        raise _unreadable(source, error) from error


def _attempt(path: Path, target: Path, witness: Witness[T] | None, tell: Tell | None) -> T | None:
    before = access.moment(path)
    if access.at_rest(path):  # a connection that may wait for others would leave files beside it
        if access.Sidecars.of(path).wal_bytes:
            _copy_with_log(path, target)
            return None
        with closing(_connect(read_only_uri(path, immutable=True))) as source:
            seen = _back_up(path, source, target, witness, tell, held=True)
        if access.moment(path) != before:
            raise _KeptChangingError
        return seen
    try:
        access.check(path)
    except StoreAccessError as refusal:
        if not refusal.snapshot_possible:
            raise
        _copy_with_log(path, target)
        return None
    held = access.is_wal(access.header_of(path)) or path.stat().st_size <= HELD_BYTES
    with closing(_connect(read_only_uri(path))) as source:
        return _back_up(path, source, target, witness, tell, held=held)


def _copy_with_log(path: Path, target: Path) -> None:
    """Copies a file that nobody has open, with the log or journal of a program that crashed.

    SQLite then recovers the copy, in its own folder: recovering the store is its owner's to do. That
    nobody wrote meanwhile is seen by the sizes and times of the files before and after.
    """
    before = access.moment(path)
    base = os.path.realpath(path)
    try:
        access.copy_bytes(path, target)
        sidecars = access.Sidecars.of(path)
        for suffix, sidecar in (("-wal", sidecars.wal), ("-journal", sidecars.journal)):
            if sidecar is not None and sidecar.st_size:
                shutil.copyfile(f"{base}{suffix}", f"{target}{suffix}")
                Path(f"{target}{suffix}").chmod(0o600)
    except OSError as error:
        raise StoreAccessError(
            path, f"{path} could not be copied ({error.strerror}).", "Run as its owner, or free some space."
        ) from error
    if access.moment(path) != before:
        raise _KeptChangingError
    settle(path, target)


def _connect(uri: str) -> Connection:
    connection: Connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    return connection


def _back_up(
    path: Path, source: Connection, target: Path, witness: Witness[T] | None, tell: Tell | None, *, held: bool
) -> T | None:
    """held: whether all is read in one transaction, so that writes do not make it begin again."""
    try:
        _begin(path, source)
        if witness is not None:
            source.execute("ROLLBACK")
            _until_free(path, lambda: witness.prepare(source))
            _begin(path, source)
        page_size = source.execute("PRAGMA page_size").fetchone()[0]
        version = _data_version(source)
        seen = None if witness is None else witness.look(source)
        if not held:
            source.execute("ROLLBACK")
        with closing(sqlite3.connect(target)) as made:
            made.execute("PRAGMA synchronous = OFF")
            made.execute("PRAGMA journal_mode = OFF").fetchone()
            pages = max(1, STEP_BYTES // page_size)
            source.backup(made, pages=pages, progress=_pace(page_size, tell, held=held), sleep=POLL_S)
        if not held:
            _begin(path, source)
        return seen if _data_version(source) == version else None
    except StoreBusyError:
        raise
    except sqlite3.DatabaseError as error:
        if str(error) == _FULL:
            raise StoreFullError(target) from error
        raise _unreadable(path, error) from error


def _begin(path: Path, source: Connection) -> None:
    """Begins a transaction that reads, and reads."""

    def attempt() -> None:
        source.execute("BEGIN")
        try:
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            source.execute("ROLLBACK")
            raise

    _until_free(path, attempt)


def _until_free(path: Path, attempt: Callable[[], object]) -> None:
    """Runs `attempt()` again, and often, while a writer without a log is in the way.

    Who asks ever more rarely, as SQLite does, may never meet the moments that a permanent writer leaves.
    """
    began = time.monotonic()
    while True:
        try:
            attempt()
            return
        except sqlite3.OperationalError as error:
            waited = time.monotonic() - began
            if not is_busy(error):
                raise
            if waited > PATIENCE_S:
                raise StoreBusyError(path, waited, holder_of(path), doing="copied") from error
        time.sleep(POLL_S)


def _data_version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _pace(page_size: int, tell: Tell | None, *, held: bool) -> Callable[[int, int, int], None]:
    """A callback for `Connection.backup` that pauses after each step and gives up on many restarts."""
    least: int | None = None
    restarts = 0
    deadline = time.monotonic() + PATIENCE_S

    def progress(status: int, remaining: int, total: int) -> None:
        nonlocal least, restarts, deadline
        if status in _LOCKED:
            if time.monotonic() > deadline:
                raise _KeptChangingError
            return
        if least is not None and remaining >= least > 0:
            restarts += 1
            if restarts > RESTARTS:
                raise _KeptChangingError
        least = remaining
        deadline = time.monotonic() + PATIENCE_S
        if tell is not None:
            tell((total - remaining) * page_size, total * page_size)
        if not held:
            time.sleep(PAUSE_S)

    return progress


def _unreadable(path: Path, error: sqlite3.DatabaseError) -> StoreAccessError:
    problem = f"SQLite cannot copy {path} ({error})."
    if result_code(error) == _IOERR or str(error) == "disk I/O error":
        remedy = "Look at its disk and at that of the copy, and how large a file this user may write."
        return StoreAccessError(path, problem, remedy)
    return StoreUnreadableError(path, error, problem)
