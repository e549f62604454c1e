"""Rows of a PostgreSQL table as SQLite's store would have them, in batches of bounded size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from psycopg import sql

from state_ledger import content, schema
from state_ledger.postgresql.catalogue import Column, Table
from state_ledger.postgresql.server import Connection

BATCH_BYTES = 4 << 20
"""About what is in memory at once; a batch is as many rows as the ones before lead to expect."""
MOST_ROWS = 5_000
_FIRST_ROWS = 100

STRUCTURED = "\x01json:"
"""In the place of `content.PREFIX`, which PostgreSQL's text cannot hold."""

_INTEGERS = frozenset({"int2", "int4", "int8", "oid"})
_REALS = frozenset({"float4", "float8", "numeric"})
_MOMENTS = frozenset({"timestamptz", "timestamp", "date"})
_LEFT_OUT = frozenset({"tsvector", "tsquery"})
"""What only the server's own search reads."""

Row = tuple[Any, ...]


def kept(table: Table) -> tuple[Column, ...]:
    """The columns that are copied."""
    return tuple(column for column in table.columns if column.type not in _LEFT_OUT)


def sqlite_type(table: str, column: Column) -> str:
    """The declared type of a column in the copy: that of the schema, else the nearest to the server's."""
    for declared in schema.TABLES.get(table, ()):
        if declared.name == column.name:
            return declared.type
    if column.type in _INTEGERS or column.type == "bool":
        return "INTEGER"
    if column.type in _REALS or column.type in _MOMENTS:
        return "REAL"
    return "BLOB" if column.type == "bytea" else "TEXT"


def select(table: Table, columns: Sequence[Column], since: int | None = None) -> sql.Composed:
    """SELECT of some columns as the copy has them.

    since: only rows that a transaction may have written which had not ended at this watermark. It is compared as
    transactions are, on a circle of 2 ** 32.
    """
    listed = sql.SQL(", ").join(_expression(table.name, column) for column in columns)
    conditions = _conditions(table)
    if since is not None:
        first = sql.Literal(since % 2**32)
        conditions.append(
            sql.SQL("((xmin::text::bigint - {first}) & 4294967295) < 2147483648").format(first=first)
        )
    return sql.SQL("SELECT {} FROM {}{}").format(listed, sql.Identifier(table.name), _where(conditions))


def count(table: Table) -> sql.Composed:
    """SELECT of how many rows there are to copy."""
    return sql.SQL("SELECT count(*) FROM {}{}").format(sql.Identifier(table.name), _where(_conditions(table)))


def batches(connection: Connection, query: sql.Composed, table: str, columns: Sequence[Column]) -> Iterator[list[Row]]:
    """The rows of a query through a cursor of the server, a batch at a time. Raises psycopg.Error."""
    changed = [(at, change) for at, column in enumerate(columns) if (change := _change(table, column))]
    with connection.cursor(name="state_ledger") as cursor:
        cursor.execute(query)
        number = _FIRST_ROWS
        while rows := cursor.fetchmany(number):
            size = sum(len(value) for row in rows for value in row if isinstance(value, (str, bytes)))
            fitting = int(len(rows) * BATCH_BYTES / max(size, 1))
            number = max(1, min(MOST_ROWS, 4 * number, fitting))
            yield _changed(rows, changed) if changed else rows


def _changed(rows: Iterable[Row], changes: Sequence[tuple[int, Callable[[Any], Any]]]) -> list[Row]:
    made = []
    for row in rows:
        values = list(row)
        for at, change in changes:
            values[at] = change(values[at])
        made.append(tuple(values))
    return made


def _change(table: str, column: Column) -> Callable[[Any], Any] | None:
    if column.type == "numeric":
        return _number
    return _with_nul if (table, column.name) == ("messages", "content") else None


def _number(value: Decimal | None) -> int | float | None:
    if value is None:
        return None
    whole = value.is_finite() and value == value.to_integral_value()
    if whole and abs(value) < 2**63:
        return int(value)
    number = float(value)
    return None if math.isnan(number) else number


def _with_nul(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(STRUCTURED):
        return content.PREFIX + value[len(STRUCTURED) :]
    return value


def _expression(table: str, column: Column) -> sql.Composable:
    name = sql.Identifier(column.name)
    if column.type in _INTEGERS or column.type in _REALS or column.type == "bytea":
        return name
    if column.type == "bool":
        return sql.SQL("{}::int").format(name)
    if column.type in _MOMENTS:
        return sql.SQL("extract(epoch FROM {})::float8").format(name)
    if column.type == "[]":
        return sql.SQL("array_to_json({})::text").format(name)
    if column.type in ("json", "jsonb") and (table, column.name) == ("messages", "content"):
        return sql.SQL(
            "CASE json_typeof({0}::json) WHEN 'string' THEN {0} #>> '{{}}' WHEN 'null' THEN NULL"
            " ELSE {1} || {0}::text END"
        ).format(name, sql.Literal(STRUCTURED))
    return sql.SQL("{}::text").format(name)


def _conditions(table: Table) -> list[sql.Composable]:
    # Marks that a full-text index of SQLite is being rebuilt came along from there; the copy has its own index.
    return [sql.SQL("key NOT LIKE 'fts%'")] if table.name == "state_meta" else []


def _where(conditions: Sequence[sql.Composable]) -> sql.Composable:
    return sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("")
