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
from contextlib import closing, suppress
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from state_ledger import access
from state_ledger.errors import StoreAccessError, StoreFullError
from state_ledger.sqlite import BUSY_TIMEOUT_S, Connection, read_only_uri, sqlite3

STEP_BYTES = 1 << 20
"""What one step of a backup reads before it lets others in."""
PAUSE_S = 0.001
RESTARTS = 3
"""A backup in steps begins again when somebody writes between two; how often that is put up with."""
HELD_BYTES = 64 << 20
"""Up to this size a store without a write-ahead log is read in one go, which takes less than a writer waits."""
PATIENCE_S = 60.0
"""How long one attempt waits for a writer that holds the whole file."""
ATTEMPTS = 5
_LOCKED = (5, 6)  # SQLITE_BUSY and SQLITE_LOCKED; Python names them from 3.11 on
_FULL = "database or disk is full"

T = TypeVar("T")
Tell = Callable[[int, int], None]
"""Told of bytes done and bytes in all, as often as a step ends."""
Moment = tuple[tuple[int, int, int, int] | None, ...]


class Copied(NamedTuple, Generic[T]):
    """seen: what `look` returned for the store at the moment of the copy, None where it cannot be known."""

    seen: T | None


class _KeptChangingError(Exception):
    """Somebody wrote while the copy was made."""


def copy(
    path: Path, target: Path, *, look: Callable[[Connection], T] | None = None, tell: Tell | None = None
) -> Copied[T]:
    """Copies a store to `target`, a new file that only this user may read, its log included.

    Nothing is written beside the store and no writer is held up. look: asked once with a connection to
    the store that sees exactly what is copied.
    Raises StoreAccessError if the store cannot be copied, StoreFullError if there is no room; what is
    left of `target` then is the caller's to remove.
    """
    for _ in range(ATTEMPTS):
        remove(target)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            return _attempt(path, target, look, tell)
        except _KeptChangingError:
            time.sleep(0.2)
    raise StoreAccessError(
        path, f"{path} changes faster than it can be copied.", "Try again when the agent has less to write."
    )


def remove(target: Path) -> None:
    """Removes a copy and what SQLite keeps beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{target}{suffix}").unlink()


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


def _attempt(
    path: Path, target: Path, look: Callable[[Connection], T] | None, tell: Tell | None
) -> Copied[T]:
    if access.at_rest(path):  # a connection that may wait for others would leave files beside it
        if access.Sidecars.of(path).wal_bytes:
            return _copy_with_log(path, target)
        before = moment(path)
        with closing(_connect(read_only_uri(path, immutable=True))) as source:
            copied = _back_up(path, source, target, look, tell, held=True)
        if moment(path) != before:
            raise _KeptChangingError
        return copied
    try:
        access.check(path)
    except StoreAccessError as refusal:
        if not refusal.snapshot_possible:
            raise
        return _copy_with_log(path, target)
    held = access.is_wal(access.header_of(path)) or path.stat().st_size <= HELD_BYTES
    with closing(_connect(read_only_uri(path))) as source:
        return _back_up(path, source, target, look, tell, held=held)


def _copy_with_log(path: Path, target: Path) -> Copied[T]:
    """Copies a file that nobody has open, with the log or journal of a program that crashed.

    SQLite then recovers the copy, in its own folder: recovering the store is its owner's to do. That
    nobody wrote meanwhile is seen by the sizes and times of the files before and after.
    """
    before = moment(path)
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
    if moment(path) != before:
        raise _KeptChangingError
    settle(path, target)
    return Copied(None)


def moment(path: Path) -> Moment:
    """Identity, size and time of a store and of its log and journal: equal while nobody writes."""
    base = os.path.realpath(path)
    found: list[tuple[int, int, int, int] | None] = []
    for suffix in ("", "-wal", "-journal"):
        try:
            status = Path(f"{base}{suffix}").stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _connect(uri: str) -> Connection:
    connection: Connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    return connection


def _back_up(
    path: Path,
    source: Connection,
    target: Path,
    look: Callable[[Connection], T] | None,
    tell: Tell | None,
    *,
    held: bool,
) -> Copied[T]:
    """held: whether all is read in one transaction, so that writes do not make it begin again."""
    try:
        page_size = source.execute("PRAGMA page_size").fetchone()[0]
        if held:
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        version = _data_version(source)
        seen = None if look is None else look(source)
        with closing(sqlite3.connect(target)) as made:
            made.execute("PRAGMA synchronous = OFF")
            made.execute("PRAGMA journal_mode = OFF").fetchone()
            pages = max(1, STEP_BYTES // page_size)
            source.backup(made, pages=pages, progress=_pace(page_size, tell, held=held), sleep=0.05)
        return Copied(seen if _data_version(source) == version else None)
    except sqlite3.DatabaseError as error:
        if str(error) == _FULL:
            raise StoreFullError(target) from error
        raise _unreadable(path, error) from error


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
    return StoreAccessError(path, f"SQLite cannot copy {path} ({error}).", "Restore it from a backup.")
