"""What is read of each store, and the tables it is kept in.

The rows of the semantic layer of every store stand in one private database, which SQLite spills to a
nameless file of its own where they are many. Above them stand the views of the layer under their usual
names (`views`), so that a question need not know whether it is asked of one store or of fifty.

Rows of the text of messages are not kept: of messages there is how many fall into each 15 minutes, which
is as fine as the days of any zone need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from state_ledger import ledger, schema
from state_ledger.ledger import apportion
from state_ledger.ledger.apportion import ALL_TIME, DAY_RULES
from state_ledger.ledger.columns import bucket
from state_ledger.sqlite import Connection, sqlite3

Row = tuple[Any, ...]

BOOKS, AUDIT, MESSAGES, TOOLS = "books", "audit", "messages", "tools"
"""The parts of a store, each read when a question first needs it: messages and tools cost the most."""


class Kept(NamedTuple):
    """A view whose rows are kept as they are, in a table."""

    table: str
    view: str
    part: str


class Counted(NamedTuple):
    """A view whose rows are kept counted: by session, 15 minutes and `columns`, with the last moment of each."""

    table: str
    view: str
    part: str
    columns: tuple[str, ...] = ()


KEPT = (
    Kept("facts", "ledger_session_facts", BOOKS),
    Kept("usage", "ledger_usage", BOOKS),
    Kept("stored", "ledger_usage_rows", AUDIT),
    Kept("own", "ledger_session_rows", AUDIT),
    Kept("rest", "ledger_session_rest", AUDIT),
    Kept("aside", "ledger_set_aside", AUDIT),
    Kept("differing", "ledger_discrepancies", AUDIT),
)
COUNTED = (
    Counted("heard", "ledger_message_times", BOOKS),
    Counted("spoken", "ledger_messages", MESSAGES, ("role", "state")),
    Counted("called", "ledger_tool_calls", TOOLS, ("tool_name",)),
)


@lru_cache(maxsize=1)
def columns() -> Mapping[str, tuple[str, ...]]:
    """The columns of each kept view, without the session: they are the same on every store."""
    with sqlite3.connect(":memory:") as connection:
        for table in ("sessions", "messages", "session_model_usage"):
            listed = ", ".join(column.name for column in schema.TABLES[table])
            connection.execute(f"CREATE TABLE {table} ({listed})")
        ledger.install(connection)
        found = {}
        for kept in KEPT:
            cursor = connection.execute(f"SELECT * FROM {kept.view} LIMIT 0")
            found[kept.table] = tuple(each[0] for each in cursor.description if each[0] != "session_id")
    connection.close()
    return found


def tables() -> str:
    """The script that makes the tables."""
    kept = [
        f"CREATE TABLE {kept.table} (id INTEGER PRIMARY KEY, session INTEGER NOT NULL,"
        f" {', '.join(columns()[kept.table])}); CREATE INDEX {kept.table}_of_session ON {kept.table} (session)"
        for kept in KEPT
    ]
    counted = [
        f"CREATE TABLE {each.table} (session INTEGER NOT NULL, bucket INTEGER, timestamp,"
        f" {''.join(f'{name}, ' for name in each.columns)}number INTEGER NOT NULL);"
        f" CREATE INDEX {each.table}_of_session ON {each.table} (session, bucket)"
        for each in COUNTED
    ]
    return ";".join(
        [
            "CREATE TABLE store (number INTEGER PRIMARY KEY, name TEXT, profile TEXT, path TEXT)",
            # began: when the session started, as stored; the figures decide which of several copies counts.
            "CREATE TABLE session (key INTEGER PRIMARY KEY, store INTEGER NOT NULL, id, name, began,"
            " counted INTEGER NOT NULL DEFAULT 1, instead INTEGER, messages INTEGER NOT NULL DEFAULT 0,"
            " last_active, processed_tokens NOT NULL DEFAULT 0, cost_usd)",
            "CREATE INDEX session_by_id ON session (id)",
            "CREATE INDEX session_by_name ON session (name)",
            "CREATE INDEX session_of_store ON session (store, id)",
            *kept,
            *counted,
            "CREATE TABLE placed (day_rule TEXT NOT NULL, bucket INTEGER, usage INTEGER NOT NULL, share)",
            "CREATE INDEX placed_in_time ON placed (day_rule, bucket, usage, share)",
            "CREATE INDEX placed_of_usage ON placed (usage)",
            "CREATE TABLE lineage (session INTEGER PRIMARY KEY, link INTEGER, kind TEXT, conversation INTEGER,"
            " work INTEGER, tip INTEGER, segment INTEGER, depth INTEGER, trouble TEXT)",
            "CREATE TABLE numbers (n INTEGER PRIMARY KEY)",
            "CREATE TABLE chosen (store INTEGER PRIMARY KEY)",
        ]
    )


def read(store: Connection, part: str) -> Iterator[tuple[str, list[Row]]]:
    """The rows of a part, by table, the session's id first; each step is one read of the store.

    store: a connection with the semantic layer. Raises sqlite3.DatabaseError.
    """
    # Sessions last: what was written meanwhile may add a session, never take one from its usage.
    for kept in reversed([each for each in KEPT if each.part == part]):
        listed = ", ".join(("session_id", *columns()[kept.table]))
        yield kept.table, [tuple(row) for row in store.execute(f"SELECT {listed} FROM {kept.view}")]
    for each in COUNTED:
        if each.part == part:
            keys = ", ".join(("session_id", "bucket", *each.columns))
            wanted = ", ".join(("session_id", "timestamp", f"{bucket('timestamp')} AS bucket", *each.columns))
            found = store.execute(
                # The limit keeps the two apart: sorted are then the few columns, not the texts they come from.
                f"SELECT session_id, bucket, max(timestamp), {''.join(f'{name}, ' for name in each.columns)}count(*)"
                f" FROM (SELECT {wanted} FROM {each.view} LIMIT -1) GROUP BY {keys}"
            )
            yield each.table, [tuple(row) for row in found]


def outdated_by(part: str) -> tuple[str, ...]:
    """The parts that go when a part is read anew: the books hold the sessions that all others name."""
    return (TOOLS, MESSAGES, AUDIT, BOOKS) if part == BOOKS else (part,)


def forget(books: Connection, store: int, part: str) -> None:
    """Takes the rows of a part of one store out; with the books, its sessions too."""
    of_store = "(SELECT key FROM session WHERE store = ?)"
    if part == BOOKS:
        books.execute(
            f"DELETE FROM placed WHERE usage IN (SELECT id FROM usage WHERE session IN {of_store})", (store,)
        )
    for table in (each.table for each in (*KEPT, *COUNTED) if each.part == part):
        books.execute(f"DELETE FROM {table} WHERE session IN {of_store}", (store,))
    if part == BOOKS:
        books.execute("DELETE FROM session WHERE store = ?", (store,))


def write(books: Connection, store: int, part: str, found: Mapping[str, list[Row]]) -> None:
    """Puts what was read of a part of one store into the tables, in the place of what was there."""
    keys = {} if part == BOOKS else dict(books.execute("SELECT id, key FROM session WHERE store = ?", (store,)))
    # Sessions get their keys in the order of the store's own rows.
    for table in sorted(found, key=lambda name: name != "facts"):
        rows = found[table]
        new = list(dict.fromkeys(row[0] for row in rows if row[0] not in keys))
        first = books.execute("SELECT coalesce(max(key), 0) + 1 FROM session").fetchone()[0]
        keys |= {session_id: first + at for at, session_id in enumerate(new)}
        books.executemany(
            "INSERT INTO session (key, store, id) VALUES (?, ?, ?)", [(keys[each], store, each) for each in new]
        )
        if rows:
            own_key = "NULL, " if table in columns() else ""
            marks = ", ".join("?" * len(rows[0]))
            books.executemany(
                f"INSERT INTO {table} VALUES ({own_key}{marks})", ((keys[row[0]], *row[1:]) for row in rows)
            )
    counts = (row[-1] for each in COUNTED for row in found.get(each.table, ()))
    _count_up(books, max(counts, default=0))
    if part == BOOKS:
        _place(books, store)
        _weigh(books, store)


def _place(books: Connection, store: int) -> None:
    """Spreads the usage of one store over time under each day rule, as `ledger_time` does (`apportion`)."""
    of_store = "usage AS u JOIN session AS s ON s.key = u.session AND s.store = ?"
    shares = (
        "SELECT session, bucket, number * 1.0 / sum(number) OVER (PARTITION BY session) AS share FROM heard"
        " WHERE bucket IS NOT NULL AND session IN (SELECT key FROM session WHERE store = ?)"
    )
    at = f"coalesce(h.bucket, {bucket(apportion.moment(DAY_RULES[0]))})"
    books.execute(
        f"WITH h AS MATERIALIZED ({shares}) INSERT INTO placed"
        f" SELECT '{DAY_RULES[0]}', {at}, u.id, coalesce(h.share, 1.0) FROM {of_store}"
        " LEFT JOIN h ON h.session = u.session",
        (store, store),
    )
    for rule in DAY_RULES[1:]:
        books.execute(
            f"INSERT INTO placed SELECT '{rule}', {bucket(apportion.moment(rule))}, u.id, 1 FROM {of_store}", (store,)
        )
    books.execute(f"INSERT INTO placed SELECT '{ALL_TIME}', NULL, u.id, 1 FROM {of_store}", (store,))


def _weigh(books: Connection, store: int) -> None:
    """Notes of each session how much of a record this store has of it."""
    books.execute(
        "UPDATE session SET (began, messages, last_active) = (SELECT f.started_at, f.messages, f.last_active"
        " FROM facts AS f WHERE f.session = session.key)"
        " WHERE store = ? AND key IN (SELECT session FROM facts)",
        (store,),
    )
    books.execute(
        "UPDATE session SET (processed_tokens, cost_usd) = (SELECT coalesce(sum(u.processed_tokens), 0),"
        " sum(u.cost_usd) FROM usage AS u WHERE u.session = session.key) WHERE store = ?",
        (store,),
    )


def _count_up(books: Connection, most: int) -> None:
    """Makes `numbers` reach as far as a count."""
    have = books.execute("SELECT coalesce(max(n), 0) FROM numbers").fetchone()[0]
    books.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(have + 1, most + 1)))
