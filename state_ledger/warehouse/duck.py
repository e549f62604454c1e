"""DuckDB: embedded, in a file of this user's or in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import duckdb
from sqlglot import exp

from state_ledger.lake.tables import Kind
from state_ledger.questions import EngineError, engines
from state_ledger.warehouse.dialect import Dialect, Interrupted, Rows

if TYPE_CHECKING:
    import pyarrow

_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
}
"""Nothing is fetched from anywhere, and no file but the database is read."""


class DuckDB(Dialect):
    """A DuckDB database. path: its file; None for one in memory. Raises EngineError where it cannot be opened."""

    name: ClassVar[engines.Name] = "duckdb"
    sqlglot: ClassVar[str] = "duckdb"
    kinds: ClassVar[Mapping[Kind, str]] = {"text": "VARCHAR", "real": "DOUBLE", "integer": "BIGINT"}
    shared: ClassVar[bool] = False

    def __init__(self, path: Path | None = None, *, read_only: bool = False) -> None:
        try:
            self._connection = duckdb.connect(
                ":memory:" if path is None else str(path), read_only=read_only, config=dict(_CONFIG)
            )
        except duckdb.Error as error:
            raise EngineError(f"DuckDB cannot open {path}: {error}") from error
        self._writer: tuple[int, Any] | None = None  # of the thread that is in a transaction

    def parameter(self, name: str, kind: Kind, *, many: bool = False) -> exp.Expr:
        given = exp.Placeholder(this=name)
        return exp.cast(given, f"{self.kinds[kind]}[]", dialect="duckdb") if many else given

    def unnested(self, columns: Mapping[str, tuple[str, Kind]]) -> exp.Expr:
        return exp.select(
            *(
                exp.alias_(exp.Anonymous(this="unnest", expressions=[self.parameter(bound, kind, many=True)]), name)
                for name, (bound, kind) in columns.items()
            )
        )

    def date_text(self, days: exp.Expr, *, far: bool) -> exp.Expr:
        # A date and a whole number of days are a date.
        day = exp.Add(this=exp.cast(exp.Literal.string("1970-01-01"), "DATE"), expression=exp.cast(days, "INT"))
        return exp.cast(exp.Paren(this=day), "TEXT")

    def bytes_of(self, text: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this="strlen", expressions=[text])

    def listed(self, value: exp.Expr) -> exp.Expr:
        distinct = exp.Anonymous(this="list", expressions=[exp.Distinct(expressions=[value.copy()])])
        known = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
        kept = exp.Filter(this=distinct, expression=exp.Where(this=known))
        return exp.Anonymous(
            this="array_to_string",
            expressions=[exp.Anonymous(this="list_sort", expressions=[kept]), exp.Literal.string(",")],
        )

    def run(
        self, sql: str, values: Mapping[str, Any] | None = None, limit_ms: int | None = None
    ) -> tuple[list[str], Rows]:
        connection, close = self._cursor()
        timer = None if limit_ms is None else threading.Timer(limit_ms / 1000, connection.interrupt)
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            connection.execute(sql, dict(values) if values else None)
            described = connection.description or []
            return [column[0] for column in described], connection.fetchall() if described else []
        except duckdb.InterruptException as error:
            raise Interrupted("DuckDB did not answer in time.") from error
        except duckdb.Error as error:
            raise EngineError(f"DuckDB says: {error}") from error
        finally:
            if timer is not None:
                timer.cancel()
            close()

    def make(self, table: str, columns: Sequence[tuple[str, Kind]], order: Sequence[str]) -> None:
        listed = ", ".join(f'"{name}" {self.kinds[kind]}' for name, kind in columns)
        self.run(f'CREATE TABLE IF NOT EXISTS "{table}" ({listed})')

    def insert(self, table: str, rows: pyarrow.Table) -> None:
        connection, close = self._cursor()
        listed = ", ".join(f'"{name}"' for name in rows.column_names)
        try:
            connection.register("rows_to_insert", rows)
            connection.execute(f'INSERT INTO "{table}" ({listed}) SELECT {listed} FROM rows_to_insert')
            connection.unregister("rows_to_insert")
        except duckdb.Error as error:
            raise EngineError(f"DuckDB says: {error}") from error
        finally:
            close()

    def delete(self, table: str, column: str, numbers: Sequence[int]) -> None:
        self.run(
            f'DELETE FROM "{table}" WHERE "{column}" IN (SELECT unnest(CAST($numbers AS BIGINT[])))',
            {"numbers": list(numbers)},
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        writer = self._connection.cursor()
        self._writer = threading.get_ident(), writer
        try:
            writer.execute("BEGIN")
            yield
            writer.execute("COMMIT")
        except duckdb.Error as error:
            raise EngineError(f"DuckDB says: {error}") from error
        finally:
            # One that was not committed is given up with its connection.
            self._writer = None
            writer.close()

    def _cursor(self) -> tuple[Any, Callable[[], None]]:
        """A connection for one statement, and how to give it back: that of the transaction, or one of its own."""
        if self._writer is not None and self._writer[0] == threading.get_ident():
            return self._writer[1], lambda: None
        cursor = self._connection.cursor()
        return cursor, cursor.close

    def close(self) -> None:
        self._connection.close()


def is_in_use(error: Exception) -> bool:
    """Whether a file could not be opened since another process has it open."""
    return "lock" in str(error)
