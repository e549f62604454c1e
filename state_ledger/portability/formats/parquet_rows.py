"""Parquet: one message a row, for DuckDB and data frames; needs the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from state_ledger.errors import StateLedgerError
from state_ledger.portability.export import Export, ExportBroken
from state_ledger.schema import TABLES

ROWS_AT_ONCE = 10_000
CHARACTERS_AT_ONCE = 8 << 20


class ParquetMissing(StateLedgerError):
    """pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "Parquet needs pyarrow, which is not installed. Install it with: pip install 'state-ledger[parquet]'"
        )


def write(export: Export) -> Iterator[bytes]:
    """The messages, with `state`; no Parquet file at all if it was cut off, since its end says what is in it."""
    arrow = load()
    names = (*export.messages.columns, "state")
    schema = arrow.schema([(name, _type(arrow, name)) for name in names])
    yield from stream(schema, (rows for rows in export.flat_pages() if rows))
    export.must_be_whole()


def load() -> Any:
    """pyarrow with its Parquet part. Raises ParquetMissing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ParquetMissing from error
    return pyarrow


def stream(schema: Any, pages: Iterable[Sequence[Sequence[Any]]]) -> Iterator[bytes]:
    """Pages of rows as a Parquet file, in pieces. Raises ExportBroken for a value that its column cannot hold."""
    arrow = load()
    sink = _Sink()
    with arrow.parquet.ParquetWriter(arrow.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        waiting: list[Sequence[Any]] = []
        for page in pages:
            waiting += page
            if len(waiting) >= ROWS_AT_ONCE or _characters(page) * (len(waiting) / len(page)) > CHARACTERS_AT_ONCE:
                writer.write_table(_table(arrow, schema, waiting))
                waiting = []
                yield sink.taken()
        if waiting:
            writer.write_table(_table(arrow, schema, waiting))
    yield sink.taken()


def _characters(page: Sequence[Sequence[Any]]) -> int:
    return sum(len(cell) for row in page for cell in row if isinstance(cell, str))


class _Sink:
    """A file that hands on what is written to it."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._written = 0

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._written += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def taken(self) -> bytes:
        """What was written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


_DECLARED = {column.name: column.type for column in TABLES["messages"]}


def _type(arrow: Any, name: str) -> Any:
    return {"INTEGER": arrow.int64(), "REAL": arrow.float64()}.get(_DECLARED.get(name, "TEXT"), arrow.string())


def _table(arrow: Any, schema: Any, rows: Sequence[Sequence[Any]]) -> Any:
    columns = []
    for place, field in enumerate(schema):
        values = [row[place] for row in rows]
        if field.type == arrow.string():
            values = [value if value is None or isinstance(value, str) else str(value) for value in values]
        try:
            columns.append(arrow.array(values, type=field.type))
        except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError) as error:
            raise ExportBroken(
                f"The column {field.name} holds a value that is no {field.type}, which Parquet cannot take; "
                "export it as CSV or JSON Lines."
            ) from error
    return arrow.Table.from_arrays(columns, schema=schema)
