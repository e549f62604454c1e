"""Rows as Parquet and back: the columns that `lake.tables` declares, and nothing but them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from state_ledger.lake.errors import LakeDamaged, LakeMissing
from state_ledger.lake.manifest import FIGURES, DataFile, Totals
from state_ledger.lake.names import data_path
from state_ledger.lake.place import Place
from state_ledger.lake.tables import Column, Kind, Table, tables

if TYPE_CHECKING:
    import pyarrow

COMPRESSION = "zstd"
GROUP_ROWS = 50_000
GROUP_BYTES = 32 << 20
"""What one row group of a file holds at least, if there is as much."""

REUSED_S = 3600.0
"""How long after it was made a file that no manifest names is taken for one of a push that was not finished."""

GONE = Table("gone", (Column("session_id", "text"), Column("month", "text"), Column("gone_at", "real"),
                      Column("kept", "real")), "", "")  # fmt: skip
"""Sessions that the store does not have any more. kept: 1 where their rows are still here."""


def load() -> Any:
    """pyarrow with its parts. Raises LakeMissing."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise LakeMissing from error
    return pyarrow


@lru_cache(maxsize=64)
def schema_of(table: Table) -> pyarrow.Schema:
    """How the columns of a table are stored."""
    return load().schema([(column.name, type_of(column.kind)) for column in table.columns])


def type_of(kind: Kind) -> pyarrow.DataType:
    """How values of a kind are stored."""
    arrow = load()
    return {"text": arrow.string(), "real": arrow.float64(), "integer": arrow.int64()}[kind]


def batch(table: Table, rows: Sequence[Sequence[Any]]) -> pyarrow.Table:
    """Rows as SQLite gave them, texts as bytes or str, as columns."""
    arrow = load()
    schema = schema_of(table)
    if not rows:
        return schema.empty_table()
    cells = zip(*rows, strict=True)
    arrays = [column_of(column.kind, values) for column, values in zip(table.columns, cells, strict=True)]
    return arrow.Table.from_arrays(arrays, schema=schema)


def column_of(kind: Kind, values: Sequence[Any]) -> pyarrow.Array:
    """Values of one column; a number in the place of a text becomes its text, a text in the place of a number NULL.

    Bytes that are not UTF-8 are replaced, as wherever the store is read (accounting rule 17).
    """
    arrow = load()
    try:
        return arrow.array(values, type_of(kind))
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):
        # What no column should hold and some do; looked for only where it was met.
        return arrow.array([_CELLS[kind](value) for value in values], type_of(kind))


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return None if value is None else str(value)


def _real(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _integer(value: Any) -> int | None:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else None
    return value if isinstance(value, int) else None


_CELLS = {"text": _text, "real": _real, "integer": _integer}


class Writing:
    """One data file that is being made, of rows as they come; used as a context.

    known: paths of files that are surely there and whole; None for that every file is written, whatever is there.
    """

    def __init__(
        self, place: Place, table: Table, store: tuple[str, str], month: str, known: Collection[str] | None
    ) -> None:
        self.place, self.table, self.store, self.month, self.known = place, table, store, month, known
        self.rows = 0
        self._waiting: list[pyarrow.Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._writer: Any = None
        self._open = ExitStack()

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, piece: pyarrow.Table) -> None:
        """Adds rows. Raises LakeError."""
        if not piece.num_rows:
            return
        self._waiting.append(piece)
        self._waiting_rows += piece.num_rows
        self._waiting_bytes += piece.nbytes
        self.rows += piece.num_rows
        if self._waiting_rows >= GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self._write()

    def finish(self) -> DataFile | None:
        """The file, which is in the lake then; None if there are no rows. Raises LakeError."""
        if not self.rows:
            return None
        if self._waiting:
            self._write()
        with self._doing():
            self._writer.close()
            digest, size = _digest(self._part)
            path = data_path(self.table.name, *self.store, self.month, digest)
            if self.known is None or (path not in self.known and not self._is_there(path, size)):
                self.place.put(path, self._part)
        self._open.close()
        return DataFile(self.table.name, self.month, path, self.rows, size, digest)

    def _write(self) -> None:
        arrow = load()
        with self._doing():
            if self._writer is None:
                self._part = self._open.enter_context(self.place.part())
                self._writer = arrow.parquet.ParquetWriter(
                    self._part, schema_of(self.table), compression=COMPRESSION, write_statistics=True
                )
                self._open.callback(self._let_go)
            self._writer.write_table(arrow.concat_tables(self._waiting), row_group_size=self._waiting_rows)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _let_go(self) -> None:
        with suppress(Exception):  # of a file that was given up, as on a full disk, nothing is wanted any more
            self._writer.close()

    def _doing(self) -> AbstractContextManager[None]:
        return self.place.doing("written to", f"{self.table.name} of {self.month}")

    def _is_there(self, path: str, size: int) -> bool:
        """Whether a push that was killed has just made this file. An older one could be about to be cleared away."""
        found = self.place.look(path)
        return found is not None and found.bytes == size and 0 <= time.time() - found.modified < REUSED_S


def totals(table: str, rows: pyarrow.Table) -> Totals:
    """What rows of a table add to the ledger."""
    if table == "session_facts":
        return Totals(sessions=rows.num_rows)
    if table != "usage":
        return Totals()
    total = load().compute.sum
    return Totals(0, *(total(rows.column(name)).as_py() or 0.0 for name in FIGURES[1:]))


def read(content: bytes, file: DataFile) -> pyarrow.Table:
    """The rows of a file as this version declares its table; a column that it does not have is NULL.

    Raises LakeDamaged.
    """
    arrow = load()
    try:
        found = arrow.parquet.read_table(arrow.BufferReader(content))
        declared = table_named(file.table)
        return found if declared is None else conformed(declared, found)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise LakeDamaged(f"{file.path} cannot be read as Parquet ({' '.join(str(error).split())}).") from error


def table_named(name: str) -> Table | None:
    """A table of the lake; None for one that only another version knows."""
    return next((table for table in (*tables(), GONE) if table.name == name), None)


def conformed(table: Table, found: pyarrow.Table) -> pyarrow.Table:
    """Rows that another version may have written, in the columns of this one."""
    arrow = load()
    schema = schema_of(table)
    if found.schema.equals(schema):
        return found
    arrays = [
        found.column(field.name).cast(field.type)
        if field.name in found.column_names
        else arrow.nulls(found.num_rows, field.type)
        for field in schema
    ]
    return arrow.Table.from_arrays(arrays, schema=schema)


def _digest(path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return digest.hexdigest(), size
