"""Copying what can be read of a damaged store into a new file. The store itself is only read.

Every table is copied range by range of its row ids. A range that cannot be read is halved until only
the rows on damaged pages are left; of those the columns that can be read are kept where the row can stand
without the others. Indexes, views, full-text indexes and triggers are made anew from their definitions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from state_ledger import access, private, storage, unfinished
from state_ledger.connection import decode_text
from state_ledger.errors import StateLedgerError, StoreAccessError
from state_ledger.full_text import cjk
from state_ledger.health import integrity, orphans
from state_ledger.health.patient import AT_REST, admit
from state_ledger.homes import expanded
from state_ledger.sqlite import UNREADABLE, Connection, quoted, read_only_uri, sqlite3, store_path

RANGE_ROWS = 2000
BLIND_ROWS = 100_000
"""How far beyond the last row that was read is looked for more, where nothing says how many there were."""

Tell = Callable[[int, int], None]
"""Told of tables done and tables in all."""


@dataclass(frozen=True)
class Copied:
    """Of one table. rows: copied whole. partial: copied with unreadable columns as NULL. lost: rows that are
    known to have been there and could not be read; None where nothing says how many there were."""

    rows: int
    partial: int
    lost: int | None


@dataclass(frozen=True)
class Salvage:
    """path: the new file. tables: what was copied of each. left_out: what could not be made anew, with the
    reason. orphans: rows changed or removed by `orphans.settle`, by what was done. sound: whether the new file
    passed its checks; problems: what they say."""

    path: Path
    tables: dict[str, Copied]
    left_out: tuple[str, ...]
    orphans: dict[str, int]
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether the new file is well."""
        return not self.problems

    @property
    def lost(self) -> int:
        """Rows that are known to be lost, and rows that are kept in part."""
        return sum((copied.lost or 0) + copied.partial for copied in self.tables.values())


