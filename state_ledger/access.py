"""May this user read this store without harming its owner? Answered without opening it in SQLite.

A connection to a file in write-ahead mode needs two files beside it, `-wal` and `-shm`, and makes
them where they are missing, even one that only reads. If they then belong to somebody whom the
owner of the store cannot write past, the owner's next write fails ("attempt to write a readonly
database"). So everything here is decided by `stat`, `access` and the first 100 bytes.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from state_ledger.errors import StoreAccessError

HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_JOURNAL_PATIENCE_S = 10.0
"""A writer rewrites its journal at each transaction; one older than this was left by a crash."""

_BY_SNAPSHOT = "or read a snapshot: state-ledger serve --snapshot PATH"
_CHUNK_BYTES = 1 << 20

_headers: dict[tuple[int, int], int] = {}
_headers_lock = threading.Lock()


Moment = tuple[tuple[int, int, int, int] | None, ...]
"""Device, inode, size and time (ns) of some files, None for one that is not there."""


def moment(path: str | Path, suffixes: Sequence[str] = ("", "-wal", "-journal")) -> Moment:
    """How a store, its log and its journal are now: equal while nobody writes."""
    base = os.path.realpath(path)
    found: list[tuple[int, int, int, int] | None] = []
    for suffix in suffixes:
        try:
            status = Path(f"{base}{suffix}").stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


@dataclass(frozen=True)
class Sidecars:
    """The files that SQLite keeps beside a store: their stat results, None for one that is not there."""

    wal: os.stat_result | None
    shm: os.stat_result | None
    journal: os.stat_result | None

    @classmethod
    def of(cls, path: str | Path) -> Sidecars:
        """Looks for the sidecars of `path`; a link is followed first, as SQLite does."""
        base = os.path.realpath(path)
        return cls(*(_stat(f"{base}{suffix}") for suffix in ("-wal", "-shm", "-journal")))

    @property
    def wal_bytes(self) -> int:
        """The size of the write-ahead log, 0 if there is none."""
        return 0 if self.wal is None else self.wal.st_size


def check(path: str | Path) -> None:
    """Returns if SQLite may open `path` with `mode=ro`.

    Costs a few system calls, so that every new connection can ask again: sidecars come and go with
    their owner's programs. Raises StoreAccessError with what is wrong and what to do about it;
    `snapshot_possible` says whether `snapshot.take` would read it.
    """
    header, status = _read(Path(path))
    sidecars = Sidecars.of(path)
    if is_wal(header):
        _check_wal(Path(path), status, sidecars)
    else:
        _check_journal(Path(path), sidecars)


def is_wal(header: bytes) -> bool:
    """Whether a header is that of a file in write-ahead mode (bytes 18 and 19, SQLite file format 1.3.3)."""
    return header[18:20] == b"\x02\x02"


def at_rest(path: str | Path) -> bool:
    """Whether a store in write-ahead mode is open nowhere: whoever has one open has both sidecars.

    Raises StoreAccessError as `header_of` does.
    """
    sidecars = Sidecars.of(path)
    return is_wal(header_of(path)) and (sidecars.wal is None or sidecars.shm is None)


def header_of(path: str | Path) -> bytes:
    """The first 100 bytes of a SQLite file. Raises StoreAccessError if it is none, or is not readable."""
    return _read(Path(path))[0]


def first_bytes(path: str | Path, count: int) -> bytes:
    """The first bytes of any file, fewer where it has no more. Raises OSError."""
    path = Path(path)
    if sys.platform == "win32":
        with path.open("rb") as file:
            return file.read(count)
    with _headers_lock:
        return os.pread(_descriptor(path), count, 0)


def copy_bytes(path: str | Path, target: Path) -> None:
    """Writes the bytes of the main file to `target`, through the descriptor that is kept open.

    Raises OSError. Right only for a file that nobody writes meanwhile; that is the caller's to see.
    """
    if sys.platform == "win32":
        shutil.copyfile(path, target)
        return
    with _headers_lock:
        descriptor = _descriptor(Path(path))
    offset = 0
    with target.open("wb") as out:
        while chunk := os.pread(descriptor, _CHUNK_BYTES, offset):
            offset += out.write(chunk)


def _read(path: Path) -> tuple[bytes, os.stat_result]:
    try:
        status = path.stat()
    except PermissionError as error:
        raise _forbidden(path) from error
    except (OSError, ValueError) as error:
        raise StoreAccessError(path, f"There is no file {path}.", "Check the path.") from error
    if stat.S_ISDIR(status.st_mode):
        raise StoreAccessError(
            path, f"{path} is a folder, not a store.", "Name the file in it, usually state.db."
        )
    if not stat.S_ISREG(status.st_mode):
        raise StoreAccessError(path, f"{path} is not an ordinary file.", "Name a state.db file.")
    if status.st_size == 0:
        raise StoreAccessError(
            path, f"{path} is empty.", "Let the agent write to it first, or name another file."
        )
    try:
        header = first_bytes(path, HEADER_BYTES)
    except PermissionError as error:
        raise _forbidden(path) from error
    except OSError as error:
        raise StoreAccessError(
            path, f"{path} cannot be read ({error.strerror}).", "Check the disk it is on."
        ) from error
    _check_header(path, header)
    return header, status


def _descriptor(path: Path) -> int:
    """A descriptor of the file at `path`, kept open.

    Closing any descriptor of a file gives up every POSIX lock this process holds on it, those of
    SQLite's connections included (sqlite.org/howtocorrupt.html, 2.2), so it is kept as long as the
    file has a name; a file that was removed or replaced is let go, or its space would never be freed.
    """
    status = path.stat()
    key = (status.st_dev, status.st_ino)
    if key not in _headers:
        for old, kept in list(_headers.items()):
            if os.fstat(kept).st_nlink == 0:
                os.close(_headers.pop(old))
        opened = os.open(path, os.O_RDONLY)
        status = os.fstat(opened)
        key = (status.st_dev, status.st_ino)
        # Replaced between stat and open by a file that is known already: keep both, close neither.
        if key in _headers:
            key = (-1, opened)
        _headers[key] = opened
    return _headers[key]


def _check_header(path: Path, header: bytes) -> None:
    if header.startswith(_MAGIC) and len(header) == HEADER_BYTES:
        return
    if header.startswith(_MAGIC):
        raise StoreAccessError(
            path, f"{path} is cut off after {len(header)} bytes.", "Restore it from a backup."
        )
    if not header.strip(b"\x00"):
        raise StoreAccessError(
            path,
            f"{path} begins with nothing but zero bytes, as files do after a crash of a disk or a machine.",
            "Restore it from a backup.",
        )
    raise StoreAccessError(
        path,
        f"{path} is not a SQLite database, or is an encrypted one.",
        "Name the state.db file itself; an encrypted one has to be decrypted first.",
    )


def _check_wal(path: Path, status: os.stat_result, sidecars: Sidecars) -> None:
    base = os.path.realpath(path)
    for suffix, sidecar in (("-wal", sidecars.wal), ("-shm", sidecars.shm)):
        if sidecar is not None and not _may(f"{base}{suffix}", os.R_OK):
            raise StoreAccessError(
                path,
                f"{path} is in use, and {path.name}{suffix} beside it may be read by its owner only.",
                f"Run as its owner ({_user(status.st_uid)}), or let this user read that file.",
                snapshot_possible=sidecars.wal_bytes == 0,
            )
    if sidecars.wal is not None and sidecars.shm is not None:
        return
    folder = Path(base).parent
    if not _may(folder, os.W_OK | os.X_OK):
        raise StoreAccessError(
            path,
            f"{path} is in write-ahead mode and nobody has it open, and reading it then needs "
            f"two files beside it that this user cannot make in {folder}.",
            f"Run as its owner ({_user(status.st_uid)}), {_BY_SNAPSHOT}.",
            snapshot_possible=True,
        )
    if _would_lock_out_the_owner(status, folder):
        raise StoreAccessError(
            path,
            f"{path} belongs to {_user(status.st_uid)}, and reading it as {_user(_me())} would leave "
            f"files beside it that keep {_user(status.st_uid)} from writing.",
            f"Run as {_user(status.st_uid)}, {_BY_SNAPSHOT}.",
            snapshot_possible=True,
        )


def _check_journal(path: Path, sidecars: Sidecars) -> None:
    """A rollback journal left by a crash has to be played back before anyone can read, by a writer."""
    journal = sidecars.journal
    if journal is None or journal.st_size == 0 or time.time() - journal.st_mtime < _JOURNAL_PATIENCE_S:
        return
    try:
        with Path(f"{os.path.realpath(path)}-journal").open("rb") as file:
            hot = file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
    except OSError:
        hot = True
    if hot:
        raise StoreAccessError(
            path,
            f"{path} was left in the middle of a write: {path.name}-journal beside it has to be played back.",
            f"Start the agent once, which does that, {_BY_SNAPSHOT}.",
            snapshot_possible=True,
        )


def _would_lock_out_the_owner(status: os.stat_result, folder: Path) -> bool:
    """Whether sidecars made by us would be closed to the owner of the store.

    SQLite gives them the permissions of the store, our user, and the group that new files get here;
    root's it hands to the owner (os_unix.c, findCreateFileMode and robustFchown).
    """
    if sys.platform == "win32" or _me() in (0, status.st_uid) or status.st_mode & stat.S_IWOTH:
        return False
    if not status.st_mode & stat.S_IWGRP:
        return True
    parent = folder.stat()
    group = parent.st_gid if parent.st_mode & stat.S_ISGID or sys.platform == "darwin" else os.getegid()
    return group != status.st_gid


def _forbidden(path: Path) -> StoreAccessError:
    return StoreAccessError(
        path,
        f"{path} may not be read by {_user(_me())}.",
        "Run as its owner, or let this user read the file and enter its folder.",
    )


def _may(path: str | Path, mode: int) -> bool:
    # By the effective user, as SQLite's own opening is, where the system can tell.
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _me() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else -1


def _user(uid: int) -> str:
    """A user's name, or the number of one without a name."""
    if sys.platform != "win32":
        import pwd

        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return f"user {uid}"
    return "this user"


def _stat(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except OSError:
        return None
