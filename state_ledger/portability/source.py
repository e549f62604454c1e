"""Where an export reads: short statements on whatever connection serves it at the moment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from state_ledger.schema import declared_columns
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, quoted, sqlite3

PAGE_ROWS = 500
PAGE_CHARACTERS = 1 << 20
"""A page of messages ends at the first of these, so that memory stays flat whatever their number and length."""

Row = tuple[Any, ...]


class Source:
    """A store as an export reads it.

    Every read ends before it is handed on: no transaction lasts while a file is written or sent. Each
    may run on another connection, which the caller sets before the export goes on.

    connection: the one to use now. shape: what the file really has. replaced: texts that were not UTF-8
    and are given with replacement characters.
    """

    def __init__(self, connection: Connection, shape: Shape | None = None) -> None:
        self.connection = connection
        self.shape = Shape.read(connection) if shape is None else shape
        self.replaced = 0
        self.columns = {
            table: _columns(table, self.shape) for table in ("sessions", "messages", "session_model_usage")
        }
        live = set(self.shape.tables.get("messages", ()))
        listed = ", ".join(quoted(name) if name in live else "NULL" for name in self.columns["messages"])
        self._among = (
            f"SELECT {listed} FROM main.messages WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        )
        self._between = f"SELECT {listed} FROM main.messages WHERE id BETWEEN ? AND ? ORDER BY id"
        names = self.columns["messages"]
        self._long = tuple(names.index(name) for name in _LONG)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a statement as plain tuples."""
        return list(self.each(sql, parameters))

    def each(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        """The rows of a statement one by one; the caller takes them all at once."""
        given = 0
        with self._decoding() as cursor:
            try:
                for row in cursor.execute(sql, parameters):
                    given += 1
                    yield row
                return
            except sqlite3.OperationalError as error:
                self._decode_with_care(error)
            for number, row in enumerate(cursor.execute(sql, parameters)):
                if number >= given:
                    yield row

    def messages(self, ids: Sequence[int]) -> Iterator[list[Row]]:
        """Pages of messages by rising id, all columns of `columns["messages"]`; ids that are gone are left out."""
        start = 0
        while start < len(ids):
            asked = ids[start : start + PAGE_ROWS]
            page = _only(self._page(asked), asked)
            last = page[-1][0] if page else ids[min(start + PAGE_ROWS, len(ids)) - 1]
            yield page
            while start < len(ids) and ids[start] <= last:
                start += 1

    def _page(self, ids: Sequence[int]) -> list[Row]:
        dense = ids[-1] - ids[0] == len(ids) - 1
        sql = self._between if dense else self._among
        parameters: tuple[object, ...] = (ids[0], ids[-1]) if dense else (json.dumps(list(ids)),)
        with self._decoding() as cursor:
            try:
                return self._fetch(cursor.execute(sql, parameters))
            except sqlite3.OperationalError as error:
                self._decode_with_care(error)
            return self._fetch(cursor.execute(sql, parameters))

    def _fetch(self, cursor: Any) -> list[Row]:
        page: list[Row] = []
        characters = 0
        while characters < PAGE_CHARACTERS and (some := cursor.fetchmany(50)):
            page += some
            for row in some:
                for place in self._long:
                    if row[place] is not None:
                        characters += len(row[place])
        return page

    @contextmanager
    def _decoding(self) -> Iterator[Any]:
        """A cursor whose text is decoded by Python itself: several times as fast as by a function."""
        connection = self.connection
        held = connection.text_factory
        cursor = connection.cursor()
        cursor.row_factory = None
        connection.text_factory = str
        try:
            yield cursor
        finally:
            connection.text_factory = held
            cursor.close()

    def _decode_with_care(self, error: sqlite3.OperationalError) -> None:
        """After text that is not UTF-8 was met: from here on it is replaced and counted. Raises any other error."""
        if "decode" not in str(error).lower():
            raise error
        self.connection.text_factory = self._replace

    def _replace(self, stored: bytes) -> str:
        try:
            return str(stored, "utf-8")
        except UnicodeDecodeError:
            self.replaced += 1
            return str(stored, "utf-8", "replace")


def _only(page: list[Row], asked: Sequence[int]) -> list[Row]:
    """A page without what was not asked for: a damaged table gives rows twice, or under numbers of their own."""
    if [row[0] for row in page] == list(asked[: len(page)]):
        return page
    wanted = set(asked)
    kept: dict[int, Row] = {row[0]: row for row in page if row[0] in wanted}
    return [kept[number] for number in sorted(kept)]


_LONG = ("content", "tool_calls", "reasoning", "reasoning_content", "reasoning_details", "api_content")


def _columns(table: str, shape: Shape) -> tuple[str, ...]:
    """The declared columns in their order, then what a newer program has added; () without the table."""
    live = shape.tables.get(table, ())
    declared = declared_columns(table)
    return (*declared, *(name for name in live if name not in declared)) if live else ()


def select(source: Source, table: str) -> str:
    """The list of a SELECT for `source.columns[table]`: NULL for a column that the file does not have."""
    live = source.shape.tables.get(table, ())
    return ", ".join(quoted(name) if name in live else "NULL" for name in source.columns[table])
