"""The shape of a store, read once until its schema changes."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from state_ledger.companion import store_path
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection


def of(connection: Connection) -> Shape:
    """The shape of the file that a connection reads."""
    path = store_path(connection)
    if not path:
        return Shape.read(connection)
    version = connection.execute("PRAGMA main.schema_version").fetchone()[0]
    key = path, Path(path).stat().st_ino, version
    found = _known(key)
    if found:
        return found[0]
    found.append(Shape.read(connection))
    return found[0]


@lru_cache(maxsize=64)
def _known(_key: tuple[str, int, int]) -> list[Shape]:
    return []
