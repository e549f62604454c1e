"""The one SQLite library of this process.

Two SQLite libraries on one file in one process drop each other's POSIX locks, so every module
takes `sqlite3` from here. Datasette and sqlite-utils choose the same way: pysqlite3 where it is
installed, else Python's own.
"""

from __future__ import annotations

import sqlite3 as _stdlib
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

__all__ = ["Connection", "Row", "sqlite3", "version_info"]

Connection = sqlite3.Connection
Row = sqlite3.Row

version_info: tuple[int, ...] = tuple(int(part) for part in sqlite3.sqlite_version.split("."))
"""The linked library's version, for instance `(3, 53, 4)`."""


def read_only_uri(path: str | PathLike[str], *, immutable: bool = False) -> str:
    """The URI by which SQLite opens a file to read; `?`, `#` and `%` in its name are quoted."""
    return Path(path).absolute().as_uri() + ("?immutable=1" if immutable else "?mode=ro")
