"""Work on a sound store that changes none of its rows: giving pages back, merging and rebuilding indexes.

A connection of its own does it, so that a store of an old schema is not brought up to date on the way.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from state_ledger import access, full_text, storage
from state_ledger.connection import decode_text
from state_ledger.errors import StateLedgerError, StoreAccessError, StoreFullError
from state_ledger.full_text import cjk
from state_ledger.full_text import layout as text_layout
from state_ledger.full_text.layout import Layout
from state_ledger.sqlite import Connection, quoted, says_damaged, sqlite3
from state_ledger.writing import checkpoints, contention

MERGE_PAGES = 500
"""What one step of a merge writes at most, about; then others may write."""
MERGE_STEPS = 400
PAUSE_S = 0.01
ANALYSIS_LIMIT = 1000
"""Rows that ANALYZE looks at per index: enough to tell indexes apart, and quick on any store."""

T = TypeVar("T")
Tell = Callable[[int, int], None]
"""Told of what is done and all there is."""

_FULL = 13


class NoRoom(StateLedgerError):
    """A file cannot be written anew for lack of disk. needed, free: bytes on the disk that has too little."""

    def __init__(self, path: Path, where: Path, needed: int, free: int) -> None:
        super().__init__(
            f"Writing {path} anew needs up to {needed:,} bytes of free disk in {where}, and {free:,} are free. "
            "Free some space, then run this again; the store is usable as it is."
        )
        self.needed = needed
        self.free = free


class IndexBeyondRepair(StateLedgerError):
    """An index whose pages cannot be read: it cannot even be removed."""

    def __init__(self, path: Path, name: str, error: Exception) -> None:
        super().__init__(
            f"The index {name} cannot be made anew in place ({error}). Copy what can be read into a new file: "
            f"state-ledger repair {path} NEW"
        )


@dataclass(frozen=True)
class Vacuumed:
    """before, after: bytes of the file. freed_pages: free pages that it had. log_bytes: what the log has now."""

    before: int
    after: int
    freed_pages: int
    log_bytes: int


@dataclass(frozen=True)
class Optimized:
    """merged: steps of merging per full-text index;
    unmerged: indexes with more to merge. tuned: indexes set to merge late. log_emptied: None without a log."""

    merged: dict[str, int]
    unmerged: tuple[str, ...]
    tuned: tuple[str, ...]
    log_emptied: bool | None
    log_bytes: int


@contextmanager
def writable(path: Path) -> Iterator[Connection]:
    """A connection to an existing store that may write. Raises StoreAccessError, StoreBusyError, StoreFullError."""
    access.header_of(path)
    if not os.access(path, os.W_OK):
        raise StoreAccessError(path, f"{path} may not be written by this user.", "Run as its owner.")
    real = Path(os.path.realpath(path))
    connection = sqlite3.connect(real, timeout=contention.BUSY_TIMEOUT_S, isolation_level=None)
    try:
        connection.text_factory = decode_text
        cjk.load(connection)
        yield connection
    except sqlite3.OperationalError as error:
        if contention.result_code(error) == _FULL or "is full" in str(error):
            raise StoreFullError(path) from error
        raise
    finally:
        connection.close()


def room_for_vacuum(path: Path) -> tuple[int, int]:
    """(bytes that a VACUUM may need on the disk of the store, bytes free there).

    What is in use is written twice: to a temporary file, which may lie on another disk, and, where there
    is one, to the log. Raises NoRoom if either disk has too little.
    """
    from state_ledger.health.patient import admit

    with admit(path) as admitted:
        found = storage.pages(admitted.connection)
    used = (found.total - found.free) * found.size
    folder = Path(os.path.realpath(path)).parent
    temporary = Path(os.environ.get("SQLITE_TMPDIR") or tempfile.gettempdir())
    together = os.stat(temporary).st_dev == os.stat(folder).st_dev  # noqa: PTH116
    needed = used * (2 if together else 1) + checkpoints.TRUNCATE_ABOVE_BYTES // 16
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoRoom(path, folder, needed, free)
    if not together and (spare := shutil.disk_usage(temporary).free) < used:
        raise NoRoom(path, temporary, used, spare)
    return needed, free


def vacuum(path: Path) -> Vacuumed:
    """Writes the file anew without its free pages; nobody else can write meanwhile, and of two only one runs.

    Ids of messages stay as they are, being the key of their table, and with them the full-text indexes that
    refer to them. Raises NoRoom, StoreBusyError, StoreFullError; the store is then as it was.
    """
    room_for_vacuum(path)
    with writable(path) as connection:
        before = storage.pages(connection)
        contention.patiently(path, lambda: connection.execute("VACUUM").fetchall())
        checkpoints.truncate(connection)
        after = storage.pages(connection)
    return Vacuumed(
        before.total * before.size, after.total * after.size, before.free, access.Sidecars.of(path).wal_bytes
    )


def optimize(path: Path, *, fast_appends: bool = False, tell: Tell = lambda done, total: None) -> Optimized:
    """Renews the planner's statistics, merges full-text indexes a step at a time, and empties the log.

    fast_appends: makes the indexes merge late from now on, which takes the long waits out of appending
    messages (docs/performance.md); a choice, since it is stored in the file. Raises StoreBusyError.
    """
    merged: dict[str, int] = {}
    unmerged: list[str] = []
    tuned: list[str] = []
    with writable(path) as connection:
        connection.execute(f"PRAGMA analysis_limit = {ANALYSIS_LIMIT}").fetchall()
        _write(path, connection, lambda: connection.execute("ANALYZE main").fetchall())
        names = [name for name in storage.text_indexes(connection) if _opens(connection, name)]
        for at, name in enumerate(names):
            if fast_appends:
                _write(path, connection, lambda name=name: _merge_late(connection, name))  # type: ignore[misc]
                tuned.append(name)
            # A negative number begins to merge everything into one piece, the steps after it go on with that.
            step = -MERGE_PAGES
            merged[name] = 0
            while merged[name] < MERGE_STEPS and _merge(path, connection, name, step):
                step = MERGE_PAGES
                merged[name] += 1
                tell(at * MERGE_STEPS + merged[name], len(names) * MERGE_STEPS)
                time.sleep(PAUSE_S)
            if merged[name] == MERGE_STEPS:
                unmerged.append(name)
        has_log = access.is_wal(access.header_of(path))
        emptied = checkpoints.truncate(connection) if has_log else None
    return Optimized(merged, tuple(unmerged), tuple(tuned), emptied, access.Sidecars.of(path).wal_bytes)


def rebuild_index(path: Path, name: str) -> None:
    """Makes one index anew from its table: an ordinary one, or a full-text index.

    One transaction: whoever reads meanwhile sees the old one. Raises StateLedgerError if there is no such
    index or its tokenizer is not here, IndexBeyondRepair if its pages cannot be read, StoreBusyError.
    """
    with writable(path) as connection:
        if name in storage.text_indexes(connection):
            work = _rebuild_text(path, connection, name)
        elif connection.execute(
            "SELECT 1 FROM main.sqlite_master WHERE type = 'index' AND name = ?", (name,)
        ).fetchone():
            work = lambda: connection.execute(f"REINDEX main.{quoted(name)}").fetchall()  # noqa: E731
        else:
            raise StateLedgerError(f"{path} has no index named {name}; `state-ledger sizes` lists them.")
        try:
            _write(path, connection, work)
        except sqlite3.DatabaseError as error:
            if says_damaged(error):
                raise IndexBeyondRepair(path, name, error) from error
            raise
        checkpoints.truncate(connection)


def _rebuild_text(path: Path, connection: Connection, name: str) -> Callable[[], object]:
    if name == full_text.CJK.name:
        if not cjk.usable(connection):
            raise StateLedgerError(f"The index {name} needs a tokenizer that is not here; it was left as it is.")
        return lambda: cjk.fill(connection)
    if text_layout.read(connection) is Layout.BROKEN:
        if connection.execute("SELECT 1 FROM main.sqlite_master WHERE name = 'state_meta'").fetchone() is None:
            raise StateLedgerError(f"{path} is of a schema that has no mended indexes: state-ledger migrate {path}")
        # An index that lost a table, or whose triggers contradict it: both indexes are made anew, in our layout.
        return lambda: text_layout.rewrite(connection)
    # Indexes that were left half built share one mark, and so become whole together.
    family = [index.name for index in full_text.INDEXES]
    half_built = name in family and text_layout.gate(connection, full_text.WORDS) is not None
    names = [each for each in storage.text_indexes(connection) if each in family] if half_built else [name]

    def rebuild() -> None:
        for each in names:
            connection.execute(f"INSERT INTO main.{quoted(each)}({quoted(each)}) VALUES ('rebuild')")
        if half_built:
            gate = full_text.WORDS.gate
            text_layout.clear_marks(connection, f"{gate}_high_water", f"{gate}_progress")

    return rebuild


def _merge_late(connection: Connection, name: str) -> None:
    for setting, value in (("automerge", full_text.AUTOMERGE), ("crisismerge", full_text.CRISISMERGE)):
        connection.execute(f"INSERT INTO main.{quoted(name)}({quoted(name)}, rank) VALUES (?, ?)", (setting, value))


def _merge(path: Path, connection: Connection, name: str, pages: int) -> bool:
    """One step; whether there was anything to merge (https://sqlite.org/fts5.html, "The 'merge' command")."""

    def work() -> bool:
        before = connection.total_changes
        connection.execute(f"INSERT INTO main.{quoted(name)}({quoted(name)}, rank) VALUES ('merge', ?)", (pages,))
        return connection.total_changes - before >= 2

    return _write(path, connection, work)


def _opens(connection: Connection, name: str) -> bool:
    try:
        connection.execute(f"SELECT 1 FROM main.{quoted(name)} WHERE {quoted(name)} MATCH '\"a\"' LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        return False
    return True


def _write(path: Path, connection: Connection, work: Callable[[], T]) -> T:
    """Runs `work` in a transaction of its own, waiting for the lock like any write."""

    def attempt() -> T:
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    return contention.patiently(path, attempt)
