"""Whether the ways to the rows of an export lead to the same rows: a damaged page can hide some without any error.

SQLite keeps no checksums. A flipped bit in the head of a page of an index can take half of a session's messages
out of every answer that is found by it, and no statement fails. What is kept more than once is compared instead:
every index has an entry for every row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from state_ledger.copying import HELD_BYTES
from state_ledger.errors import StoreUnreadableError
from state_ledger.portability.source import Source
from state_ledger.sqlite import quoted, store_path

_KEYS = {"messages": "session_id", "session_model_usage": "session_id", "sessions": "id"}
_SESSIONS_AT_ONCE = 200


def of_everything(source: Source, planned: int, last: int) -> None:
    """Returns if all rows of the store can be found. Raises StoreUnreadableError.

    planned: rows of messages that were found session by session, of those up to the id `last`. The tables
    themselves are walked through.
    """
    for table in _KEYS:
        if source.columns[table]:
            ways = ["NOT INDEXED", *(f"INDEXED BY {quoted(name)}" for name in _indexes(source, table))]
            _compare(source, table, ways, "", ())
    # Of an index with an entry that is out of order a search by key finds less than a walk.
    there = source.rows("SELECT count(*) FROM main.messages NOT INDEXED WHERE id <= ?", (last,))[0][0]
    if there > planned:
        raise _disagreeing(source, "messages", (planned, there))


def of_sessions(source: Source, sessions: Sequence[str]) -> None:
    """Returns if all indexes have the same rows of these sessions. Raises StoreUnreadableError."""
    for start in range(0, len(sessions), _SESSIONS_AT_ONCE):
        wanted = (json.dumps(list(sessions[start : start + _SESSIONS_AT_ONCE])),)
        for table, key in _KEYS.items():
            ways = [f"INDEXED BY {quoted(name)}" for name in _indexes(source, table, key)]
            _compare(source, table, ways, f" WHERE {key} IN (SELECT value FROM json_each(?1))", wanted)


def _compare(source: Source, table: str, ways: Sequence[str], where: str, parameters: Sequence[object]) -> None:
    """All ways in one statement, so that they see the store at one moment."""
    if len(ways) < 2:
        return
    # Of a plain count SQLite would take the smallest index, whatever it is told.
    each = (f"SELECT count(*), total(rowid) FROM main.{table} AS t {way}{where}" for way in ways)
    found = source.rows(" UNION ALL ".join(each), parameters)
    if len(set(found)) > 1:
        raise _disagreeing(source, table, [row[0] for row in found])


def _disagreeing(source: Source, table: str, counts: Iterable[int]) -> StoreUnreadableError:
    path = store_path(source.connection)
    said = " and ".join(f"{count:,}" for count in sorted(set(counts)))
    return StoreUnreadableError(
        path, None, f"{path} is damaged: its indexes disagree on the rows of {table} ({said}), so that some are hidden."
    )


def _indexes(source: Source, table: str, first: str = "") -> list[str]:
    """The indexes that have every row of a table; first: with this column before all others."""
    found = []
    for row in source.rows(f"PRAGMA main.index_list({table})"):
        columns = source.rows(f"PRAGMA main.index_info({quoted(str(row[1]))})")
        if not row[4] and (not first or (columns and columns[0][2] == first)):
            found.append(str(row[1]))
    return found


def may_be_walked(source: Source, quickly: bool) -> bool:
    """Whether the tables may be read to their end in one go: that holds up the writers of a store without a
    write-ahead log, and of a large one takes longer than a page may.
    """
    (mode,), (pages,), (size,) = (
        source.rows(f"PRAGMA main.{name}")[0] for name in ("journal_mode", "page_count", "page_size")
    )
    return bool(pages * size <= HELD_BYTES or (mode == "wal" and not quickly))
