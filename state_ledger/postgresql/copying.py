"""Making and renewing the private copy of a PostgreSQL database, in one transaction of each side.

What the copy shows changes at its commit, all at once; whoever is killed before leaves it as it was. The first
time, and when the tables or the server are others, every row is read. Later, rows that a transaction wrote which
had not ended the last time (PostgreSQL's `xmin`), and, where fewer are left than are here, the keys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from state_ledger import full_text, private, schema, unfinished
from state_ledger.errors import PostgresqlError, StoreFullError
from state_ledger.postgresql import catalogue, copies, rows, server
from state_ledger.postgresql.address import Address
from state_ledger.postgresql.catalogue import Column, Layout, Table
from state_ledger.postgresql.copies import Copy
from state_ledger.sqlite import BUSY_TIMEOUT_S, Connection, quoted, says_damaged, sqlite3, version_info
from state_ledger.writing.contention import is_busy
from state_ledger.writing.journal import has_wal_reset_bug

FORMAT = 1
"""Changes when copies are made otherwise: older ones are made anew."""
PATIENCE_S = 600.0
"""How long we wait for another process that renews the same copy."""
_AGE = 2**31
"""Of two transactions that are further apart, PostgreSQL cannot say which was first."""

Tell = Callable[[str], None]


def refresh(address: Address, tell: Tell) -> Copy:
    """See `state_ledger.postgresql.refresh`."""
    path = address.copy_path
    try:
        private.folder(path.parent)
        try:
            return _refresh(address, path, tell)
        except sqlite3.DatabaseError as error:
            if not says_damaged(error):
                raise
            unfinished.remove(path)  # it can be made again
            return _refresh(address, path, tell)
    except sqlite3.OperationalError as error:
        if str(error) == "database or disk is full":
            raise StoreFullError(path) from error
        raise PostgresqlError(f"{address.name} cannot be copied to {path}: {error}.") from error
    except OSError as error:
        raise PostgresqlError(f"{address.name} cannot be copied to {path}: {error.strerror}.") from error


def _refresh(address: Address, path: Path, tell: Tell) -> Copy:
    asked = time.time()
    if not path.exists():
        private.new_file(path)
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
        _begin(connection, path, tell)
        try:
            known = copies.read(connection, path)
            if known is not None and known.taken_at >= asked:  # by another process, while we waited
                connection.execute("ROLLBACK")
                return known
            try:
                copy = _renew(connection, address, path, known, tell)
            except PostgresqlError as refusal:
                raise _with_what_is_here(refusal, known) from None
            copies.write(connection, copy)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if not has_wal_reset_bug(version_info):
            with suppress(sqlite3.OperationalError):  # another process is at it already: the next time will do
                connection.execute("PRAGMA journal_mode = WAL").fetchone()  # nobody who reads holds us up any more
    return copy


def _renew(connection: Connection, address: Address, path: Path, known: Copy | None, tell: Tell) -> Copy:
    taken_at = time.time()
    tell(f"asking {address.name}")
    with server.reading(address) as source:
        row = source.execute(
            "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,"
            " pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        ).fetchone()
        assert row is not None
        layout = catalogue.read(source, address)
        written = copies.as_text([FORMAT, *layout])
        comparable = known is not None and known.layout == written and 0 <= row[1] - known.watermark < _AGE
        caught_up = comparable and _catch_up(connection, source, layout, known.watermark if known else 0, tell)
        if not caught_up:
            _start_anew(connection, layout)
            for table in layout.tables:
                tell(f"copying {table.name}")
                _copy_table(connection, source, table)
    if not caught_up:
        tell("making the indexes")  # the server is let go before: it keeps old rows as long as somebody reads
        _make_indexes(connection, layout)
    return Copy(path, address.name, taken_at, row[0], written)


def _catch_up(connection: Connection, source: server.Connection, layout: Layout, since: int, tell: Tell) -> bool:
    """Brings every table to what the server has; False where that fails, since somebody wrote to the copy."""
    for table in layout.tables:
        tell(f"looking for changes of {table.name}")
        if not (table.versioned and table.key):
            _copy_table(connection, source, table)
            continue
        _copy_table(connection, source, table, since)
        row = source.execute(rows.count(table)).fetchone()
        there = 0 if row is None else row[0]
        if there != _count(connection, table):  # all of the server's rows are here by now, and others
            _remove_gone(connection, source, table)
            if there != _count(connection, table):
                return False
    return True


def _count(connection: Connection, table: Table) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0])


def _begin(connection: Connection, path: Path, tell: Tell) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            if time.monotonic() > deadline:
                raise PostgresqlError(
                    f"Another process has been renewing {path} for {PATIENCE_S / 60:.0f} minutes. Try again later."
                ) from error
        tell("waiting for another process that copies the same database")


def _start_anew(connection: Connection, layout: Layout) -> None:
    """Takes away what there is, and makes the tables without anything that costs time per row."""
    kinds = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"
    for kind, name in connection.execute(kinds).fetchall():
        connection.execute(f"DROP {kind} {quoted(name)}")
    for index in full_text.INDEXES:
        connection.execute(f"DROP TABLE IF EXISTS {index.name}")
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    for (name,) in connection.execute(tables).fetchall():
        connection.execute(f"DROP TABLE {quoted(name)}")
    for table in layout.tables:
        connection.execute(_table_sql(table))


def _table_sql(table: Table) -> str:
    """Nothing is demanded of the rows but their key: they are the server's to judge."""
    lines = [f"{quoted(column.name)} {rows.sqlite_type(table.name, column)}" for column in rows.kept(table)]
    if len(table.key) == 1:
        at = [column.name for column in rows.kept(table)].index(table.key[0])
        lines[at] += " PRIMARY KEY"
    elif table.key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, table.key))})")
    return f"CREATE TABLE {table.name} ({', '.join(lines)})"


