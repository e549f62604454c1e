"""Notes a store keeps about itself (`state_meta`), and its size.

Source: session-db, sections 11 and 12.
"""

from __future__ import annotations

from state_ledger.errors import StoreAccessError
from state_ledger.sqlite import Connection
from state_ledger.writing import checkpoints
from state_ledger.writing.writer import Writer


def get_meta(writer: Writer, key: str) -> str | None:
    """The text noted under a key, None if there is none."""
    found = writer.value("SELECT value FROM state_meta WHERE key = ?", (key,))
    return None if found is None else str(found)


def set_meta(writer: Writer, key: str, value: str | None, *, cursor: object = None) -> None:
    """Notes a text under a key, in place of what was there.

    cursor: a cursor of this handle whose transaction the note shall belong to; callers within
    `Writer.write` need none.
    """

    def note(connection: Connection) -> None:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES (?, ?) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    if cursor is not None and writer.connection.in_transaction:
        with writer.lock:
            note(writer.connection)
    else:
        writer.write(note)


def logical_size_bytes(writer: Writer) -> int | None:
    """Pages of the store times their size, the log's included; None if SQLite does not tell."""
    with writer.lock:
        pages, size = writer.value("PRAGMA page_count"), writer.value("PRAGMA page_size")
    return int(pages) * int(size) if pages and size else None


def vacuum(writer: Writer) -> int:
    """Merges the full-text indexes, brings the log in and rewrites the file without its gaps.

    Returns the number of indexes that were merged. Needs as much free disk as the store is big, and
    keeps other writers out meanwhile.
    Raises StoreBusyError if the store stays locked, StoreAccessError if it is open to read only.
    """
    from state_ledger.full_text import rewrite as index_rewrite

    if writer.read_only:
        raise StoreAccessError(
            writer.path, f"{writer.path} is open to read only.", "Open it with read_only=False to rewrite it."
        )
    merged = index_rewrite.optimize_fts(writer)
    with writer.lock:
        checkpoints.truncate(writer.connection)
        writer.alone("VACUUM")
        checkpoints.truncate(writer.connection)
    return merged
