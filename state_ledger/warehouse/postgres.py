"""PostgreSQL: an existing server, through psycopg; for those who have one and no other engine.

All tables are in a schema of their own, which is made where it is missing. Readers cannot write, and their
statements end by the server's own limit.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import psycopg
import sqlglot
from psycopg import sql as parts
from sqlglot import exp

from state_ledger.lake.tables import Kind, kind_of
from state_ledger.postgresql import Address
from state_ledger.postgresql.server import CONNECT_S, refusal
from state_ledger.questions import EngineError, engines
from state_ledger.warehouse.dialect import Dialect, Interrupted, Rows

if TYPE_CHECKING:
    import pyarrow

SCHEMA = "state_ledger"
"""Where the tables are, unless the address has a search path of its own."""

_LOCK = 0x57A7E1ED
"""Of two programs that load into one database, the second waits."""
_MARK = re.compile("\x02(\\w+)\x03")
"""Where a value stands in the text of a statement, until it is known whether `%` means itself there."""
_SESSION = ("jit = off", "extra_float_digits = 1", "datestyle = 'ISO, YMD'")
"""Compiling a question takes longer than answering it."""

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"


class PostgreSQL(Dialect):
    """A schema of a PostgreSQL database. address: `postgresql://…`, what it lacks is taken as libpq does.

    Raises EngineError where the server cannot be reached.
    """

    name: ClassVar[engines.Name] = "postgresql"
    sqlglot: ClassVar[str] = "postgres"
    # As SQLite compares texts: byte by byte.
    kinds: ClassVar[Mapping[Kind, str]] = {
        "text": 'text COLLATE "C"', "real": "double precision", "integer": "bigint",
    }  # fmt: skip

    def __init__(self, address: str) -> None:
        self._address = Address.of(address)
        self._name_of_schema = self._address.schema or SCHEMA
        self._schema = parts.Identifier(self._name_of_schema)
        self._idle: list[_Reader] = []
        self._writer: tuple[int, Connection] | None = None  # of the thread that is in a transaction
        self._touched: set[str] = set()
        with self._telling(), self._reader():
            pass  # it can be reached

    # -- the text of statements ---------------------------------------------------------------------

    def adapt(self, tree: exp.Expr) -> exp.Expr:
        for case in list(tree.find_all(exp.Case)):
            if all(isinstance(_bare(value), exp.Null) for value in _values(case)):
                case.replace(exp.Null())
        for holder in tree.find_all(exp.Alias, exp.AggFunc):
            # A column of nothing would be one of texts.
            text = isinstance(holder, exp.Alias) and kind_of(holder.alias) == "text"
            if isinstance(_bare(holder.this), exp.Null) and not text:
                holder.set("this", exp.cast(exp.Null(), "DOUBLE"))
        for cast in tree.find_all(exp.Cast):
            # Whole numbers have 64 bits, and what is behind the point is cut off.
            if cast.to.is_type("INT") and not isinstance(_bare(cast.this), _NO_NUMBERS):
                cast.set("to", exp.DataType.build("BIGINT"))
                cast.set("this", exp.Anonymous(this="trunc", expressions=[cast.this.copy()]))
        for number, source in enumerate(tree.find_all(exp.Subquery)):
            if isinstance(source.parent, (exp.From, exp.Join)) and not source.alias:
                source.set("alias", exp.TableAlias(this=exp.to_identifier(f"unnamed{number}")))
        return tree

    def parameter(self, name: str, kind: Kind, *, many: bool = False) -> exp.Expr:
        type_name = self.kinds[kind].partition(" COLLATE")[0]
        return exp.Var(this=f"CAST(\x02{name}\x03 AS {type_name}{'[]' if many else ''})")

    def unnested(self, columns: Mapping[str, tuple[str, Kind]]) -> exp.Expr:
        return exp.select(
            *(
                exp.alias_(exp.Anonymous(this="unnest", expressions=[self.parameter(bound, kind, many=True)]), name)
                for name, (bound, kind) in columns.items()
            )
        )

    def date_text(self, days: exp.Expr, *, far: bool) -> exp.Expr:
        first = exp.Cast(this=exp.Literal.string("1970-01-01"), to=exp.DataType.build("DATE"))
        day = exp.Add(this=first, expression=exp.Anonymous(this="int4", expressions=[days]))
        return exp.Anonymous(this="to_char", expressions=[exp.Paren(this=day), exp.Literal.string("YYYY-MM-DD")])

    def bytes_of(self, text: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this="octet_length", expressions=[text])

    def listed(self, value: exp.Expr) -> exp.Expr:
        made = sqlglot.parse_one("STRING_AGG(DISTINCT texts, ',' ORDER BY texts)", read="postgres")
        for column in list(made.find_all(exp.Column)):
            column.replace(value.copy())
        return made

    # -- rows ------------------------------------------------------------------------------------------

    def run(
        self, sql: str, values: Mapping[str, Any] | None = None, limit_ms: int | None = None
    ) -> tuple[list[str], Rows]:
        if values:
            sql = _MARK.sub(r"%(\1)s", sql.replace("%", "%%"))
        with self._telling():
            while True:
                with self._reader() as reader:
                    try:
                        reader.end_after(limit_ms or 0)
                        cursor = reader.connection.execute(sql, dict(values) if values else None)
                    except psycopg.OperationalError:
                        if reader.used and reader.connection.closed:  # the server let go of it since then
                            continue
                        raise
                    reader.used = True
                    described = cursor.description or []
                    return [column.name for column in described], cursor.fetchall() if described else []

    def make(self, table: str, columns: Sequence[tuple[str, Kind]], order: Sequence[str]) -> None:
        listed = ", ".join(f'"{name}" {self.kinds[kind]}' for name, kind in columns)
        index = ", ".join(f'"{name}"' for name in order)
        with self._telling(), self._writing() as connection:
            connection.execute(parts.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(self._schema))
            _execute(connection, f'CREATE TABLE IF NOT EXISTS "{table}" ({listed})')
            if index:
                _execute(connection, f'CREATE INDEX IF NOT EXISTS "{table}_order" ON "{table}" ({index})')

    def insert(self, table: str, rows: pyarrow.Table) -> None:
        from pyarrow import csv

        listed = ", ".join(f'"{name}"' for name in rows.column_names)
        options = csv.WriteOptions(include_header=False)
        with self._telling(), self._writing() as connection, connection.cursor() as cursor:
            copying = f'COPY "{table}" ({listed}) FROM STDIN (FORMAT csv)'
            with cursor.copy(copying.encode()) as copy:
                for batch in _without_nul(rows).to_batches(max_chunksize=50_000):
                    out = io.BytesIO()
                    csv.write_csv(batch, out, options)
                    copy.write(out.getbuffer())
            self._touched.add(table)

    def delete(self, table: str, column: str, numbers: Sequence[int]) -> None:
        with self._telling(), self._writing() as connection:
            statement = f'DELETE FROM "{table}" WHERE "{column}" = ANY(%s)'
            connection.execute(statement.encode(), [list(numbers)])

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits until no other program loads into this schema."""
        with self._telling():
            holder = self._connect()
            try:
                holder.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_LOCK, self._name_of_schema])
                yield
            finally:
                holder.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._telling():
            writer = self._connect()
            writer.autocommit = False
            self._writer = threading.get_ident(), writer
            self._touched.clear()
            try:
                yield
                for table in sorted(self._touched):  # without it the planner takes every table for an empty one
                    _execute(writer, f'ANALYZE "{table}"')
                writer.commit()
            finally:
                # One that was not committed is given up with its connection.
                self._writer = None
                writer.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().connection.close()

    def _connect(self) -> Connection:
        connection = psycopg.connect(
            self._address.text, connect_timeout=CONNECT_S, fallback_application_name="state-ledger",
            client_encoding="UTF8", prepare_threshold=None, autocommit=True,
        )  # fmt: skip
        for setting in _SESSION:
            _execute(connection, f"SET {setting}")
        connection.execute(parts.SQL("SET search_path TO {}").format(self._schema))
        return connection

    @contextmanager
    def _reader(self) -> Iterator[_Reader]:
        """A connection for one statement: that of the transaction, or one that cannot write."""
        if self._writer is not None and self._in_transaction():
            yield _Reader(self._writer[1])
            return
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = _Reader(self._connect())
            reader.connection.execute("SET default_transaction_read_only = on")
        try:
            yield reader
        finally:
            if not reader.connection.closed:
                self._idle.append(reader)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if self._writer is not None and self._in_transaction():
            yield self._writer[1]
            return
        with self._connect() as connection:
            yield connection

    def _in_transaction(self) -> bool:
        return self._writer is not None and self._writer[0] == threading.get_ident()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.QueryCanceled as error:
            raise Interrupted("PostgreSQL did not answer in time.") from error
        except psycopg.Error as error:
            raise EngineError(str(refusal(self._address, error, "asked"))) from None


