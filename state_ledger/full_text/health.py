"""Whether a full-text index can answer: present, readable, filled, up to date.

Without a usable index Datasette leaves a search term out and gives every row, so this is asked
before a search. A few look-ups by key: a fraction of a millisecond whatever the store's size.
"""

from __future__ import annotations

from state_ledger.full_text import WORDS
from state_ledger.sqlite import Connection, quoted, sqlite3


def why_unusable(
    connection: Connection, index: str | None, content_table: str, *, when_half_built: bool = False
) -> str | None:
    """A sentence on why `index` cannot answer for the rows of `content_table`; None if it can.

    when_half_built: whether an index that is being rebuilt will do: the caller then looks through
    the rows between the marks (`rows_waiting`) by itself.

    `SELECT count(*)` on an index is no proof of health: with external content it counts the content,
    also when the index is empty. What is in an index stands in its `_docsize` table.
    """
    if index is None:
        return f"The table {content_table} has no search index."
    try:
        connection.execute(f"SELECT rowid FROM main.{quoted(index)} WHERE {quoted(index)} MATCH '\"a\"' LIMIT 1")
    except sqlite3.DatabaseError as error:
        return f"The search index {index} cannot be used here ({error})."
    if _has_rows(connection, content_table) and not _has_rows(connection, f"{index}_docsize"):
        return f"The search index {index} is empty although there are rows in {content_table}."
    waiting = rows_waiting(connection) if content_table == "messages" else None
    if waiting is not None and not when_half_built:
        return (
            f"The search index {index} is being rebuilt: messages {waiting[0] + 1} to {waiting[1]} "
            "are not in it yet."
        )
    # Other indexes leave rows out on purpose (tool results, sessions of cron).
    if (index, content_table) == (WORDS.name, WORDS.source):
        behind = _newest_left_out(connection)
        if behind is not None:
            return (
                f"The search index {index} lacks the newest messages: it ends at message {behind[0]}, "
                f"the table {content_table} at {behind[1]}."
            )
    return None


def _newest_left_out(connection: Connection) -> tuple[int, int] | None:
    """The last message id in the index and in the table, where the index ends first; None if it does not.

    That is what a lost insert trigger leaves. One statement, so that a message that is written
    meanwhile is seen in both or in neither.
    """
    try:
        row = connection.execute(
            f"SELECT (SELECT max(id) FROM main.{WORDS.name}_docsize), (SELECT max(id) FROM main.{WORDS.source})"
        ).fetchone()
    except sqlite3.DatabaseError:  # an index without sizes, see _has_rows
        return None
    indexed, newest = row
    return (indexed, newest) if indexed is not None and newest is not None and indexed < newest else None


def _has_rows(connection: Connection, table: str) -> bool:
    try:
        found = connection.execute(f"SELECT 1 FROM main.{quoted(table)} LIMIT 1").fetchone()
    except sqlite3.DatabaseError:
        # An index may be declared without sizes (columnsize=0); then nothing says that it is empty.
        return True
    return found is not None


def rows_waiting(connection: Connection, family: str = "fts") -> tuple[int, int] | None:
    """Message ids (after, up to) that a rebuild has yet to index: store format, section 1.6, "Gate".

    family: `fts` for the word and trigram indexes, `fts_cjk` for the one that has marks of its own.
    """
    progress, high_water = f"{family}_rebuild_progress", f"{family}_rebuild_high_water"
    try:
        marks = {
            key: int(value)
            for key, value in connection.execute(
                "SELECT key, value FROM main.state_meta WHERE key IN (?, ?)", (progress, high_water)
            )
        }
    except (sqlite3.DatabaseError, TypeError, ValueError):
        return None
    done, goal = marks.get(progress, -1), marks.get(high_water, -1)
    return (max(done, 0), goal) if goal > done else None
