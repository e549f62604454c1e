"""SQL expressions over the columns that a file really has."""

from __future__ import annotations

from state_ledger.shape import Shape

MOST = "9007199254740992"
"""The largest whole number that JSON and doubles keep exact; a counter above it cannot be true."""


def column(shape: Shape, table: str, name: str, alias: str, *, absent: str = "NULL") -> str:
    """`alias.name` if the file has that column, else `absent` (a missing column is NULL)."""
    return f'{alias}."{name}"' if shape.has(table, name) else absent


def counts(expression: str) -> str:
    """A condition: NULL or a number that can be a count or an amount.

    SQLite sorts every text and blob above every number, so one BETWEEN refuses text in a numeric
    column, infinity and negative values alike (accounting rule 9).
    """
    return f"coalesce({expression}, 0) BETWEEN 0 AND {MOST}"


LAST_SECOND = "99999999999"
"""The largest value read as epoch seconds (the year 5138); above it, it can only be milliseconds."""

LAST_MILLISECOND = "100000000000000"


def seconds(expression: str) -> str:
    """Epoch seconds, or NULL when the value cannot be a time (accounting rule 19).

    A value that can only be milliseconds is divided; `ledger_discrepancies` lists where.
    """
    return (
        f"CASE WHEN {expression} BETWEEN 1 AND {LAST_SECOND} THEN {expression}"
        f" WHEN {expression} BETWEEN {LAST_SECOND} AND {LAST_MILLISECOND} THEN {expression} / 1000.0 END"
    )


def first_and_last(session: str) -> tuple[str, str]:
    """The first and the last moment of a session's messages, epoch seconds, NULL without messages.

    One seek in the index on (session_id, timestamp) finds the last; only where that is in
    milliseconds are seconds and milliseconds looked up apart. No message is read.
    """
    of_session = f"FROM main.messages AS m WHERE m.session_id = {session} AND m.timestamp BETWEEN"
    newest = (
        f"(SELECT CASE WHEN m.timestamp <= {LAST_SECOND} THEN m.timestamp END"
        f" {of_session} 1 AND {LAST_MILLISECOND} ORDER BY m.timestamp DESC LIMIT 1)"
    )

    def apart(aggregate: str, none: str) -> str:
        whole = f"coalesce((SELECT {aggregate}(m.timestamp) {of_session} 1 AND {LAST_SECOND}), {none})"
        thousandths = (
            f"coalesce((SELECT {aggregate}(m.timestamp) {of_session} {LAST_SECOND} AND {LAST_MILLISECOND})"
            f" / 1000.0, {none})"
        )
        return f"nullif({aggregate}({whole}, {thousandths}), {none})"

    first = (
        f"CASE WHEN {newest} IS NOT NULL THEN (SELECT min(m.timestamp) {of_session} 1 AND {LAST_SECOND})"
        f" ELSE {apart('min', '9e99')} END"
    )
    return first, f"coalesce({newest}, {apart('max', '0')})"


def bucket(expression: str) -> str:
    """The 15-minute bucket, epoch seconds of its beginning, in which an instant falls."""
    return f"CAST(({expression}) / 900 AS INTEGER) * 900"


def json_marker(expression: str, path: str) -> str:
    """A value of a JSON text column, NULL where the text is not JSON (store-wide habit, not an error)."""
    return f"CASE WHEN json_valid({expression}) THEN json_extract({expression}, '{path}') END"


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
