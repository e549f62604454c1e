"""The private copies of PostgreSQL databases: which files are one, of what, and of when. Needs no driver."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from state_ledger.postgresql.address import copies_folder
from state_ledger.sqlite import BUSY_TIMEOUT_S, UNREADABLE, Connection, read_only_uri, sqlite3

TABLE = "state_ledger_copy"
"""In every copy, one row: what it is, in the transaction that also wrote the rows."""


@dataclass(frozen=True)
class Copy:
    """path: a SQLite file of this user's. name: `host/database`. taken_at: epoch seconds of what it shows.

    watermark: the transaction of the server before which everything was seen. layout: the tables that were
    copied, and of which server, as a text to be compared.
    """

    path: Path
    name: str
    taken_at: float
    watermark: int
    layout: str


def copy_at(path: str | Path) -> Copy | None:
    """The copy that a file is; None for any other file, and for a copy that is still being made. Raises nothing."""
    path = Path(path)
    if copies_folder() not in path.parents:
        return None
    try:
        with closing(sqlite3.connect(read_only_uri(path), uri=True, timeout=BUSY_TIMEOUT_S)) as connection:
            return read(connection, path)
    except UNREADABLE:
        return None


def read(connection: Connection, path: Path) -> Copy | None:
    """What a copy says it is; None where nothing was committed yet. Raises sqlite3.DatabaseError."""
    if not connection.execute("SELECT 1 FROM main.sqlite_master WHERE name = ?", (TABLE,)).fetchone():
        return None
    row = connection.execute(f"SELECT name, taken_at, watermark, layout FROM {TABLE}").fetchone()
    return None if row is None else Copy(path, *row)


def write(connection: Connection, copy: Copy) -> None:
    """Puts down what a copy is, within the transaction of its rows."""
    connection.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} (name TEXT, taken_at REAL, watermark INTEGER, layout TEXT)")
    connection.execute(f"DELETE FROM {TABLE}")
    values = (copy.name, copy.taken_at, copy.watermark, copy.layout)
    connection.execute(f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?)", values)


def as_text(layout: Any) -> str:
    """A layout as a text that is equal for equal ones."""
    return json.dumps(layout, separators=(",", ":"))
