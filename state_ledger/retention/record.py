"""The whole record of a session as a fingerprint: as a store holds it, and as an export holds it.

An export may replace an original only if nothing is missing in it. So both are brought to the same
form, every column of the session, of each of its usage rows and of each of its message rows, taken back
or repeated ones too, with the type in which it is stored; and nothing but equality counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from state_ledger import content as contents
from state_ledger.content import json_text
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, quoted

_USAGE = "session_model_usage"

Columns = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Record:
    """messages, usage_rows: how many rows. digest: of all that is stored of the session."""

    messages: int
    usage_rows: int
    digest: str


def columns_of(shape: Shape) -> dict[str, tuple[str, ...]]:
    """The live columns whose values make up a record, by table."""
    return {table: tuple(sorted(shape.tables.get(table, ()))) for table in ("sessions", "messages", _USAGE)}


def stored(connection: Connection, shape: Shape, session_id: str) -> Record | None:
    """The record of a session as it is in the store; None if there is none, or not all of it can be exported.

    What an interrupted rebuild left in other usage tables is in no export.
    """
    columns = columns_of(shape)
    for table in shape.leftover_usage_tables:
        if connection.execute(f"SELECT 1 FROM {table} WHERE session_id = ? LIMIT 1", (session_id,)).fetchone():
            return None
    with _as_stored(connection):
        row = connection.execute(_select(columns, "sessions", "id = ?"), (session_id,)).fetchone()
        if row is None:
            return None
        making = _Making(tuple(row))
        if columns[_USAGE]:
            for usage in connection.execute(_select(columns, _USAGE, "session_id = ?"), (session_id,)):
                making.usage(tuple(usage))
        for message in connection.execute(_select(columns, "messages", "session_id = ? ORDER BY id"), (session_id,)):
            making.message(tuple(message))
    return making.record


def exported(path: Path, columns: Columns) -> dict[str, Record]:
    """The records of all sessions in a file of JSON Lines that `state-ledger export` made.

    Raises ValueError if the file is cut off or a line of it cannot be read; OSError.
    """
    found: dict[str, Record] = {}
    current: str | None = None
    making: _Making | None = None
    complete = False
    with path.open("rb") as file:
        for line in file:
            value = json.loads(line)
            kind = value.pop("type")
            if kind in ("session", "trailer") and current is not None and making is not None:
                found[current] = making.record
            if kind == "session":
                current, making = value["id"], _Making(_values(value, columns["sessions"]))
            elif kind == "trailer":
                complete = value.get("complete") is True
            elif kind in ("usage", "message"):
                if making is None or value["session_id"] != current:
                    raise ValueError(f"a {kind} of {value['session_id']} stands in another session")
                if kind == "usage":
                    making.usage(_values(value, columns[_USAGE]))
                else:
                    making.message(_values(_restored(value), columns["messages"]))
    if not complete:
        raise ValueError("the file does not say that it is complete")
    return found


class _Making:
    """Takes the rows of one session in turn."""

    def __init__(self, session: tuple[Any, ...]) -> None:
        self._hash = hashlib.blake2b(repr(session).encode("utf-8", "surrogatepass"), digest_size=24)
        self._usage: list[str] = []
        self._messages = 0

    def usage(self, row: tuple[Any, ...]) -> None:
        self._usage.append(repr(row))

    def message(self, row: tuple[Any, ...]) -> None:
        self._messages += 1
        self._hash.update(repr(row).encode("utf-8", "surrogatepass"))

    @property
    def record(self) -> Record:
        # Usage rows have no order of their own.
        whole = self._hash.copy()
        whole.update(repr(sorted(self._usage)).encode("utf-8", "surrogatepass"))
        return Record(self._messages, len(self._usage), whole.hexdigest())


def _values(record: Mapping[str, Any], columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(record.get(name, _ABSENT) for name in columns)


_ABSENT = ...
"""In the place of a column that an export lacks: equal to nothing that is stored."""


def _restored(message: dict[str, Any]) -> dict[str, Any]:
    """A message of an export with the texts that are stored for its values."""
    texts = message.get("stored") or {}
    made = dict(message)
    for name in ("content", "tool_calls", "display_metadata"):
        value = message.get(name)
        if name in texts:
            made[name] = texts[name]
        elif value is not None:
            made[name] = contents.encode(value) if name == "content" else json_text(value)
    return made


def _select(columns: Columns, table: str, condition: str) -> str:
    return f"SELECT {', '.join(map(quoted, columns[table]))} FROM main.{table} WHERE {condition}"


@contextmanager
def _as_stored(connection: Connection) -> Iterator[None]:
    """Text that is not UTF-8 comes with marks that no export has, so that its replacement is no match."""
    held = connection.text_factory
    connection.text_factory = _with_marks
    try:
        yield
    finally:
        connection.text_factory = held


def _with_marks(raw: bytes) -> str:
    return str(raw, "utf-8", "surrogateescape")
