"""Opening a store to write or to read: finding it, refusing what is none, making a new one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from state_ledger import access, private, schema
from state_ledger.connection import decode_text
from state_ledger.errors import NoHomeError, StoreAccessError, StoreUnreadableError
from state_ledger.homes import hermes_home
from state_ledger.sqlite import Connection, Row, read_only_uri, says_damaged, sqlite3
from state_ledger.writing import contention, journal

_IOERR = 10
_CANTOPEN, _READONLY = 14, 8

_making = threading.Lock()
"""One file is made at a time: closing the descriptor it was made with would drop the POSIX locks
that another thread may already hold on it."""


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """`$HERMES_HOME/state.db`, else `~/.hermes/state.db`. Raises NoHomeError where there is neither."""
    folder = hermes_home(environ)
    if folder is None:
        raise NoHomeError("This user has no home folder. Name a state.db file, or let HERMES_HOME name its folder.")
    return folder / "state.db"


def open_to_read(path: Path) -> Connection:
    """A connection that cannot write, to a store that exists.

    Raises StoreAccessError if the file cannot be read, or not without harm to its owner.
    """
    access.check(path)
    _refuse_truncated(path)
    connection = _connect(path, read_only=True)
    return _checked(connection, path, lambda: _first_read(connection, path))


def open_to_write(path: Path) -> Connection:
    """A connection that writes, to a store that exists or is made now, its folders too.

    A store that exists keeps its journal mode: whoever chose it may have had reasons (a network file
    system, an SQLite that must not have a write-ahead log).
    Raises StoreAccessError for what is no store; the file is left as it is. Raises StoreBusyError.
    """
    _make_file(path)
    if path.stat().st_size:
        _refuse_truncated(path)
    connection = _connect(path, read_only=False)

    def prepare() -> None:
        _first_read(connection, path)
        journal.make_durable(connection)
        tables = _table_names(connection)
        if not tables:
            _make_store(connection, path)
        elif not tables & {"sessions", "messages", "schema_version"}:
            raise StoreAccessError(
                path,
                f"{path} is a database of another program: it has no sessions and messages.",
                "Name a state.db file, or a file that does not exist yet.",
            )

    return _checked(connection, path, prepare)


def _checked(connection: Connection, path: Path, prepare: Callable[[], None]) -> Connection:
    try:
        prepare()
    except sqlite3.DatabaseError as error:
        connection.close()
        if says_damaged(error):
            raise StoreUnreadableError(path, error) from error
        if contention.result_code(error) in (_CANTOPEN, _READONLY):
            raise StoreAccessError(
                path,
                f"{path} cannot be opened by this user: SQLite says {error}.",
                "Let this user write to the file and its folder, or open it with read_only=True.",
            ) from error
        if journal.refuses_wal(error):
            raise StoreAccessError(
                path,
                f"{path} keeps a write-ahead log, which its file system refuses ({error}).",
                "Move it to a local disk.",
            ) from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, *, read_only: bool) -> Connection:
    connection: Connection = sqlite3.connect(
        read_only_uri(path) if read_only else str(path),
        uri=read_only,
        timeout=contention.BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.row_factory = Row
    connection.text_factory = decode_text
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _first_read(connection: Connection, path: Path) -> None:
    """Makes SQLite look at the file; a reader cannot recover a log that a writer is just starting."""
    for _ in range(3):
        try:
            contention.patiently(path, lambda: _table_names(connection))
            return
        except sqlite3.OperationalError as error:
            if contention.result_code(error) != _IOERR:
                raise
            time.sleep(0.05)
    _table_names(connection)


def _make_file(path: Path) -> None:
    """Makes an empty file that only its owner may read, unless there is one."""
    target = Path(os.path.realpath(path))
    try:
        private.folder(target.parent)
        with _making:
            private.new_file(target)
    except FileExistsError:
        if not target.exists():  # one of its folders is a file
            raise StoreAccessError(
                path, f"{path} cannot be made: {target.parent} is not a folder.", "Name another path."
            ) from None
    except OSError as error:
        raise StoreAccessError(
            path, f"{path} cannot be made ({error.strerror}).", "Name a folder that this user may write to."
        ) from error


def _make_store(connection: Connection, path: Path) -> None:
    """Makes schema 23 in an empty file; another process that does the same at once is waited for."""
    contention.patiently(path, lambda: journal.choose(connection, path))

    def make() -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not _table_names(connection):
                schema.create(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    contention.patiently(path, make)


def _table_names(connection: Connection) -> set[str]:
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _refuse_truncated(path: Path) -> None:
    """Raises StoreAccessError for what is no database, and for one that lost its end.

    The header tells how many pages a file has. A log or journal beside it may hold the rest, and
    somebody may be writing at this moment, so that only a lasting difference counts.
    """
    for _ in range(4):
        header = access.header_of(path)
        size = path.stat().st_size
        sidecars = access.Sidecars.of(path)
        unsettled = sidecars.wal_bytes > 0 or (sidecars.journal is not None and sidecars.journal.st_size > 0)
        stated = int.from_bytes(header[28:32], "big")
        page = int.from_bytes(header[16:18], "big")
        needed = stated * (65536 if page == 1 else page)
        # Programs from before 2010 did not keep the count; the two counters then differ.
        if unsettled or size >= needed or header[24:28] != header[92:96]:
            return
        time.sleep(0.05)
    raise StoreAccessError(
        path,
        f"{path} is cut off: it has {size:,} of {needed:,} bytes.",
        "Restore it from a backup; what is left of it is untouched.",
    )
