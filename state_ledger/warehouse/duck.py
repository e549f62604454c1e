"""DuckDB: embedded, in a file of this user's or in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
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
    transactional: ClassVar[bool] = True

    def __init__(self, path: Path | None = None, *, read_only: bool = False) -> None:
        try:
            self._connection = duckdb.connect(
                ":memory:" if path is None else str(path), read_only=read_only, config=dict(_CONFIG)
            )
        except duckdb.Error as error:
            raise EngineError(f"DuckDB cannot open {path}: {error}") from error
        self._writer: Any = None

    def parameter(self, name: str, kind: Kind, *, many: bool = False) -> exp.Expression:
        given = exp.Placeholder(this=name)
        return exp.cast(given, f"{self.kinds[kind]}[]", dialect="duckdb") if many else given

    def unnested(self, columns: Mapping[str, tuple[str, Kind]]) -> exp.Expression:
        return exp.select(
            *(
                exp.alias_(exp.Anonymous(this="unnest", expressions=[self.parameter(bound, kind, many=True)]), name)
                for name, (bound, kind) in columns.items()
            )
        )

    def date_text(self, days: exp.Expression) -> exp.Expression:
        # A date and a whole number of days are a date.
        day = exp.Add(this=exp.cast(exp.Literal.string("1970-01-01"), "DATE"), expression=exp.cast(days, "INT"))
        return exp.cast(exp.Paren(this=day), "TEXT")

    def bytes_of(self, text: exp.Expression) -> exp.Expression:
        return exp.Anonymous(this="strlen", expressions=[text])

    def listed(self, value: exp.Expression) -> exp.Expression:
        distinct = exp.Anonymous(this="list", expressions=[exp.Distinct(expressions=[value.copy()])])
        kept = exp.Filter(this=distinct, expression=exp.Where(this=exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))))
        return exp.Anonymous(
            this="array_to_string",
            expressions=[exp.Anonymous(this="list_sort", expressions=[kept]), exp.Literal.string(",")],
        )

    def run(
        self, sql: str, values: Mapping[str, Any] | None = None, limit_ms: int | None = None
    ) -> tuple[list[str], Rows]:
        # A transaction is of one connection; every question has one of its own.
        connection = self._writer or self._connection.cursor()
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
            if connection is not self._writer:
                connection.close()

    def make(self, table: str, columns: Sequence[tuple[str, Kind]], order: Sequence[str]) -> None:
        listed = ", ".join(f'"{name}" {self.kinds[kind]}' for name, kind in columns)
        self.run(f'CREATE TABLE IF NOT EXISTS "{table}" ({listed})')

    def insert(self, table: str, rows: pyarrow.Table) -> None:
        connection = self._writer or self._connection.cursor()
        listed = ", ".join(f'"{name}"' for name in rows.column_names)
        try:
            connection.register("rows_to_insert", rows)
            connection.execute(f'INSERT INTO "{table}" ({listed}) SELECT {listed} FROM rows_to_insert')
            connection.unregister("rows_to_insert")
        except duckdb.Error as error:
            raise EngineError(f"DuckDB says: {error}") from error
        finally:
            if connection is not self._writer:
                connection.close()

    def delete(self, table: str, column: str, numbers: Sequence[int]) -> None:
        self.run(
            f'DELETE FROM "{table}" WHERE "{column}" IN (SELECT unnest(CAST($numbers AS BIGINT[])))',
            {"numbers": list(numbers)},
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._writer = self._connection.cursor()
        try:
            self._writer.execute("BEGIN")
            yield
            self._writer.execute("COMMIT")
        except duckdb.Error as error:
            raise EngineError(f"DuckDB says: {error}") from error
        finally:
            # One that was not committed is given up with its connection.
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        self._connection.close()
