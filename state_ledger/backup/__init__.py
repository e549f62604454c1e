"""Backups: complete, private, verified, and of one moment, while others go on writing.

A backup is a store like the one it was made of, its journal mode included, in one file that nobody
but this user may read.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from state_ledger import copying, unfinished
from state_ledger.backup import contents, places
from state_ledger.backup.contents import Contents
from state_ledger.errors import BackupError
from state_ledger.homes import expanded
from state_ledger.sqlite import sqlite3
from state_ledger.writing.contention import is_busy

__all__ = ["Backup", "back_up"]


@dataclass(frozen=True)
class Backup:
    """A backup that was made and verified.

    path: the file. store: what it is a copy of. taken_at: epoch seconds when it was begun: all that was
    acknowledged before is in it. bytes: its size. contents: what is in it. compared: whether the store's
    own numbers at that moment were seen to be the same; not where the log of a program that crashed had
    to be recovered in the copy first, or where somebody wrote to a large store without a log.
    index_damage: full-text indexes that are damaged, in the store as in the copy. removed: older backups
    that `keep` left no place for. seconds: how long it took.
    """

    path: Path
    store: Path
    taken_at: float
    bytes: int
    contents: Contents
    compared: bool
    index_damage: tuple[str, ...]
    removed: tuple[Path, ...]
    seconds: float

    @property
    def sentence(self) -> str:
        """What was made, for a person."""
        said = f"{self.path}: {self.bytes:,} bytes, {self.contents.sentence}; verified ({self.seconds:.1f} s)."
        if self.index_damage:
            said += " Its search indexes are damaged, as those of the store are; no message is lost."
        if self.removed:
            said += f" {len(self.removed):,} older backups were removed."
        return said


def back_up(
    store: Path,
    folder: Path | None = None,
    *,
    keep: int | None = None,
    full_check: bool = False,
    progress: copying.Tell | None = None,
) -> Backup:
    """Copies a store into a folder under a dated name, and verifies the copy.

    folder: by default `places.default_folder()`. keep: how many backups of this store the folder keeps,
    the new one included; None keeps all. full_check: compares every index with its table too.
    progress: told of bytes done and bytes in all.
    Writers are not held up and the store is not changed. Nothing gets the name of a backup before it is
    complete, and older ones are removed only when a new one is verified.
    Raises StoreAccessError if the store cannot be read, BackupError if the backup cannot be made or the
    store is damaged: such a copy is kept with a name that ends in `.damaged`.
    """
    store = expanded(store).absolute()
    folder = places.default_folder() if folder is None else expanded(folder).absolute()
    if keep is not None and keep < 1:
        raise BackupError(f"At least one backup has to be kept; {keep} cannot be.")
    places.prepare(folder, copying.size_of(store))
    part = unfinished.place(places.stem_of(store), folder)
    taken_at, began = time.time(), time.monotonic()
    with places.being_made(part, f"The backup of {store}"):
        seen = copying.copy(store, part, witness=copying.Witness(_prepare, _look), tell=progress)
        found, soundness = _verified(store, part, taken_at, seen, full_check)
        size = part.stat().st_size
        target = places.finish(part, store, taken_at)
        removed = places.rotate(store, folder, keep) if keep is not None else ()
    return Backup(
        target, store, taken_at, size, found, seen is not None, soundness.index_damage, removed,
        time.monotonic() - began,
    )  # fmt: skip


def _prepare(connection: sqlite3.Connection) -> None:
    try:
        contents.prepare(connection)
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise
        # What is damaged is found in the copy, which is kept as evidence.


def _look(connection: sqlite3.Connection) -> Contents | None:
    try:
        return contents.sums(connection)
    except sqlite3.DatabaseError:
        return None


def _verified(
    store: Path, part: Path, taken_at: float, seen: Contents | None, full: bool
) -> tuple[Contents, contents.Soundness]:
    """What is in a copy. Raises BackupError, the copy set aside, if it is damaged or not what it should be."""
    soundness = contents.soundness(part, full=full)
    found, trouble = None, soundness.damage[0] if soundness.damage else None
    if trouble is None:
        try:
            found = contents.read_file(part)
        except sqlite3.DatabaseError as error:
            trouble = str(error)
    if found is None:
        kept = places.finish(part, store, taken_at, ".db.damaged")
        raise BackupError(
            f"{store} is damaged: SQLite says {trouble}. The copy is {kept}; no backup was removed. "
            f"See what is damaged with: state-ledger check {shlex.quote(str(store))}"
        )
    if seen is not None and seen != found:
        raise BackupError(
            f"The copy of {store} is not what the store was ({found.sentence} instead of {seen.sentence}); it was "
            "removed. Try again, and look at the disk it was written to."
        )
    return found, soundness
