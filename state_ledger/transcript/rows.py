"""Rows of a query as dictionaries, and lists of values as placeholders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from state_ledger.sqlite import Connection

MOST_VALUES = 512
"""How many values one statement takes; more are asked in several."""


def records(connection: Connection, sql: str, values: Sequence[Any] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a query by column name, read as they are asked for."""
    cursor = connection.execute(sql, values)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def among(connection: Connection, sql: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The rows of a query that has `{among}` where `IN (…)` is to stand.

    A list is filled up to a power of two, so that few different statements have to be prepared; SQLite
    leads `IN` with plain values to the rows, which it does not do with a subquery.
    """
    for start in range(0, len(values), MOST_VALUES):
        part = list(values[start : start + MOST_VALUES])
        size = 1 << (len(part) - 1).bit_length()
        part += [part[-1]] * (size - len(part))
        yield from records(connection, sql.format(among=f"IN ({','.join('?' * size)})"), part)