@dataclass
class _Schema:
    tables: list[tuple[str, str]] = field(default_factory=list)
    indexes: list[tuple[str, str]] = field(default_factory=list)
    views: list[tuple[str, str]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    triggers: list[tuple[str, str]] = field(default_factory=list)


def repair(path: Path, target: Path, *, orphaned: str = orphans.KEEP, tell: Tell = lambda done, total: None) -> Salvage:
    """Copies what can be read of the store at `path` to `target`, a file that does not exist yet.

    orphaned: what happens to rows that refer to sessions that are not there (any more), see `orphans.settle`.
    The new file appears under its name only when it is complete. Raises StoreAccessError if nothing of the
    store can be read, StateLedgerError if `target` exists or cannot be written.
    """
    path, target = expanded(path).absolute(), expanded(target).absolute()
    _refuse(path, target)
    part, whole = (unfinished.place(target.name, target.parent) for _ in range(2))
    private.new_file(part)
    try:
        with admit(_to_full_length(path, whole)) as admitted:
            if admitted.shape is None:
                raise StoreAccessError(
                    path,
                    f"The schema of {path} cannot be read: nothing in it can be found.",
                    "Restore it from a backup.",
                )
            source = Path(store_path(admitted.connection))
            salvage = _into(part, admitted.connection, source, admitted.how == AT_REST, target, orphaned, tell)
        _name(part, target)
    except sqlite3.OperationalError as error:
        raise StateLedgerError(f"{target} could not be written ({error}).") from error
    finally:
        unfinished.remove(part)
        unfinished.remove(whole)
    return salvage


def _to_full_length(path: Path, whole: Path) -> Path:
    """The store, or a private copy of one that lost its end, made as long as it says it is.

    SQLite reads nothing of a file that is shorter than its head says; of one that ends in zeros it reads all
    but those pages.
    """
    cut = integrity.missing_bytes(path)
    if cut is None:
        return path
    private.new_file(whole)
    access.copy_bytes(path, whole)
    os.truncate(whole, cut[1])
    return whole


def _refuse(path: Path, target: Path) -> None:
    if os.path.lexists(target):
        raise StateLedgerError(f"{target} exists already; name a file that does not.")
    if not target.parent.is_dir():
        raise StateLedgerError(f"There is no folder {target.parent}.")
    if not os.access(target.parent, os.W_OK):
        raise StateLedgerError(f"{target.parent} may not be written by this user.")
    access.header_of(path)


def _name(part: Path, target: Path) -> None:
    """Gives the file its name unless somebody took it meanwhile."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        os.link(part, target)
    except FileExistsError:
        raise StateLedgerError(f"{target} was made by somebody meanwhile; name another file.") from None
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise StateLedgerError(f"{target} was made by somebody meanwhile; name another file.") from None
        part.rename(target)


def _into(
    part: Path, reader: Connection, source: Path, at_rest: bool, target: Path, orphaned: str, tell: Tell
) -> Salvage:
    connection: Connection = sqlite3.connect(part, uri=True, isolation_level=None)
    with closing(connection):
        connection.text_factory = decode_text
        cjk.load(connection)
        connection.execute("ATTACH ? AS old", (read_only_uri(source, immutable=at_rest),))
        size = connection.execute("PRAGMA old.page_size").fetchone()[0]
        connection.execute(f"PRAGMA main.page_size = {size}")
        for pragma in ("main.journal_mode = MEMORY", "main.synchronous = OFF", "foreign_keys = OFF"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute("BEGIN")
        found = _schema(reader)
        tables: dict[str, Copied] = {}
        left_out: list[str] = []
        for at, (name, sql) in enumerate(found.tables):
            connection.execute(sql)
            tables[name] = _Table(connection, reader, name).copy()
            tell(at + 1, len(found.tables) + 1)
        _sequence(connection)
        settled = orphans.settle(connection, orphaned)
        left_out += _made(connection, [*found.indexes, *found.views])
        skipped = _texts(connection, found.texts)
        left_out += [f"{name}: {why}" for name, why in skipped.items()]
        left_out += _made(connection, [t for t in found.triggers if not any(t[0].startswith(f"{s}_") for s in skipped)])
        connection.execute(f"PRAGMA main.user_version = {connection.execute('PRAGMA old.user_version').fetchone()[0]}")
        connection.execute("COMMIT")
        connection.execute("DETACH old")
        problems = [
            f"{damage.kind} {damage.name}: {damage.says}" for damage in integrity.examine(connection, full=True).damages
        ]
        if access.is_wal(access.header_of(source)):
            connection.execute("PRAGMA main.journal_mode = WAL").fetchall()
        tell(len(found.tables) + 1, len(found.tables) + 1)
    return Salvage(target, tables, tuple(left_out), settled, tuple(problems))


def _schema(connection: Connection) -> _Schema:
    found = _Schema()
    trees = {tree.name: tree for tree in storage.trees(connection)}
    texts = set(storage.text_indexes(connection))
    for kind, name, sql in connection.execute(
        "SELECT type, name, sql FROM main.sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    ).fetchall():
        entry = (str(name), str(sql))
        if kind == "table" and name in texts:
            found.texts.append(entry)
        elif kind == "table" and name in trees and trees[name].kind == "table" and not name.startswith("sqlite_"):
            found.tables.append(entry)
        elif kind == "index" and trees[name].kind == "index":
            found.indexes.append(entry)
        elif kind == "view":
            found.views.append(entry)
        elif kind == "trigger":
            found.triggers.append(entry)
    return found


class _Table:
    """One table on its way from `old` to `main` of a connection.

    reader: a connection to the old file by itself. What may fail is tried there: a damaged page that is met
    within the writing transaction spoils it.
    """

    def __init__(self, connection: Connection, reader: Connection, name: str) -> None:
        self.connection = connection
        self.reader = reader
        self.name = name
        info = reader.execute(f"PRAGMA main.table_info({quoted(name)})").fetchall()
        self.columns = [str(row[1]) for row in info]
        self.needed = {str(row[1]) for row in info if row[3] or row[5]}
        # A key that is the row id itself needs no other name for it.
        keys = [row for row in info if row[5]]
        self.has_own_id = len(keys) == 1 and str(keys[0][2]).upper() == "INTEGER"
        self.rows = self.partial = self.unread = 0

    def copy(self) -> Copied:
        low, high, known = self._bounds()
        if low is not None and high is not None:
            start = low
            while start <= high:
                self._range(start, min(start + RANGE_ROWS - 1, high))
                start += RANGE_ROWS
        expected = self._expected()
        if expected is not None:
            return Copied(self.rows, self.partial, max(0, expected - self.rows - self.partial))
        return Copied(self.rows, self.partial, 0 if known and not self.unread else None)

    def _bounds(self) -> tuple[int | None, int | None, bool]:
        """The first and last row id, and whether they are certain."""
        low, high = self._one("min"), self._one("max")
        if isinstance(low, str) or isinstance(high, str):
            seen = [self._of_index(index) for index in self._indexes()]
            ends = [each for each in seen if each is not None]
            if ends:
                return min(end[0] for end in ends), max(end[1] for end in ends), True
            first = 1 if isinstance(low, str) else low
            last = self._last_given() if isinstance(high, str) else high
            return first, max(last or 0, (first or 0) + BLIND_ROWS), False
        return low, high, True

    def _one(self, function: str) -> int | str | None:
        try:
            found: int | None = self.reader.execute(
                f"SELECT {function}(rowid) FROM main.{quoted(self.name)} NOT INDEXED"
            ).fetchone()[0]
        except UNREADABLE as error:
            return str(error)
        return found

    def _indexes(self) -> list[str]:
        rows = self.reader.execute(f"PRAGMA main.index_list({quoted(self.name)})").fetchall()
        return [str(row[1]) for row in rows if not row[4]]  # a partial index does not know every row

    def _of_index(self, index: str) -> tuple[int, int, int] | None:
        """First and last row id and their number, as an index has them; None if it cannot be read."""
        try:
            first, last, number = self.reader.execute(
                "SELECT min(+rowid), max(+rowid), count(+rowid)"
                f" FROM main.{quoted(self.name)} INDEXED BY {quoted(index)}"
            ).fetchone()
        except UNREADABLE:
            return None
        return None if first is None else (int(first), int(last), int(number))

    def _expected(self) -> int | None:
        """How many rows there were: as the table says if it can be walked through, else one of its indexes."""
        if not self.unread:
            return self.rows + self.partial
        numbers = [found[2] for index in self._indexes() if (found := self._of_index(index)) is not None]
        return max(numbers, default=None)

    def _last_given(self) -> int | None:
        with suppress(*UNREADABLE):
            row = self.reader.execute("SELECT seq FROM main.sqlite_sequence WHERE name = ?", (self.name,)).fetchone()
            return None if row is None else int(row[0])
        return None

    def _range(self, low: int, high: int) -> None:
        if self._can_read(self.columns, low, high):
            self.rows += self._insert([quoted(column) for column in self.columns], low, high)
        elif low == high:
            self._one_row(low)
        else:
            middle = (low + high) // 2
            self._range(low, middle)
            self._range(middle + 1, high)

    def _one_row(self, number: int) -> None:
        self.unread += 1
        readable = [column for column in self.columns if self._can_read([column], number, number)]
        if readable and self.needed <= set(readable):
            kept = [quoted(column) if column in readable else "NULL" for column in self.columns]
            self.partial += self._insert(kept, number, number)

    def _can_read(self, columns: list[str], low: int, high: int) -> bool:
        # The length of a text needs every byte of it, also those on pages of their own.
        lengths = " + ".join(f"coalesce(length(CAST({quoted(column)} AS TEXT)), 0)" for column in columns)
        try:
            self.reader.execute(
                f"SELECT total({lengths}) FROM main.{quoted(self.name)} NOT INDEXED WHERE rowid BETWEEN ? AND ?",
                (low, high),
            ).fetchall()
        except UNREADABLE:
            return False
        return True

    def _insert(self, values: list[str], low: int, high: int) -> int:
        columns = [quoted(column) for column in self.columns]
        if not self.has_own_id:
            columns, values = ["rowid", *columns], ["rowid", *values]
        # Two rows with one key can only be damage: the first is kept.
        return self.connection.execute(
            f"INSERT OR IGNORE INTO main.{quoted(self.name)}({', '.join(columns)}) SELECT {', '.join(values)}"
            f" FROM old.{quoted(self.name)} NOT INDEXED WHERE rowid BETWEEN ? AND ?",
            (low, high),
        ).rowcount


def _sequence(connection: Connection) -> None:
    """Ids that were given once are not given again, also where the rows are gone."""
    with suppress(*UNREADABLE):
        for name, seq in connection.execute("SELECT name, seq FROM old.sqlite_sequence").fetchall():
            if not connection.execute(
                "UPDATE main.sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (seq, name)
            ).rowcount:
                connection.execute("INSERT INTO main.sqlite_sequence(name, seq) VALUES (?, ?)", (name, seq))


def _made(connection: Connection, entries: list[tuple[str, str]]) -> list[str]:
    left_out = []
    for name, sql in entries:
        try:
            connection.execute(sql)
        except UNREADABLE as error:
            if _is_about_room(error):
                raise
            left_out.append(f"{name}: {error}")
    return left_out


def _texts(connection: Connection, entries: list[tuple[str, str]]) -> dict[str, str]:
    """Makes the full-text indexes and fills them; returns those that cannot be made here, with the reason."""
    skipped: dict[str, str] = {}
    for name, sql in entries:
        try:
            connection.execute(sql)
            if re.search(r"content\s*=", sql, re.I):
                connection.execute(f"INSERT INTO main.{quoted(name)}({quoted(name)}) VALUES ('rebuild')")
            else:  # it keeps a copy of the text, as versions 11 to 22 made it: store-format, 1.6, layout C
                connection.execute(
                    f"INSERT INTO main.{quoted(name)}(rowid, content) SELECT id, coalesce(content, '') || ' ' ||"
                    " coalesce(tool_name, '') || ' ' || coalesce(tool_calls, '') FROM main.messages"
                )
        except UNREADABLE as error:
            if _is_about_room(error):
                raise
            skipped[name] = str(error)
    marks = "'fts_rebuild_high_water', 'fts_rebuild_progress', 'fts_cjk_rebuild_high_water', 'fts_cjk_rebuild_progress'"
    with suppress(*UNREADABLE):  # the indexes are whole now
        connection.execute(f"DELETE FROM main.state_meta WHERE key IN ({marks})")
    return skipped


def _is_about_room(error: Exception) -> bool:
    return "is full" in str(error) or "disk I/O" in str(error)