def _copy_table(connection: Connection, source: server.Connection, table: Table, since: int | None = None) -> None:
    """All rows of a table in the place of those that are here; with a watermark, the new ones beside them."""
    columns = rows.kept(table)
    if since is None:
        connection.execute(f"DELETE FROM {table.name}")
    insert = _insert_sql(table, columns, replacing=since is not None)
    for batch in rows.batches(source, rows.select(table, columns, since), table.name, columns):
        connection.executemany(insert, batch)


def _insert_sql(table: Table, columns: Sequence[Column], *, replacing: bool) -> str:
    names = ", ".join(quoted(column.name) for column in columns)
    made = f"INSERT INTO {table.name}({names}) VALUES ({', '.join('?' * len(columns))})"
    if not replacing:
        return made
    # Not OR REPLACE, which takes a row away without the triggers of the full-text indexes.
    others = [quoted(column.name) for column in columns if column.name not in table.key]
    changes = f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}" if others else "NOTHING"
    return f"{made} ON CONFLICT ({', '.join(map(quoted, table.key))}) DO {changes}"


def _remove_gone(connection: Connection, source: server.Connection, table: Table) -> None:
    """Takes rows away whose keys the server does not have."""
    columns = [column for name in table.key for column in table.columns if column.name == name]
    listed = ", ".join(quoted(column.name) for column in columns)
    declared = ", ".join(f"{quoted(column.name)} {rows.sqlite_type(table.name, column)}" for column in columns)
    connection.execute("DROP TABLE IF EXISTS temp.present")
    connection.execute(f"CREATE TEMP TABLE present ({declared}, PRIMARY KEY ({listed}))")
    insert = f"INSERT INTO temp.present VALUES ({', '.join('?' * len(columns))})"
    for batch in rows.batches(source, rows.select(table, columns), table.name, columns):
        connection.executemany(insert, batch)
    same = " AND ".join(f"present.{quoted(c.name)} IS {table.name}.{quoted(c.name)}" for c in columns)
    connection.execute(f"DELETE FROM {table.name} WHERE NOT EXISTS (SELECT 1 FROM temp.present WHERE {same})")
    connection.execute("DROP TABLE temp.present")


def _make_indexes(connection: Connection, layout: Layout) -> None:
    live = {table.name: {column.name for column in table.columns} for table in layout.tables}
    for index in schema.INDEXES:
        read = {term.split()[0] for term in index.terms} | set((index.where or "").split()[:1])
        if read <= live.get(index.table, set()):
            connection.execute(replace(index, unique=False).sql)
    messages = next(table for table in layout.tables if table.name == "messages")
    if messages.key == ("id",) and {"tool_name", "tool_calls"} <= live["messages"]:
        if "state_meta" not in live:  # the triggers look into it
            connection.execute(schema.create_table_sql("state_meta"))
        full_text.create(connection)


def _with_what_is_here(refusal: PostgresqlError, known: Copy | None) -> PostgresqlError:
    if known is None:
        return refusal
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(known.taken_at))
    return PostgresqlError(f"{refusal} What was copied at {when} UTC can still be read: {known.path}")
