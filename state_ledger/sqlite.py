"""The one SQLite library of this process.

Two SQLite libraries on one file in one process drop each other's POSIX locks, so every module
takes `sqlite3` from here. Datasette and sqlite-utils choose the same way: pysqlite3 where it is
installed, else Python's own.
"""

from __future__ import annotations

import os
import sqlite3 as _stdlib
import weakref
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        from pysqlite3 import dbapi2 as sqlite3
    except ImportError:
        sqlite3 = _stdlib

__all__ = [
    "BUSY_TIMEOUT_S", "UNREADABLE", "Connection", "Row", "quoted", "read_only_uri", "reference", "says_damaged",
    "sqlite3", "store_path", "version_info",
]  # fmt: skip

Connection = sqlite3.Connection
Row = sqlite3.Row

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises; SQLite's words on it may quote bytes of the file that are not UTF-8."""

_DAMAGED = (11, 26)  # SQLITE_CORRUPT and SQLITE_NOTADB; Python names them from 3.11 on
_WORDS_OF_DAMAGE = ("disk image is malformed", "malformed database schema", "file is not a database")

version_info: tuple[int, ...] = tuple(int(part) for part in sqlite3.sqlite_version.split("."))
"""The linked library's version, for instance `(3, 53, 4)`."""

BUSY_TIMEOUT_S = 5.0
"""How long a read waits for the short exclusive lock of a writer that keeps no write-ahead log."""


def read_only_uri(path: str | PathLike[str], *, immutable: bool = False) -> str:
    """The URI by which SQLite opens a file to read; `?`, `#` and `%` in its name are quoted."""
    return Path(path).absolute().as_uri() + ("?immutable=1" if immutable else "?mode=ro")


def store_path(connection: Connection) -> str:
    """The file that a connection reads; "" for one in memory, or where that is not told."""
    try:
        rows = connection.execute("PRAGMA database_list").fetchall()
    except sqlite3.DatabaseError:
        return ""
    path = next((str(row[2] or "") for row in rows if row[1] == "main"), "")
    # SQLite tells its bytes as UTF-8, which is not what names are made of in every locale.
    return os.fsdecode(path.encode("utf-8", "surrogateescape"))


def says_damaged(error: BaseException) -> bool:
    """Whether an error of SQLite says that a file, or a page of it, is not what it has to be."""
    if isinstance(error, UnicodeDecodeError):  # SQLite's words, quoting what is damaged
        return True
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in _DAMAGED or any(words in str(error) for words in _WORDS_OF_DAMAGE)


def quoted(name: str) -> str:
    """A name of a table or column as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def reference(connection: Connection) -> Callable[[], Connection]:
    """The connection, without keeping it alive where that can be avoided."""
    try:
        reference = weakref.ref(connection)
    except TypeError:
        return lambda: connection

    def itself() -> Connection:
        found = reference()
        assert found is not None  # a function runs on its connection
        return found

    return itself
