"""A backup made a store again, in a place where nothing is."""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from state_ledger import access, copying, unfinished
from state_ledger.backup import contents, places
from state_ledger.backup.contents import Contents
from state_ledger.errors import BackupError, StateLedgerError
from state_ledger.homes import expanded
from state_ledger.sqlite import read_only_uri, sqlite3


@dataclass(frozen=True)
class Restored:
    """A store that was made of a backup and verified; path: where it is; seconds: how long it took."""

    path: Path
    backup: Path
    bytes: int
    contents: Contents
    index_damage: tuple[str, ...]
    seconds: float

    @property
    def sentence(self) -> str:
        """What was made, for a person."""
        said = f"{self.path}: {self.bytes:,} bytes, {self.contents.sentence}; verified ({self.seconds:.1f} s)."
        return f"{said} Its search indexes are damaged: state-ledger repair {self.path}" if self.index_damage else said


def restore(backup: Path, target: Path, *, full_check: bool = False, progress: copying.Tell | None = None) -> Restored:
    """Makes a store of a backup at `target`, where nothing may be; its folders are made.

    The backup is verified first and only read. Nothing gets the name before it is complete and verified.
    full_check: compares every index with its table too. progress: told of bytes done and bytes in all.
    Raises BackupError if the backup is damaged or no store, or if there is something at `target` already,
    be it only the log of a store that was removed; StoreAccessError if the backup cannot be read.
    """
    backup, target = expanded(backup).absolute(), expanded(target).absolute()
    began = time.monotonic()
    _refuse_taken(target)
    access.header_of(backup)
    found, soundness = _verified(backup, full_check, f"{backup} is damaged")
    places.prepare(target.parent, copying.size_of(backup))
    part = unfinished.place(target.name, target.parent)
    with places.being_made(part, str(target)):
        copying.copy(backup, part, tell=progress)
        copied, _ = _verified(part, full_check, f"The copy of {backup} is damaged")
        if copied != found:
            raise BackupError(f"The copy of {backup} is not what the backup is. Look at the disk of {target.parent}.")
        _refuse_taken(target)
        size = part.stat().st_size
        if not places.give_name(part, target):
            _refuse_taken(target)
    return Restored(target, backup, size, found, soundness.index_damage, time.monotonic() - began)


def _verified(path: Path, full: bool, beginning: str) -> tuple[Contents, contents.Soundness]:
    soundness = contents.soundness(path, full=full)
    trouble = soundness.damage[0] if soundness.damage else None
    if trouble is None:
        try:
            return contents.read_file(path), soundness
        except sqlite3.DatabaseError as error:
            trouble = str(error)
    raise BackupError(f"{beginning}: SQLite says {trouble}. Nothing was restored.")


def _refuse_taken(target: Path) -> None:
    """Raises BackupError if something has the name of a store, or of what SQLite keeps beside one.

    A log of another store beside a restored one would be played into it.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        if os.path.lexists(f"{target}{suffix}"):
            raise BackupError(_what_is_there(target, suffix))


def _what_is_there(target: Path, suffix: str) -> str:
    if suffix:
        return (
            f"{target.name}{suffix} is in {target.parent}: a log of another store, which SQLite would play into this "
            "one. Name another path, or see whose it is."
        )
    with suppress(StateLedgerError, sqlite3.DatabaseError):
        found = _count(target)
        return (
            f"{target} is a store with {found:,} sessions, perhaps at work: it is not overwritten. Name another path; "
            "to put the backup in its place, end the agent and move the store away yourself."
        )
    return f"{target} exists already and is not overwritten. Name another path."


def _count(path: Path) -> int:
    access.check(path)
    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0])
