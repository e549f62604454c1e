"""Where backups are and how they are called: a store's own can be told from everything else in a folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from state_ledger import homes, private, stores, unfinished
from state_ledger.errors import BackupError, StoreFullError

SPARE_BYTES = 16 << 20
"""What has to stay free beside a backup: a full disk harms whoever writes there."""


def default_folder() -> Path:
    """Where backups go unless another folder is named: never beside the store, nor in a cache that gets emptied."""
    return homes.data_folder() / "backups"


def stem_of(store: str | Path) -> str:
    """What the names of all backups of a store begin with: its profile or name, and a digest of its real path.

    Several stores may share a folder, and all of them are called `state.db`.
    """
    real = os.path.realpath(store)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    return f"{stores.name_stores([store])[0].name}-{digest}"


def existing(store: str | Path, folder: Path) -> list[Path]:
    """The backups of a store in a folder, oldest first; links and whatever else lies there are none."""
    pattern = re.compile(rf"{re.escape(stem_of(store))}-(\d{{8}}T\d{{6}}Z)(?:-(\d+))?\.db")
    found = []
    for file in folder.iterdir() if folder.is_dir() else ():
        match = pattern.fullmatch(file.name)
        if match and file.is_file() and not file.is_symlink():
            found.append((match[1], int(match[2] or 1), file))
    return [file for _, _, file in sorted(found)]


def prepare(folder: Path, needed: int) -> None:
    """Makes a folder, private if it is new, and sees that there is room. Raises BackupError."""
    try:
        private.folder(folder)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise BackupError(f"The folder {folder} cannot be used ({error.strerror}). Name another one.") from error
    if free < needed + SPARE_BYTES:
        raise BackupError(
            f"The copy needs {needed + SPARE_BYTES:,} bytes in {folder}, and {free:,} are free. "
            "Free some space, or name a folder on another disk."
        )


@contextmanager
def being_made(part: Path, what: str) -> Iterator[None]:
    """While a file is made: errors of its disk become a BackupError, and it is gone in the end unless it got a name.

    what: what is made, as a sentence begins with it.
    """
    try:
        yield
    except StoreFullError as error:
        raise BackupError(f"{what} was not made: there is no room left in {part.parent}.") from error
    except OSError as error:
        raise BackupError(f"{what} could not be written to {part.parent} ({error.strerror}).") from error
    finally:
        with suppress(OSError):
            unfinished.remove(part)


def finish(part: Path, store: str | Path, taken_at: float, ending: str = ".db") -> Path:
    """Gives a complete file its name, which nothing else has, and makes both last. Raises OSError."""
    _sync(part)
    name = f"{stem_of(store)}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(taken_at))}"
    number = 1
    while True:
        target = part.with_name(f"{name}{'' if number == 1 else f'-{number}'}{ending}")
        if give_name(part, target):
            return target
        number += 1


def give_name(part: Path, target: Path) -> bool:
    """Renames a file unless the name is taken, which it then tells. Raises OSError."""
    if os.path.lexists(target):
        return False
    try:
        os.link(part, target)  # a rename would replace a file that was made a moment ago
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        part.rename(target)
    else:
        part.unlink()
    _sync(target.parent)
    return True


def rotate(store: str | Path, folder: Path, keep: int) -> tuple[Path, ...]:
    """Removes all backups of a store in a folder but the last `keep`; what was removed. Raises OSError."""
    gone = tuple(existing(store, folder)[: -max(keep, 1)])
    for file in gone:
        file.unlink()
    return gone


def _sync(path: Path) -> None:
    if path.is_dir() and sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():  # some file systems cannot, for folders
            raise
    finally:
        os.close(descriptor)
