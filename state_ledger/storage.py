"""What takes the room in a store: bytes per table, index and full-text index, and free pages.

`dbstat`, a table that SQLite offers where it was built with it, tells the bytes exactly, and reads the
whole file for that. Elsewhere, and for big files, they are estimated from a sample of rows; the size of
the file, of a page and the number of free pages are exact in any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from state_ledger.sqlite import UNREADABLE, Connection, quoted, sqlite3

EXACT_UP_TO_BYTES = 256 << 20
"""Up to this size of a file `dbstat` is asked where nothing else is said: it reads about 1 GB a second."""

PROBES, ROWS_PER_PROBE = 32, 8
"""A sample: so many places of a table, and at each so many rows one after the other."""

COUNT_UP_TO = 20_000
"""Tables with a wider range of row ids are not counted but estimated from how dense the ids are."""

INDEX_FILL = 0.85
"""How full the pages of an index are: whole where entries come in order, 0.7 where they come in none."""

_LEAF = 1 << 37
"""Full-text data is kept under numbers of 37 bits per segment; the lowest 31 count its pages."""
_FTS5 = re.compile(r"\s*CREATE\s+VIRTUAL\b.*\bfts5", re.I | re.S)
_PARTS = ("data", "idx", "docsize", "config", "content")


@dataclass(frozen=True)
class Part:
    """One tree of pages. kind: `table`, `index` or `full-text index`.

    owner: the table of an index; the full-text index that a table is a part of; else the table itself.
    bytes: pages in use times their size. rows: None where they were not counted.
    """

    name: str
    kind: str
    owner: str
    bytes: int
    rows: int | None = None


@dataclass(frozen=True)
class Sizes:
    """method: `dbstat` or `estimate`, of the parts. page_size: bytes; pages, free_pages: numbers, exact."""

    method: str
    page_size: int
    pages: int
    free_pages: int
    parts: tuple[Part, ...]

    @property
    def file_bytes(self) -> int:
        """What the file has, or will have once the log is brought back into it."""
        return self.pages * self.page_size

    @property
    def free_bytes(self) -> int:
        """What a VACUUM would give back to the disk, at least."""
        return self.free_pages * self.page_size

    @property
    def other_bytes(self) -> int:
        """What the parts do not explain: the schema, and where they are estimated, the error."""
        return max(0, self.file_bytes - self.free_bytes - sum(part.bytes for part in self.parts))

    @property
    def by_owner(self) -> dict[str, int]:
        """Bytes per table without its indexes, per index and per full-text index, biggest first."""
        sums: dict[str, int] = {}
        for part in self.parts:
            name = part.owner if part.kind == "full-text index" else part.name
            sums[name] = sums.get(name, 0) + part.bytes
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True)
class Pages:
    """size: bytes; total, free: numbers."""

    size: int
    total: int
    free: int


def pages(connection: Connection) -> Pages:
    """Reads the header only. Raises sqlite3.DatabaseError if it is damaged."""
    size, total, free = (
        int(connection.execute(f"PRAGMA main.{name}").fetchone()[0])
        for name in ("page_size", "page_count", "freelist_count")
    )
    return Pages(size, total, free)


def has_dbstat(connection: Connection) -> bool:
    """Whether this SQLite can tell exact sizes."""
    try:
        connection.execute("SELECT 1 FROM dbstat LIMIT 0").fetchall()
    except UNREADABLE:
        return False
    return True


def measure(connection: Connection, *, exact: bool | None = None) -> Sizes:
    """The sizes of everything in the main database.

    exact: whether to ask `dbstat` (which falls back to the estimate where it is not there); by default
    only for files up to 256 MB. Raises sqlite3.DatabaseError if the schema cannot be read.
    """
    found = pages(connection)
    wanted = found.total * found.size <= EXACT_UP_TO_BYTES if exact is None else exact
    if wanted and has_dbstat(connection):
        try:
            return Sizes("dbstat", found.size, found.total, found.free, tuple(_exactly(connection)))
        except UNREADABLE:
            pass  # a damaged page; the sample may miss it
    return Sizes("estimate", found.size, found.total, found.free, _fitted(list(_estimated(connection, found)), found))


def _exactly(connection: Connection) -> Iterator[Part]:
    known = {tree.name: tree for tree in trees(connection)}
    for name, taken in connection.execute("SELECT name, sum(pgsize) FROM dbstat('main') GROUP BY name").fetchall():
        if name in known:
            yield Part(str(name), known[name].kind, known[name].owner, int(taken))


def _estimated(connection: Connection, found: Pages) -> Iterator[Part]:
    known = trees(connection)
    samples: dict[str, _Sample | None] = {}
    indexed = {tree.owner for tree in known if tree.kind == "index"}
    left = (found.total - found.free) * found.size

    def sample(table: str) -> _Sample | None:
        if table not in samples:
            try:
                samples[table] = _sample(connection, table, table not in indexed, found.size)
            except UNREADABLE:  # without row ids, or damaged
                samples[table] = None
        return samples[table]

    for tree in known:
        rows: int | None = None
        taken = found.size
        if tree.kind == "full-text index" and tree.name == f"{tree.owner}_data":
            taken = _text_bytes(connection, tree.name, found.size)
        elif (of := sample(tree.owner if tree.kind == "index" else tree.name)) is not None:
            if tree.is_index:
                taken = _index_bytes(connection, tree, of, found.size)
            else:
                rows = of.rows
                taken = max(found.size, int(rows * of.bytes))
        yield Part(tree.name, tree.kind, tree.owner, min(taken, left), rows)


def _fitted(parts: list[Part], found: Pages) -> tuple[Part, ...]:
    """Makes the estimates add up: indexes are well known, a few huge rows of a table may be in no sample."""
    tables = sum(part.bytes for part in parts if part.kind == "table")
    used = (found.total - found.free) * found.size
    factor = min(max((used - sum(part.bytes for part in parts) + tables) / max(tables, 1), 0.5), 3.0)
    pages_of = {part.name: max(1, round(part.bytes * factor / found.size)) for part in parts if part.kind == "table"}
    return tuple(
        replace(part, bytes=pages_of[part.name] * found.size) if part.kind == "table" else part for part in parts
    )


@dataclass(frozen=True)
class Tree:
    """One tree of pages, as the schema names it. kind, owner: as those of a Part. root: its first page.

    is_index: whether it is an ordinary index, also one of a part of a full-text index. sql: its definition.
    """

    name: str
    kind: str
    owner: str
    root: int
    is_index: bool
    sql: str


def text_indexes(connection: Connection) -> list[str]:
    """The full-text indexes of the main database, whether they can be used here or not."""
    rows = connection.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'table' AND rootpage = 0")
    return [str(row[0]) for row in rows.fetchall() if _FTS5.match(row[1] or "")]


def trees(connection: Connection) -> list[Tree]:
    """Everything that has pages of its own. Raises sqlite3.DatabaseError if the schema cannot be read."""
    parts = {f"{name}_{part}": name for name in text_indexes(connection) for part in _PARTS}
    rows = connection.execute(
        "SELECT name, type, tbl_name, rootpage, coalesce(sql, '') FROM main.sqlite_master"
        " WHERE type IN ('table', 'index') AND rootpage > 0"
    ).fetchall()
    return [
        Tree(
            str(name),
            "full-text index" if table in parts else str(kind),
            parts.get(table, str(table)),
            int(root),
            kind == "index",
            str(sql),
        )
        for name, kind, table, root, sql in rows
    ]


@dataclass(frozen=True)
class _Sample:
    """rows: in the table, estimated where there are many. bytes: of one row, on average, with its share of a
    page. ids: row ids of the sample, as an SQL list. widths: average bytes of each column."""

    table: str
    rows: int
    bytes: float
    ids: str
    widths: dict[str, float]


def _sample(connection: Connection, table: str, alone: bool, page_size: int) -> _Sample | None:
    name = quoted(table)
    low, high = connection.execute(
        f"SELECT (SELECT min(rowid) FROM main.{name}), (SELECT max(rowid) FROM main.{name})"
    ).fetchone()
    if low is None:
        return None
    columns = [str(row[1]) for row in connection.execute(f"PRAGMA main.table_info({name})")]
    sizes = ", ".join(_width(quoted(column)) for column in columns)
    seen: dict[int, tuple[float, ...]] = {}
    densities = []
    for place in range(PROBES):
        start = low + (high - low) * place // PROBES
        rows = connection.execute(
            f"SELECT rowid, {sizes} FROM main.{name} WHERE rowid >= ? ORDER BY rowid LIMIT {ROWS_PER_PROBE}", (start,)
        ).fetchall()
        if rows:
            seen |= {row[0]: tuple(row[1:]) for row in rows}
            densities.append(len(rows) / (rows[-1][0] - start + 1))
    if not seen:
        raise sqlite3.DatabaseError(f"{table} has row ids at its ends and no rows")
    if alone and high - low > COUNT_UP_TO:
        count = int((high - low + 1) * sum(densities) / len(densities))
    else:
        count = int(connection.execute(f"SELECT count(*) FROM main.{name}").fetchone()[0])
    widths = {column: sum(row[at] for row in seen.values()) / len(seen) for at, column in enumerate(columns)}
    taken = [_stored(sum(row) + len(columns) + 8, page_size) for row in seen.values()]
    return _Sample(table, count, sum(taken) / len(taken), ", ".join(map(str, seen)), widths)


def _width(column: str) -> str:
    """SQL: about the bytes of a value (https://sqlite.org/fileformat2.html, 2.1)."""
    return (
        f"CASE typeof({column}) WHEN 'text' THEN length(CAST({column} AS BLOB)) WHEN 'blob' THEN length({column})"
        f" WHEN 'real' THEN 8 WHEN 'integer' THEN CASE WHEN {column} IN (0, 1) THEN 0 ELSE 4 END ELSE 0 END"
    )


def _stored(payload: float, page_size: int) -> float:
    """Bytes that a row takes; what does not fit into a page of its table goes to pages of its own (1.6)."""
    most = page_size - 35
    if payload <= most:
        return payload * page_size / (page_size - 12) + 2
    least = (page_size - 12) * 32 // 255 - 23
    local = least + (payload - least) % (page_size - 4)
    local = local if local <= most else least
    return local + -(-(payload - local) // (page_size - 4)) * page_size


def _index_bytes(connection: Connection, tree: Tree, of: _Sample, page_size: int) -> int:
    columns = [row[2] for row in connection.execute(f"PRAGMA main.index_info({quoted(tree.name)})")]
    width = sum(of.widths.get(str(column), 8.0) for column in columns) + len(columns) + 8
    share = 1.0
    condition = re.search(r"\)\s*WHERE\s+(.+)$", tree.sql, re.I | re.S)
    if condition:
        share = connection.execute(
            f"SELECT avg(({condition[1]}) IS TRUE) FROM main.{quoted(of.table)} WHERE rowid IN ({of.ids})"
        ).fetchone()[0]
    return max(page_size, int(of.rows * share * width / INDEX_FILL))


def _text_bytes(connection: Connection, name: str, page_size: int) -> int:
    """The pages of each segment of a full-text index, found by the ends of their numbers."""
    taken, at = 0, 0
    while True:
        after = connection.execute(f"SELECT min(id) FROM main.{quoted(name)} WHERE id >= ?", (at,)).fetchone()[0]
        if after is None:
            return max(taken * page_size, page_size)
        segment = after // _LEAF
        # Of min and max in one statement SQLite makes a walk, of each alone a look-up.
        last = connection.execute(
            f"SELECT max(id) FROM main.{quoted(name)} WHERE id < ?", (segment * _LEAF + (1 << 31),)
        ).fetchone()[0]
        taken += max(1, last - after + 1)
        at = (segment + 1) * _LEAF
