"""How much of a store some sessions take up: rows, bytes of text, and estimates for tables and indexes.

Source: accounting rule 24. Text is counted; what an index or a table takes for it is that index's size
in the share that these sessions have of its rows, as SQLite does not tell which page is whose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from state_ledger.ledger.retention import text_bytes
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, sqlite3

_BATCH = 500
_BLOCKS = 5000
_USAGE = "session_model_usage"


@dataclass(frozen=True)
class Load:
    """Of one session: its message rows, the bytes of their text, its usage rows."""

    messages: int = 0
    text_bytes: int = 0
    usage_rows: int = 0


@dataclass(frozen=True)
class Weight:
    """Of some sessions together.

    messages, usage_rows: rows. text_bytes: of the messages, counted. estimated: bytes in the file by
    table and index, estimated; empty where the file's sizes are not known.
    """

    sessions: int = 0
    messages: int = 0
    text_bytes: int = 0
    usage_rows: int = 0
    estimated: Mapping[str, int] = field(default_factory=dict)

    @property
    def estimated_bytes(self) -> int:
        """Of all tables and indexes together."""
        return sum(self.estimated.values())


def loads(connection: Connection, shape: Shape, ids: Sequence[str]) -> dict[str, Load]:
    """The load of each of these sessions."""
    messages: dict[str, tuple[int, int]] = {}
    usage: dict[str, int] = {}
    for batch in _batches(ids):
        for row in connection.execute(
            f"SELECT m.session_id, count(*), coalesce(sum({text_bytes(shape, 'm')}), 0) FROM messages AS m"
            " WHERE m.session_id IN (SELECT value FROM json_each(?)) GROUP BY m.session_id",
            (batch,),
        ):
            messages[row[0]] = (row[1], row[2])
        if shape.has(_USAGE):
            for row in connection.execute(
                f"SELECT session_id, count(*) FROM {_USAGE}"
                " WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id",
                (batch,),
            ):
                usage[row[0]] = row[1]
    return {id: Load(*messages.get(id, (0, 0)), usage.get(id, 0)) for id in ids}


def sizes(connection: Connection, shape: Shape) -> dict[str, int]:
    """The bytes of tables and indexes of the file, by name. Reads large parts of the file once, in pieces.

    Where this SQLite has no `dbstat`, only full-text indexes are told apart; all else counts as messages.
    """
    try:
        names = connection.execute("SELECT name FROM main.sqlite_master WHERE rootpage > 0").fetchall()
        one = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND name = ?"
        return {str(name): int(connection.execute(one, (name,)).fetchone()[0]) for (name,) in names}
    except sqlite3.DatabaseError:
        pages = Pages.of(connection)
        found = {f"{index}_data": _bytes_of_blocks(connection, f"{index}_data") for index in _indexes(shape)}
        return {"messages": max((pages.count - pages.free) * pages.size - sum(found.values()), 0), **found}


def _bytes_of_blocks(connection: Connection, table: str) -> int:
    total, last = 0, -1
    while True:
        rows = connection.execute(
            f"SELECT id, length(block) FROM {table} WHERE id > ? ORDER BY id LIMIT {_BLOCKS}", (last,)
        ).fetchall()
        total += sum(row[1] or 0 for row in rows)
        if len(rows) < _BLOCKS:
            return total
        last = rows[-1][0]


@dataclass(frozen=True)
class Pages:
    """Of a file: its pages, how many of them are free, and their size in bytes."""

    count: int
    free: int
    size: int

    @classmethod
    def of(cls, connection: Connection) -> Pages:
        """As the file is now."""
        return cls(*(
            int(connection.execute(f"PRAGMA main.{name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        ))  # fmt: skip


class Shares:
    """What part of each table and index some sessions have."""

    def __init__(self, connection: Connection, shape: Shape, file_sizes: Mapping[str, int]) -> None:
        """Counts the rows of the store; file_sizes: as from `sizes`."""
        self._sizes = file_sizes
        self._owner = {} if not file_sizes else _owners(connection, shape)
        self._rows = {
            table: max(1, int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))
            for table in ("sessions", "messages", _USAGE)
            if file_sizes and shape.has(table)
        }

    def weigh(self, of: Sequence[Load]) -> Weight:
        """The weight of the sessions with these loads."""
        messages, usage = sum(load.messages for load in of), sum(load.usage_rows for load in of)
        parts = {"sessions": len(of), "messages": messages, _USAGE: usage}
        estimated = {
            name: round(size * min(1.0, parts[owner] / self._rows[owner]))
            for name, size in sorted(self._sizes.items())
            if (owner := self._owner.get(name)) is not None and owner in self._rows
        }
        return Weight(
            len(of), messages, sum(load.text_bytes for load in of), usage,
            {name: size for name, size in estimated.items() if size},
        )  # fmt: skip


def _owners(connection: Connection, shape: Shape) -> dict[str, str]:
    """Whose rows each table and index of the file holds: those of sessions, messages or usage."""
    owners = {}
    indexes = tuple(f"{index}_" for index in _indexes(shape))
    for name, table in connection.execute("SELECT name, tbl_name FROM main.sqlite_master WHERE type <> 'trigger'"):
        if table in ("sessions", "messages", _USAGE):
            owners[str(name)] = str(table)
        elif str(name).startswith(indexes):
            owners[str(name)] = "messages"
    return owners


def _indexes(shape: Shape) -> list[str]:
    return sorted(name for name in shape.virtual if name.startswith("messages_fts"))


def _batches(ids: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(ids), _BATCH):
        yield json.dumps(list(ids[start : start + _BATCH]))
