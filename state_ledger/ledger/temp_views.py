"""Making many TEMP views on a connection at once.

`CREATE VIEW` parses its text twice, once to check it and once more to take it into the schema, and
every new connection would pay that for every view. Views that are written into the TEMP schema as rows
(`PRAGMA writable_schema`, sqlite.org/pragma.html#pragma_writable_schema) are parsed once, when SQLite
reads that schema again. Only the TEMP schema is written, which is the connection's own and in no file.
Where SQLite does not allow that (its defensive mode), the views are created one by one.
"""

from __future__ import annotations

from collections.abc import Iterable

from state_ledger.sqlite import Connection, quoted, sqlite3

View = tuple[str, str]
"""Name and SELECT of a view."""


def at_once(views: Iterable[View]) -> str:
    """A script that writes the views which the TEMP schema does not have yet into it."""
    rows = ", ".join(f"({_text(name)}, {_text(f'CREATE VIEW {quoted(name)} AS {select}')})" for name, select in views)
    return (
        "PRAGMA writable_schema = 1; BEGIN;"
        " INSERT INTO temp.sqlite_master SELECT 'view', column1, column1, 0, column2"
        f" FROM (VALUES {rows}) WHERE column1 NOT IN (SELECT name FROM temp.sqlite_master);"
        # A version of its own makes SQLite read the schema again, this one alone.
        " PRAGMA temp.schema_version = 1; COMMIT; PRAGMA writable_schema = 0"
    )


def one_by_one(views: Iterable[View]) -> str:
    """A script that creates the views which are not there yet."""
    created = "; ".join(f"CREATE TEMP VIEW IF NOT EXISTS {quoted(name)} AS {select}" for name, select in views)
    return f"BEGIN; {created}; COMMIT"


def make(connection: Connection, quick: str, slow: str, *, sign: str) -> None:
    """Runs a script of `at_once`, and one of `one_by_one` where the first is not allowed.

    sign: a view that is there afterwards. Ends a transaction that was open, as scripts do.
    """
    try:
        connection.executescript(quick)
    except sqlite3.DatabaseError:
        connection.rollback()
        connection.execute("PRAGMA writable_schema = 0")
    else:
        if _is_there(connection, sign):
            return
        connection.execute("PRAGMA writable_schema = RESET")  # older SQLite reads it again only when told so
        if _is_there(connection, sign):
            return
    connection.executescript(slow)


def _is_there(connection: Connection, view: str) -> bool:
    return connection.execute(f"PRAGMA temp.table_info({_text(view)})").fetchone() is not None


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
