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
from state_ledger.sqlite import Connection

_BATCH = 500
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


class Shares:
    """What part of each table and index some sessions have."""

    def __init__(self, connection: Connection, shape: Shape, file_sizes: Mapping[str, int]) -> None:
        """Counts the rows of the store; file_sizes: bytes by table and index, as from `storage.measure`."""
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
    owners = {
        str(name): str(table)
        for name, table in connection.execute("SELECT name, tbl_name FROM main.sqlite_master WHERE type <> 'trigger'")
        if table in ("sessions", "messages", _USAGE)
    }
    return {**owners, **{name: "messages" for name in shape.virtual if name.startswith("messages_fts")}}


def _batches(ids: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(ids), _BATCH):
        yield json.dumps(list(ids[start : start + _BATCH]))
