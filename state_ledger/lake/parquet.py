"""Rows as Parquet and back: the columns that `lake.tables` declares, and nothing but them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from state_ledger.lake.errors import LakeDamaged, LakeMissing
from state_ledger.lake.manifest import DataFile
from state_ledger.lake.names import data_path
from state_ledger.lake.place import Place
from state_ledger.lake.tables import Column, Kind, Table, tables

if TYPE_CHECKING:
    import pyarrow

COMPRESSION = "zstd"

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
    arrow = load()
    types = {"text": arrow.string(), "real": arrow.float64(), "integer": arrow.int64()}
    return arrow.schema([(column.name, types[column.kind]) for column in table.columns])


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
    kinds = {"text": arrow.string(), "real": arrow.float64(), "integer": arrow.int64()}
    try:
        return arrow.array(values, kinds[kind])
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):
        # What no column should hold and some do; looked for only where it was met.
        return arrow.array([_CELLS[kind](value) for value in values], kinds[kind])


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


def store(
    place: Place, table: Table, host: str, profile: str, month: str, pieces: Iterable[pyarrow.Table]
) -> DataFile | None:
    """Writes rows as one file of the lake, unless a file of the same content is there; None if there are no rows.

    pieces: the rows, a part at a time, each of which is one row group. Raises LakeError.
    """
    arrow = load()
    count = 0
    with place.part() as part, place.doing("written to", f"{table.name} of {month}"):
        writer = None
        try:
            for piece in pieces:
                if piece.num_rows:
                    if writer is None:
                        writer = arrow.parquet.ParquetWriter(part, piece.schema, compression=COMPRESSION)
                    writer.write_table(piece, row_group_size=piece.num_rows)
                    count += piece.num_rows
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            return None
        digest, size = _digest(part)
        file = DataFile(table.name, month, data_path(table.name, host, profile, month, digest), count, size, digest)
        if place.size(file.path) != size:
            place.put(file.path, part)
        return file


def read(content: bytes, file: DataFile) -> pyarrow.Table:
    """The rows of a file as this version declares its table; a column that it does not have is NULL.

    Raises LakeDamaged.
    """
    arrow = load()
    try:
        found = arrow.parquet.read_table(arrow.BufferReader(content))
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise LakeDamaged(f"{file.path} cannot be read as Parquet ({' '.join(str(error).split())}).") from error
    declared = table_named(file.table)
    return found if declared is None else conformed(declared, found)


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
