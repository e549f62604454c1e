"""SQL expressions over the columns that a file really has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from state_ledger.shape import Shape

MOST = "9e15"
"""Below the largest whole number that JSON and doubles keep exact; a counter above it cannot be true."""

_PLAIN = re.compile(r"(?:\w+\.)?(\w+)")
"""A column and nothing else."""


def column(shape: Shape, table: str, name: str, alias: str, *, absent: str = "NULL") -> str:
    """`alias.name` if the file has that column, else `absent` (a missing column is NULL)."""
    return f"{alias}.{name}" if shape.has(table, name) else absent


def listed(columns: Mapping[str, str]) -> str:
    """A list for SELECT of expressions by their names; an expression that ends in its name needs no other.

    SQLite names the column of a view after the column that stands there, and every connection parses
    the text of all views.
    """
    return ", ".join(
        expression if (plain := _PLAIN.fullmatch(expression)) and plain[1] == name else f"{expression} AS {name}"
        for name, expression in columns.items()
    )


def some_cannot_count(names: Iterable[str]) -> str:
    """A condition, true where one of the values is neither NULL nor a number that can be a count or an amount.

    SQLite sorts every text and blob above every number, so one BETWEEN refuses text in a numeric
    column, infinity and negative values alike (accounting rule 9). The plus takes a column's affinity
    away, which would compare text as text. Otherwise false or NULL.
    """
    return " OR ".join(f"+{name} NOT BETWEEN 0 AND {MOST}" for name in names)


LAST_SECOND = "1e11"
"""The largest value read as epoch seconds (the year 5138); above it, it can only be milliseconds."""

LAST_MILLISECOND = "1e14"


def seconds(expression: str) -> str:
    """Epoch seconds, or NULL when the value cannot be a time (accounting rule 19).

    A value that can only be milliseconds is divided; `ledger_discrepancies` lists where.
    """
    if expression == "NULL":
        return expression
    return (
        f"{expression} / CASE WHEN {expression} BETWEEN 1 AND {LAST_SECOND} THEN 1"
        f" WHEN {expression} BETWEEN {LAST_SECOND} AND {LAST_MILLISECOND} THEN 1000.0 END"
    )


def newest_message(session: str) -> str:
    """The moment of a session's newest message, epoch seconds, NULL without messages.

    One seek in the index on (session_id, timestamp), a second one where the greatest value is in
    milliseconds; no message is read.
    """
    newest = "max(m.timestamp)"
    in_seconds = (
        f"(SELECT max(m.timestamp) FROM main.messages AS m WHERE m.session_id = {session}"
        f" AND m.timestamp BETWEEN 1 AND {LAST_SECOND})"
    )
    return (
        f"(SELECT CASE WHEN {newest} > {LAST_SECOND} THEN max({newest} / 1000.0, coalesce({in_seconds}, 0))"
        f" ELSE {newest} END {messages_of(session)})"
    )


def messages_of(session: str) -> str:
    """FROM and WHERE of the messages of a session that have a time."""
    return f"FROM main.messages AS m WHERE m.session_id = {session} AND m.timestamp BETWEEN 1 AND {LAST_MILLISECOND}"


def bounds_of_messages(session: str) -> tuple[str, str]:
    """Two buckets between which a session's messages lie, each one or two seeks in the index.

    Wide open where there are no messages or some are in milliseconds, so that no row falls outside.
    """
    low, high = "0", "99999999900"
    first = (
        f"CASE WHEN EXISTS (SELECT 1 FROM main.messages AS m WHERE m.session_id = {session}"
        f" AND m.timestamp BETWEEN {LAST_SECOND} AND {LAST_MILLISECOND}) THEN {low}"
        f" ELSE coalesce((SELECT {bucket('min(m.timestamp)')} {messages_of(session)}), {low}) END"
    )
    last = (
        f"coalesce((SELECT CASE WHEN max(m.timestamp) < {LAST_SECOND} THEN {bucket('max(m.timestamp)')} END"
        f" {messages_of(session)}), {high})"
    )
    return first, last


def bucket(expression: str) -> str:
    """The 15-minute bucket, epoch seconds of its beginning, in which an instant falls."""
    return f"CAST(({expression}) / 900 AS INTEGER) * 900"


def json_marker(expression: str, path: str) -> str:
    """A value of a JSON text column, NULL where the text is not JSON (store-wide habit, not an error)."""
    return f"CASE WHEN json_valid({expression}) THEN json_extract({expression}, '{path}') END"


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
