"""The write-ahead log: how big it is, how much of it waits to be brought back, and who keeps it from that.

What waits stands in the head of the `-shm` file beside the store, and who reads in the system's table of
locks (https://sqlite.org/walformat.html, 2.1 and 2.3). Both are read as plain bytes, without SQLite.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from state_ledger import access
from state_ledger.writing.contention import describe

_HEAD_BYTES = 136
_FIRST_READ_LOCK, _LAST_READ_LOCK = 123, 127
"""Bytes of `-shm` that a reader locks as long as its read transaction lasts."""
_LOCK_TABLE, _PROCESSES = Path("/proc/locks"), Path("/proc")
_NO_MARK = 0xFFFFFFFF


@dataclass(frozen=True)
class Log:
    """bytes: the size of the `-wal` file. pages: valid ones in it; waiting: those of them that are not in the
    store itself yet; both None where the index of the log is not there or cannot be read.

    readers: who has a read transaction open at this moment, as (process number, what it is); None where the
    system does not tell.
    """

    bytes: int
    pages: int | None
    waiting: int | None
    readers: tuple[tuple[int, str], ...] | None


def look(path: str | Path) -> Log:
    """Looks at the log of a store; of this process's own reading nothing is said."""
    base = os.path.realpath(path)
    head = _head(Path(f"{base}-shm"))
    pages = waiting = None
    if head is not None:
        pages = _number(head, 16)
        waiting = max(0, pages - _number(head, 96))
    return Log(access.Sidecars.of(path).wal_bytes, pages, waiting, _readers(base))


def _head(shm: Path) -> bytes | None:
    try:
        head = access.first_bytes(shm, _HEAD_BYTES)
    except OSError:
        return None
    # The index keeps its head twice; where the copies differ somebody writes it just now.
    return head if len(head) == _HEAD_BYTES and head[:48] == head[48:96] and head[12] == 1 else None


def _number(head: bytes, at: int) -> int:
    number = int.from_bytes(head[at : at + 4], sys.byteorder)
    return 0 if number == _NO_MARK else number


def _readers(base: str) -> tuple[tuple[int, str], ...] | None:
    try:
        inode = os.stat(f"{base}-shm").st_ino  # noqa: PTH116
    except OSError:
        return ()
    if not sys.platform.startswith("linux"):
        return None
    try:
        lines = _LOCK_TABLE.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    found = {pid for line in lines if (pid := _reader_in(line, inode)) is not None}
    return tuple((pid, describe(pid)) for pid in sorted(found - {os.getpid()}))


def _reader_in(line: str, inode: int) -> int | None:
    words = line.split()
    if "->" in words or len(words) != 8 or words[3] != "READ" or words[5].rpartition(":")[2] != str(inode):
        return None
    if not all(word.isdigit() for word in (words[4], words[6])):
        return None
    first, last = int(words[6]), sys.maxsize if words[7] == "EOF" else int(words[7])
    return int(words[4]) if first <= _LAST_READ_LOCK and last >= _FIRST_READ_LOCK else None


def users(path: str | Path) -> tuple[tuple[int, str], ...] | None:
    """Who has a store open at all, as (process number, what it is), but for this process.

    Only processes of this user, or for root of all; None where the system does not tell. Looks at every
    process of the machine, so that it is asked only where something is wrong.
    """
    base = os.path.realpath(path)
    if not sys.platform.startswith("linux"):
        return None
    wanted = {base, f"{base}-wal", f"{base}-shm"}
    found = []
    for folder in _PROCESSES.iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid() and wanted & set(_open_files(folder)):
            found.append(int(folder.name))
    return tuple((pid, describe(pid)) for pid in sorted(found))


def _open_files(process: Path) -> Iterator[str]:
    """What a process has open, as far as this user may know."""
    try:
        with os.scandir(process / "fd") as entries:
            for entry in entries:
                try:
                    yield os.readlink(entry.path)  # noqa: PTH115
                except OSError:
                    continue
    except OSError:
        return
