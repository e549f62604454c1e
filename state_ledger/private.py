"""Files and folders for this user alone, whatever the umask says."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO


def folder(path: Path) -> None:
    """Makes a folder and those above it that are missing, mode 0700; what is there stays as it is. Raises OSError."""
    missing = [path]
    for above in path.parents:
        if above.exists():
            break
        missing.append(above)
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def is_ours(place: Path, closed: int) -> bool:
    """Whether a folder, itself and no link to one, is this user's and gives others none of the modes `closed`.

    Raises OSError.
    """
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    return os.name != "posix" or (status.st_uid == os.geteuid() and not status.st_mode & closed)


def new_file(path: Path) -> None:
    """Makes an empty file, mode 0600. Raises FileExistsError if there is something, else OSError."""
    os.close(_descriptor(path))


def writing(path: Path) -> IO[bytes]:
    """A new file, mode 0600, open to be written. Raises FileExistsError if there is something, else OSError."""
    return os.fdopen(_descriptor(path), "wb")


def _descriptor(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
