"""One handle on a store: a connection, a lock, and one way to write.

Source: design, "Writing"; store-format, section 4. Every write is one `BEGIN IMMEDIATE … COMMIT`: it
is stored as a whole, or an exception says that it was not.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from state_ledger import migrate
from state_ledger.errors import SchemaTooNewError, StoreAccessError, StoreFullError
from state_ledger.full_text import cjk
from state_ledger.homes import expanded
from state_ledger.schema import SCHEMA_VERSION, TABLES
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, Row, sqlite3
from state_ledger.writing import checkpoints, journal, opening
from state_ledger.writing.contention import Patience, Queue, is_busy, patiently, result_code

_log = logging.getLogger(__name__)

T = TypeVar("T")

_FULL = 13  # SQLITE_FULL


class Writer:
    """A store that is open to write, or only to read. Threads may share it.

    path: the file. read_only: whether writes are refused. connection: in autocommit mode, rows are
    `sqlite3.Row`, text that is not UTF-8 comes with replacement characters. lock: held for every
    statement; hold it to run several reads that belong together.
    """

    def __init__(self, path: Path | str | None = None, read_only: bool = False) -> None:
        """Opens a store, made new (schema 23) where there is none, and brings an old one up to date.

        path: by default `$HERMES_HOME/state.db`, else `~/.hermes/state.db`. read_only: changes
        nothing, not even the schema; the file has to exist.
        Raises StoreAccessError for what is no store or may not be opened, the file untouched;
        StoreBusyError if another program keeps it locked.
        """
        self.path = opening.default_path() if path is None else expanded(path)
        self.read_only = read_only
        self.lock = threading.RLock()
        self._writing = False
        self._mended = False
        self._closed = False
        # SQLite keeps the log beside the real file, whatever links lead there and wherever we go meanwhile.
        self._file = Path(os.path.realpath(self.path))
        self._checkpoints = checkpoints.Checkpoints(self._file)
        self._files: dict[str, int] = {}
        opened = opening.open_to_read if read_only else opening.open_to_write
        self.connection: Connection = opened(self.path)
        self._queue = Queue(self.connection)
        # Kept, as it is asked on every write; without a factory its row is a tuple.
        self._cookie = self.connection.cursor()
        self._cookie.row_factory = None
        try:
            patiently(self._file, self.renew_shape)
            if read_only:
                cjk.load(self.connection)
            else:
                self._note_files()
                patiently(self._file, lambda: migrate.on_open(self))
            patiently(self._file, self.renew_shape)
        except BaseException:
            self.connection.close()
            raise

    @property
    def shape(self) -> Shape:
        """What the file really has."""
        return self._shape

    @property
    def too_new(self) -> bool:
        """Whether the file has a newer schema than this program knows: nothing of it is altered then."""
        version = self._shape.version
        return version is not None and version > SCHEMA_VERSION

    def refuse_too_new(self, *, newer: bool = True) -> None:
        """Raises SchemaTooNewError if nothing may be written here: a newer schema that lacks a column we know.

        newer: False where a newer schema itself is a reason, as for what rewrites the whole file.
        """
        if self._absent or (self.too_new and not newer):
            raise SchemaTooNewError(self.path, self._shape.version or 0, self._absent)

    def renew_shape(self) -> Shape:
        """Looks at the file again, after its tables were changed; returns the new shape."""
        with self.lock:
            self._schema_cookie = self._read_cookie()
            self._shape = Shape.read(self.connection)
            self._absent = _absent_columns(self.connection) if self.too_new else {}
            self._cjk_in_the_way = not self.read_only and cjk.in_the_way(self.connection)
            return self._shape

    def write(self, work: Callable[[Connection], T]) -> T:
        """Runs `work(connection)` in one transaction and returns what it returns.

        Whatever `work` raises undoes the transaction and comes out here. While another program has
        the lock, `work` is tried again (so it may run more than once), for about 16 seconds in all.
        Within `work`, a further `write` belongs to the same transaction.
        Raises StoreBusyError when patience runs out, StoreFullError when the disk is full,
        SchemaTooNewError for a store of a newer schema that lacks a column, StoreAccessError if the
        store is open to read only or its file was replaced.
        """
        patience = Patience(self._file)
        while True:
            with self.lock:
                if self._writing:
                    return work(self.connection)
                try:
                    result = self._transact(work, patience)
                    break
                except sqlite3.DatabaseError as error:
                    if result_code(error) == _FULL:
                        raise StoreFullError(self.path) from error
                    if self._mended_index(error):
                        continue
                    if not isinstance(error, sqlite3.OperationalError) or not is_busy(error):
                        raise
                    obstacle = error
            patience.pause(obstacle)  # without the lock: other threads may read meanwhile
        self._checkpoints.count()
        return result

    def alone(self, sql: str) -> None:
        """Runs one statement that no transaction may hold, such as VACUUM; waits for the lock like a write."""

        def attempt() -> None:
            with self.lock:
                self.connection.execute(sql).fetchall()

        try:
            patiently(self._file, attempt)
        except sqlite3.OperationalError as error:
            if result_code(error) == _FULL:
                raise StoreFullError(self.path) from error
            raise

    def rows(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        """All rows of a query. Raises StoreBusyError if the store stays locked, else sqlite3.Error."""

        def attempt() -> list[Row]:
            with self.lock:
                return self.connection.execute(sql, parameters).fetchall()

        return patiently(self._file, attempt)

    def reading(self, work: Callable[[Connection], T]) -> T:
        """`work(connection)`, which only reads, again while the store is locked; other threads wait.

        Raises StoreBusyError if the store stays locked, else what `work` raises.
        """

        def attempt() -> T:
            with self.lock:
                return work(self.connection)

        return patiently(self._file, attempt)

    def row(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> Row | None:
        """The first row of a query, None if it has none."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def value(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> Any:
        """The first column of the first row of a query, None if it has no row."""
        found = self.row(sql, parameters)
        return None if found is None else found[0]

    def close(self) -> None:
        """Empties the write-ahead log as far as nobody is in the way, and closes; again does nothing."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            self._checkpoints.wait()
            if not self.read_only and checkpoints.wal_bytes(self._file):
                with suppress(sqlite3.Error):
                    checkpoints.truncate(self.connection)
            self.connection.close()

    def _transact(self, work: Callable[[Connection], T], patience: Patience) -> T:
        if self.read_only:
            raise StoreAccessError(
                self.path, f"{self.path} is open to read only.", "Open it with read_only=False to write."
            )
        self._queue.begin()
        self._writing = True
        try:
            # On every write: a message is stored or an exception is raised, also after a replacement.
            self._check_files()
            self._check_schema()
            result = work(self.connection)
            self._commit(patience)
            return result
        except BaseException:
            # SQLite undoes by itself what a full disk interrupts.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        finally:
            self._writing = False

    def _mended_index(self, error: sqlite3.DatabaseError) -> bool:
        """Frees a store, once per handle, of an index that keeps messages out; whether the write may be tried again."""
        if self._mended or self.too_new or is_busy(error) or not migrate.lost_an_index(self.connection, error):
            return False
        self._mended = True
        _log.warning("A full-text index of %s is damaged (%s) and is made anew.", self.path, error)
        patience = Patience(self._file)
        patiently(self._file, lambda: self._transact(migrate.free_of_lost_index, patience))
        return True

    def _commit(self, patience: Patience) -> None:
        """Commits; without a write-ahead log that has to wait for readers, with the work still done."""
        while self.connection.in_transaction:
            try:
                self.connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                patience.pause(error)

    def _check_schema(self) -> None:
        """Other programs change the schema too, also while we have the store open."""
        if self._read_cookie() != self._schema_cookie:
            self.renew_shape()
        self.refuse_too_new()
        if self._cjk_in_the_way:
            # In a store of any schema: no message is lost for an index that only others can keep.
            cjk.step_aside(self.connection)
            self.renew_shape()

    def _read_cookie(self) -> int:
        return int(self._cookie.execute("PRAGMA main.schema_version").fetchall()[0][0])

    def _note_files(self) -> None:
        for name in (str(self._file), f"{self._file}-wal"):
            with suppress(OSError):
                self._files.setdefault(name, os.stat(name).st_ino)  # noqa: PTH116

    def _check_files(self) -> None:
        """What we have open must be what has the name, or we would write where nobody will read."""
        for name, inode in tuple(self._files.items()):
            try:
                same = os.stat(name).st_ino == inode  # noqa: PTH116 (a Path costs more than the call)
            except OSError:
                same = False
            if same:
                continue
            if name.endswith("-wal") and journal.mode_of(self.connection) != "wal":
                del self._files[name]  # the handle itself gave the log up
            else:
                raise StoreAccessError(
                    self.path,
                    f"{name} was removed or replaced while it was open: nothing is written to it.",
                    "Restart this program, and do not move or restore a store that is in use.",
                )


def _absent_columns(connection: Connection) -> dict[str, tuple[str, ...]]:
    """Columns that schema 23 declares and the file lacks; an empty tuple for a whole table."""
    absent = {}
    for table, columns in TABLES.items():
        live = {row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")}
        missing = tuple(column.name for column in columns if column.name not in live)
        if missing:
            absent[table] = missing if live else ()
    return absent
