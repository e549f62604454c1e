"""Stores with real damage in known places."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from state_ledger.sqlite import sqlite3


def root_of(path: Path, name: str) -> int:
    """The first page of a table or index."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        return int(connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0])


def leaf_of(path: Path, name: str, child: int = 0) -> int:
    """A leaf page of a table or index: the one under the numbered child of its first page."""
    data, page = path.read_bytes(), root_of(path, name)
    size = int.from_bytes(data[16:18], "big")
    while data[(page - 1) * size] in (2, 5):  # an inner page of an index or of a table
        start = (page - 1) * size
        cell = int.from_bytes(data[start + 12 + 2 * child : start + 14 + 2 * child], "big")
        page, child = int.from_bytes(data[start + cell : start + cell + 4], "big"), 0
    return page


def wipe(path: Path, name: str, child: int = 0) -> None:
    """Writes zeros over one leaf page of a table or index of a store that nobody has open."""
    page, size = leaf_of(path, name, child), int.from_bytes(path.read_bytes()[16:18], "big")
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


def run(path: Path, script: str) -> None:
    """Runs SQL on a store, foreign keys unchecked, and leaves nothing beside it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
