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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from state_ledger import copying, private, processes
from state_ledger.errors import StoreAccessError
from state_ledger.homes import cache_folder


@dataclass(frozen=True)
class Snapshot:
    """path: the copy, readable by this user only; taken_at: epoch seconds; source: the store."""

    path: Path
    taken_at: float
    source: Path


def take(path: str | Path, folder: Path | None = None) -> Snapshot:
    """Copies a store into a new folder of its own below `folder`, by default in the user's cache.

    Nothing is written beside the store, and a program that writes to it meanwhile is not held up.
    The copy is complete: it holds what is in the write-ahead log too. It is removed when this
    process ends; copies of processes that were killed are removed on the way.
    Raises StoreAccessError if the store cannot be copied.
    """
    path = Path(path).absolute()
    size = copying.size_of(path)
    place = private_folder(size, folder)
    if place is None:
        raise StoreAccessError(
            path,
            f"There is no room for a snapshot of {path} ({size:,} bytes) in {folder or cache_folder() / 'snapshots'}.",
            "Free some space, or let XDG_CACHE_HOME name a folder with more.",
        )
    remove_at_exit(place)
    target = place / path.name
    copying.copy(path, target)
    copying.settle(path, target)
    return Snapshot(target, time.time(), path)


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


def private_folder(size: int, folder: Path | None = None) -> Path | None:
    """A new folder of this process with room for a file of some bytes; None if there is none.

    It lies in `folder`, by default in the user's cache or, where that cannot be, among temporary files.
    What processes left there that were killed is removed on the way.
    """
    parents = [folder] if folder else [cache_folder() / "snapshots", Path(tempfile.gettempdir()) / _our_name()]
    for parent in parents:
        with suppress(OSError):
            private.folder(parent)
            _remove_abandoned(parent)
            if shutil.disk_usage(parent).free > size + 2 * copying.STEP_BYTES:
                return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))
    return None


def _our_name() -> str:
    return f"state-ledger-snapshots-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def _remove_abandoned(parent: Path) -> None:
    """Removes what killed processes left: the folders begin with the number of their process."""
    for place in parent.iterdir():
        number, dash, _ = place.name.partition("-")
        ours = dash and number.isdigit() and place.is_dir() and not place.is_symlink()
        if ours and processes.surely_ended(int(number)):
            shutil.rmtree(place, ignore_errors=True)
