"""What the lake holds of each store: rows of the semantic layer, in which the accounting rules are already applied.

Rules live in the views of SQLite alone. What leaves a host is what they say, so that engines need know
none of the shapes that a store had in twenty-five versions of its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from state_ledger import ledger, schema
from state_ledger.ledger.columns import bucket
from state_ledger.ledger.glossary import COLUMNS
from state_ledger.sqlite import Connection, sqlite3

Kind = Literal["text", "real", "integer"]

WHOLE_STORE = "all"
"""In the place of a month, for tables that are not about sessions."""


class Column(NamedTuple):
    """kind: how values are stored; counts are `real` too, which hold whole numbers exactly up to 2 ** 53."""

    name: str
    kind: Kind


class Table(NamedTuple):
    """Rows of one view.

    select: reads them on a connection with the semantic layer, in the order of `columns`. session: the column by
    which rows belong to the month in which the session began; '' for rows of the store as a whole.
    texts: columns with what was said, which leave a host only when they are asked for.
    """

    name: str
    columns: tuple[Column, ...]
    select: str
    session: str = "session_id"
    texts: tuple[str, ...] = ()


_WHOLE_NUMBERS = frozenset({"id", "message_id", "bucket", "first_bucket", "last_bucket", "owner_pid"})
_NUMBERS = frozenset(
    {"estimated_cost_usd", "actual_cost_usd", "has_actual", "more_estimated", "more_actual", "free_rows",
     "session_value", "usage_value", "difference", "number", "text_bytes"}
)  # fmt: skip

_AS_THEY_ARE = (
    # view, column by which rows belong to a session, columns with what was said
    ("session_facts", "session_id", ("preview",)),
    ("usage", "session_id", ()),
    ("time", "session_id", ()),
    ("lineage", "session_id", ()),
    ("usage_rows", "session_id", ()),
    ("session_rows", "session_id", ()),
    ("session_rest", "session_id", ()),
    ("set_aside", "session_id", ()),
    ("discrepancies", "session_id", ()),
    ("continuations", "session_id", ()),
    ("messages", "session_id", ("text", "shown_parts", "reasoning", "api_content", "tool_calls")),
    ("message_copies", "session_id", ("text", "tool_calls")),
    ("tool_calls", "session_id", ("arguments",)),
    ("orphans", "", ()),
    ("locks", "", ()),
    ("delegations", "", ()),
    ("routing", "", ()),
    ("storage", "", ()),
)  # fmt: skip


@lru_cache(maxsize=1)
def tables() -> tuple[Table, ...]:
    """Every table, in an order in which a session comes before what belongs to it."""
    with sqlite3.connect(":memory:") as connection:
        for table in schema.TABLES:
            listed = ", ".join(column.name for column in schema.TABLES[table])
            connection.execute(f"CREATE TABLE {table} ({listed})")
        ledger.install(connection)
        found = []
        for name, session, texts in _AS_THEY_ARE:
            cursor = connection.execute(f"SELECT * FROM ledger_{name} LIMIT 0")
            columns = tuple(Column(each[0], kind_of(each[0])) for each in cursor.description)
            found.append(Table(name, columns, _select(f"ledger_{name}", columns), session, texts))
    connection.close()
    heard = (Column("session_id", "text"), Column("bucket", "integer"), Column("timestamp", "real"),
             Column("number", "real"))  # fmt: skip
    found.append(
        Table(
            "message_times", heard,
            f"SELECT session_id, {bucket('timestamp')}, max(timestamp), count(*) FROM ledger_message_times"
            f" GROUP BY session_id, {bucket('timestamp')}",
        )
    )  # fmt: skip
    sizes = (Column("session_id", "text"), Column("number", "real"), Column("text_bytes", "real"))
    found.append(
        Table(
            "message_sizes", sizes,
            "SELECT session_id, count(*), sum(text_bytes) FROM ledger_message_sizes GROUP BY session_id",
        )
    )  # fmt: skip
    return tuple(found)


def kind_of(column: str) -> Kind:
    """How the values of a column are stored, wherever it stands."""
    if column in _WHOLE_NUMBERS:
        return "integer"
    if column in _NUMBERS or column.startswith("own_") or (column in COLUMNS and COLUMNS[column].unit):
        return "real"
    return "text"


def rows(store: Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    """The rows of a table of one store. Raises sqlite3.DatabaseError."""
    for row in store.execute(table.select):
        yield tuple(row)


def _select(view: str, columns: tuple[Column, ...]) -> str:
    return f"SELECT {', '.join(column.name for column in columns)} FROM {view}"