class _Reader:
    """A connection that is kept. used: whether it answered before."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.used = False
        self._limit_ms = 0

    def end_after(self, limit_ms: int) -> None:
        """Ends statements after a time; 0: as the role or the address says."""
        if limit_ms != self._limit_ms:
            _execute(self.connection, f"SET statement_timeout = {limit_ms}" if limit_ms else "RESET statement_timeout")
            self._limit_ms = limit_ms


_NO_NUMBERS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.Null)


def _values(case: exp.Case) -> list[exp.Expr]:
    """What a CASE can give; NULL where it has no ELSE."""
    return [*(arm.args["true"] for arm in case.args["ifs"]), case.args.get("default") or exp.Null()]


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _execute(connection: Connection, statement: str) -> None:
    connection.execute(statement.encode())


def _without_nul(rows: pyarrow.Table) -> pyarrow.Table:
    """Texts as PostgreSQL can hold them: a NUL becomes U+FFFD."""
    import pyarrow
    import pyarrow.compute as compute

    for at, column in enumerate(rows.columns):
        if pyarrow.types.is_string(column.type) and compute.any(compute.match_substring(column, "\x00")).as_py():
            rows = rows.set_column(at, rows.column_names[at], compute.replace_substring(column, "\x00", "\ufffd"))
    return rows
