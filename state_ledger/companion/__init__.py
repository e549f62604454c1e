"""The companion of a store: what an index would answer and the store does not have.

One SQLite file per store in the user's cache folder, made from the store by reading it, thrown away
and made again at will. Nothing depends on it: what it answers is answered without it, slower.

It holds an index over pairs of characters for scripts without spaces, over all messages, and daily rollups.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from state_ledger.sqlite import Connection, sqlite3

if TYPE_CHECKING:
    from state_ledger.companion.reading import Companion

__all__ = ["beside", "open_for_search"]


def open_for_search(store_path: str | Path, connection: Connection | None = None) -> Companion | None:
    """The companion of a store, for a search: `companion.reading.open_for_search`.

    Imported when it is called: the search asks the companion, whose rules of text are the search's own.
    """
    from state_ledger.companion import reading

    return reading.open_for_search(store_path, connection)


@contextmanager
def beside(connection: Connection) -> Iterator[Companion | None]:
    """The companion of the store that a connection reads, while it is needed; None where there is none.

    Costs a look at the file system where there is none.
    """
    path = store_path(connection)
    companion = open_for_search(path, connection) if path else None
    try:
        yield companion
    finally:
        if companion is not None:
            companion.close()


def store_path(connection: Connection) -> str:
    """The file that a connection reads; "" for one in memory, or where that is not told."""
    try:
        rows = connection.execute("PRAGMA database_list").fetchall()
    except sqlite3.DatabaseError:
        return ""
    return next((str(row[2] or "") for row in rows if row[1] == "main"), "")
