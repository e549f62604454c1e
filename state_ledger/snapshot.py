"""A private copy of a store as it was at one moment, for when reading the file itself would do harm."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from state_ledger import access
from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import BUSY_TIMEOUT_S, read_only_uri, sqlite3
from state_ledger.stores import cache_folder

STEP_BYTES = 1 << 20
"""What one step of a backup reads before it lets others in."""
PAUSE_S = 0.001
RESTARTS = 3
"""A backup begins again when somebody writes between two steps; how often that is put up with."""
PATIENCE_S = 60.0
"""How long one attempt waits for a writer that holds the whole file."""
ATTEMPTS = 5
_LOCKED = (5, 6)  # SQLITE_BUSY and SQLITE_LOCKED; Python names them from 3.11 on

Moment = tuple[tuple[int, int, int, int] | None, ...]


@dataclass(frozen=True)
class Snapshot:
    """path: the copy, readable by this user only; taken_at: epoch seconds; source: the store."""

    path: Path
    taken_at: float
    source: Path


class _KeptChangingError(Exception):
    """The backup was begun again too often."""


def take(path: str | Path, folder: Path | None = None) -> Snapshot:
    """Copies a store into a new folder of its own below `folder`, by default in the user's cache.

    Nothing is written beside the store, and a program that writes to it meanwhile is not held up.
    The copy is complete: it holds what is in the write-ahead log too. It is removed when this
    process ends; copies of processes that were killed are removed on the way.
    Raises StoreAccessError if the store cannot be copied.
    """
    path = Path(path).absolute()
    status = _status(path)
    place = _private_folder(folder, status.st_size + access.Sidecars.of(path).wal_bytes, path)
    remove_at_exit(place)
    target = place / path.name
    for _ in range(ATTEMPTS):
        _remove_files(place)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        if _copy(path, target):
            return Snapshot(target, time.time(), path)
        time.sleep(0.2)
    raise StoreAccessError(
        path, f"{path} changes faster than it can be copied.", "Try again when the agent has less to write."
    )


def remove_at_exit(place: Path) -> None:
    """Removes a snapshot's folder when this process ends, also when it is told to end."""
    process = os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # not in a child that was forked
            shutil.rmtree(place, ignore_errors=True)

    atexit.register(remove)
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda number, _frame: sys.exit(128 + number))


def _status(path: Path) -> os.stat_result:
    access.header_of(path)
    return path.stat()


def _private_folder(folder: Path | None, size: int, source: Path) -> Path:
    parents = (
        [folder] if folder else [cache_folder() / "snapshots", Path(tempfile.gettempdir()) / _our_name()]
    )
    for parent in parents:
        with suppress(OSError):
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _remove_abandoned(parent)
            if shutil.disk_usage(parent).free > size + 2 * STEP_BYTES:
                return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
    raise StoreAccessError(
        source,
        f"There is no room for a snapshot of {source} ({size:,} bytes) in {parents[0]}.",
        "Free some space, or let XDG_CACHE_HOME name a folder with more.",
    )


def _our_name() -> str:
    return f"state-ledger-snapshots-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _remove_abandoned(parent: Path) -> None:
    """Removes what killed processes left: the folders begin with the number of their process."""
    if sys.platform == "win32":  # where asking after a process would end it
        return
    for place in parent.iterdir():
        number, dash, _ = place.name.partition("-")
        if dash and number.isdigit() and place.is_dir() and not place.is_symlink():
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                shutil.rmtree(place, ignore_errors=True)
            except (PermissionError, OverflowError):
                continue


def _remove_files(place: Path) -> None:
    for file in place.iterdir():
        file.unlink()


def _copy(path: Path, target: Path) -> bool:
    """One attempt; False if the store changed while it was made."""
    if access.at_rest(path):  # a connection of ours would leave files beside it
        return _copy_at_rest(path, target)
    try:
        access.check(path)
    except StoreAccessError as refusal:
        if not refusal.snapshot_possible:
            raise
        return _copy_at_rest(path, target)
    return _back_up(path, target)


def _copy_at_rest(path: Path, target: Path) -> bool:
    """Copies a file that nobody has open, with the log or journal of a program that crashed.

    SQLite then recovers the copy, in its own folder. That nobody wrote meanwhile is seen by the
    sizes and times of the files before and after.
    """
    before = _moment(path)
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
    if _moment(path) != before:
        return False
    _settle(path, target)
    return True


def _moment(path: Path) -> Moment:
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


def _back_up(path: Path, target: Path) -> bool:
    """Copies a live file with SQLite's own backup, some pages at a time."""
    uri = read_only_uri(path)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)) as source:
            page_size = source.execute("PRAGMA page_size").fetchone()[0]
            with closing(sqlite3.connect(target)) as copy:
                copy.execute("PRAGMA synchronous = OFF")
                pages = max(1, STEP_BYTES // page_size)
                try:
                    source.backup(copy, pages=pages, progress=_pace(), sleep=0.05)
                except _KeptChangingError:
                    if not access.is_wal(access.header_of(path)):
                        return False
                    # With a write-ahead log one long read holds no writer up; only the log waits.
                    source.backup(copy, pages=-1, sleep=0.05)
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, error) from error
    _settle(path, target)
    return True


def _pace() -> Callable[[int, int, int], None]:
    """A callback for `Connection.backup` that pauses after each step and gives up on many restarts."""
    least: int | None = None
    restarts = 0
    deadline = time.monotonic() + PATIENCE_S

    def progress(status: int, remaining: int, _total: int) -> None:
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
        time.sleep(PAUSE_S)

    return progress


def _settle(source: Path, target: Path) -> None:
    """Recovers the copy and leaves it a single file that needs nothing beside it."""
    try:
        with closing(sqlite3.connect(target)) as copy:
            copy.execute("PRAGMA synchronous = OFF")
            copy.execute("SELECT count(*) FROM sqlite_master").fetchone()
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.DatabaseError as error:
        raise _unreadable(source, error) from error


def _unreadable(path: Path, error: sqlite3.DatabaseError) -> StoreAccessError:
    return StoreAccessError(path, f"SQLite cannot read {path} ({error}).", "Restore it from a backup.")
