"""Damage in the pages of a file, table by table, and whether it hits rows or only an index.

An index, ordinary or full-text, can be made anew from its table, and nothing is lost; rows cannot.
SQLite's own words do not say which it is (a bad page of a table raises "malformed", one of an index is a
line of a report), so where it complains the table itself is read to its end, past every index.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from state_ledger import access, storage
from state_ledger.sqlite import UNREADABLE, Connection, quoted, sqlite3

PIECE_S = 5.0
"""How long the check of one table may keep a read transaction open, unless all of it was asked for."""
PIECE_BESIDE_A_LOG_S = 30.0
"""The same for a store with a write-ahead log, where a reader keeps no writer out, only the log from being emptied."""

ROWS, INDEX, TEXT_INDEX, SCHEMA, UNTOLD = "rows", "index", "full-text index", "schema", "table or index"
_STEPS = 20_000
_OF_ROWS = re.compile(r"out of order|NULL value|CHECK constraint|non-integer|TEXT value|NUMERIC value|datatype", re.I)


@dataclass(frozen=True)
class Damage:
    """kind: `rows` of the table `name` cannot be read, the `index` or `full-text index` of that name is
    damaged, or the `schema` is; of a `table or index` there was no time to find out which. says: SQLite's
    first words on it. in_pages: whether pages of it cannot be read; otherwise only its entries are wrong, and
    it can be made anew in place.
    """

    kind: str
    name: str
    says: str
    in_pages: bool = True


@dataclass(frozen=True)
class Examination:
    """unchecked: tables that were not looked at in the time, or because the file is busy, with the reason."""

    damages: tuple[Damage, ...]
    unchecked: dict[str, str]


def examine(
    connection: Connection,
    *,
    full: bool = False,
    piece_s: float = PIECE_S,
    tick: Callable[[str], None] = lambda table: None,
    until: float | None = None,
) -> Examination:
    """Checks every table with its indexes, one statement and so one short read transaction after another.

    full: compares every index with its table entry by entry and takes the time it takes; else the
    structure only, at most `piece_s` seconds per table. tick: called with each table before it is checked.
    until: when all of it ends (`time.monotonic`), wherever it is then.
    """
    try:
        trees = storage.trees(connection)
    except UNREADABLE as error:
        return Examination((Damage(SCHEMA, "sqlite_master", str(error)),), {})
    tables = [tree for tree in trees if tree.kind != INDEX and not tree.is_index]
    damages: list[Damage] = []
    unchecked: dict[str, str] = {}

    def seconds() -> float | None:
        """That the next check may take; 0 where it is not to begin."""
        left = math.inf if until is None else max(0.0, until - time.monotonic())
        return None if full else min(piece_s, left)

    for table in tables:
        tick(table.name)
        says = _complaints(connection, table.name, seconds())
        if says is None:
            unchecked[table.name] = "the check would have taken too long"
        elif says and says[0].startswith(_BUSY):
            unchecked[table.name] = says[0]
        elif says:
            with ending(connection, until):
                found = _told_apart(connection, table, trees, says)
            # What was interrupted says nothing of the table.
            in_time = until is None or time.monotonic() < until
            damages += found if in_time else [Damage(UNTOLD, table.name, says[0])]
    damages += _text_complaints(connection, unchecked, seconds)
    # Of a full-text index its own tables were looked at first, and they say more.
    return Examination(tuple({(each.kind, each.name): each for each in reversed(damages)}.values())[::-1], unchecked)


@contextmanager
def ending(connection: Connection, until: float | None) -> Iterator[None]:
    """Interrupts what runs on a connection inside of it from a moment on (`time.monotonic`)."""
    if until is not None:
        connection.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def missing_bytes(path: str | Path) -> tuple[int, int] | None:
    """(bytes there, bytes that the head of the file claims) of a file that lost its end; None where it did not.

    A log beside it may hold the rest, so that a file with one is not judged.
    """
    header = access.header_of(path)
    stated, size = int.from_bytes(header[28:32], "big"), Path(path).stat().st_size
    page = int.from_bytes(header[16:18], "big")
    needed = stated * (65536 if page == 1 else page)
    # Programs from before 2010 did not keep the count; the two counters then differ.
    if access.Sidecars.of(path).wal_bytes or header[24:28] != header[92:96] or size >= needed:
        return None
    return size, needed


_BUSY = ("database is locked", "database table is locked", "database schema is locked")


def _complaints(connection: Connection, table: str, piece_s: float | None) -> list[str] | None:
    """What SQLite says of a table and its indexes, [] where all is well; None when the time was up.

    piece_s: seconds for a quick check, of which 0 are up at once; None for a full one.
    """
    check = "integrity_check" if piece_s is None else "quick_check"
    if piece_s == 0:
        return None
    if piece_s is not None:
        deadline = time.monotonic() + piece_s
        connection.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS)
    try:
        rows = connection.execute(f"PRAGMA main.{check}({quoted(table)})").fetchall()
    except UNREADABLE as error:
        return None if "interrupted" in str(error) else [str(error)]
    finally:
        connection.set_progress_handler(None, 0)
    lines = [line for row in rows for line in str(row[0]).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("*** in database")]


def _told_apart(
    connection: Connection, table: storage.Tree, trees: list[storage.Tree], says: list[str]
) -> list[Damage]:
    if table.kind == TEXT_INDEX:
        return [Damage(TEXT_INDEX, table.owner, says[0])]
    trouble = _reading_to_the_end(connection, table.name)
    if trouble is not None:
        return [Damage(ROWS, table.name, trouble if says[0] == trouble else says[0])]
    if any(_OF_ROWS.search(line) for line in says):
        return [Damage(ROWS, table.name, says[0])]
    indexes = [tree for tree in trees if tree.kind == INDEX and tree.owner == table.name]
    found = []
    for tree in indexes:
        in_pages = [line for line in says if f"Tree {tree.root} " in line]
        if not in_pages and (walked := _walk(connection, table.name, tree.name)) is not None:
            in_pages = [walked]
        named = in_pages or [line for line in says if re.search(rf"\bindex {re.escape(tree.name)}$", line)]
        if named:
            found.append(Damage(INDEX, tree.name, named[0], bool(in_pages)))
    return found or [Damage(ROWS, table.name, says[0])]


def _reading_to_the_end(connection: Connection, table: str) -> str | None:
    """SQLite's words if a row of a table cannot be read, None if all can."""
    columns = [str(row[1]) for row in connection.execute(f"PRAGMA main.table_info({quoted(table)})")]
    # The sum of the lengths needs every byte of every text, also those on pages of their own.
    read = " + ".join(f"coalesce(length(CAST({quoted(column)} AS TEXT)), 0)" for column in columns)
    try:
        connection.execute(f"SELECT count(*), total({read}) FROM main.{quoted(table)} NOT INDEXED").fetchall()
    except UNREADABLE as error:
        return str(error)
    return None


def _walk(connection: Connection, table: str, index: str) -> str | None:
    """SQLite's words if an index cannot be walked through, None if it can or has no walk of its own."""
    try:
        # Not a plain count: for that SQLite takes whichever index is smallest, whatever it is told.
        connection.execute(f"SELECT total(rowid) FROM main.{quoted(table)} INDEXED BY {quoted(index)}").fetchall()
    except sqlite3.OperationalError:
        return None  # a partial index answers only queries with its condition
    except UNREADABLE as error:
        return str(error)
    return None


def _text_complaints(
    connection: Connection, unchecked: dict[str, str], seconds: Callable[[], float | None]
) -> Iterator[Damage]:
    """What FTS5 itself says of its indexes, where SQLite asks it (3.44 and later). seconds: for the next of them."""
    for name in storage.text_indexes(connection):
        says = _complaints(connection, name, seconds())
        if says is None:
            unchecked[name] = "the check would have taken too long"
        elif says and not says[0].startswith((*_BUSY, "no such")) and not says[0].startswith("unable to validate"):
            yield Damage(TEXT_INDEX, name, says[0], in_pages=False)
