"""ClickHouse: an existing server or cluster, through its official client.

Nothing here is done in one transaction, which ClickHouse does not have: rows show when the generation that names
their files is written. Tables are made in the database that the DSN names; where that is one of the engine
`Replicated`, as on a cluster, they are replicated.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar

import clickhouse_connect
from clickhouse_connect.driver.exceptions import ClickHouseError
from sqlglot import exp

from state_ledger.lake.tables import Kind
from state_ledger.questions import EngineError, engines
from state_ledger.warehouse.dialect import Dialect, Interrupted, Rows

if TYPE_CHECKING:
    import pyarrow

_SETTINGS = {
    # NULL where there is nothing, as standard SQL has it.
    "join_use_nulls": 1,
    "aggregate_functions_null_for_empty": 1,
    "union_default_mode": "DISTINCT",
    "prefer_column_name_to_alias": 1,
    # A conversation may have thousands of segments.
    "max_recursive_cte_evaluation_depth": 100_000,
}
_LOADING = "fleet_loading"
_SIGN_EVERY_S, _DEAD_AFTER_S = 10, 60
"""Seconds between two signs of life of a load, and after which one without a sign has ended."""
_TIMEOUT_EXCEEDED = ("TIMEOUT_EXCEEDED", "Code: 159")
_FIRST_DAY, _LAST_DAY = -25_567, 120_529
"""The days of a Date32, 1900 to 2299: 400 years, after which the calendar repeats."""
_CYCLE = _LAST_DAY - _FIRST_DAY + 1


class ClickHouse(Dialect):
    """A database of a ClickHouse server. dsn: as its client takes it, `clickhouse://user:password@host:8123/database`.

    Raises EngineError where it cannot be reached.
    """

    name: ClassVar[engines.Name] = "clickhouse"
    sqlglot: ClassVar[str] = "clickhouse"
    kinds: ClassVar[Mapping[Kind, str]] = {
        "text": "Nullable(String)", "real": "Nullable(Float64)", "integer": "Nullable(Int64)",
    }  # fmt: skip
    recursion_unites: ClassVar[bool] = False

    def __init__(self, dsn: str) -> None:
        try:
            # Without a session, one client may be asked by several threads at once.
            self._client = clickhouse_connect.get_client(dsn=dsn, autogenerate_session_id=False)
        except (ClickHouseError, OSError, ValueError) as error:
            raise EngineError(f"ClickHouse cannot be reached: {_said(error)}") from error

    def adapt(self, tree: exp.Expr) -> exp.Expr:
        for cte in tree.find_all(exp.CTE):
            cte.set("materialized", None)
        # Whole numbers of 64 bits and others have no type in common, as where a CASE gives now a count, now a sum.
        for number in list(tree.find_all(exp.Count, exp.Sum)):
            whole = number.parent if isinstance(number.parent, exp.Window) else number
            whole.replace(exp.Anonymous(this="toFloat64", expressions=[whole.copy()]))
        return tree

    def parameter(self, name: str, kind: Kind, *, many: bool = False) -> exp.Expr:
        spelled = self.kinds[kind] if many else self.kinds[kind].removeprefix("Nullable(").removesuffix(")")
        return exp.Var(this=f"{{{name}:{f'Array({spelled})' if many else spelled}}}")

    def unnested(self, columns: Mapping[str, tuple[str, Kind]]) -> exp.Expr:
        lists = [self.parameter(bound, kind, many=True) for bound, kind in columns.values()]
        zipped = exp.Anonymous(this="arrayJoin", expressions=[exp.Anonymous(this="arrayZip", expressions=lists)])
        rows = exp.select(exp.alias_(zipped, "cells")).subquery("listed")
        cells = [
            exp.alias_(
                exp.Anonymous(this="tupleElement", expressions=[exp.column("cells"), exp.Literal.number(at)]), name
            )
            for at, name in enumerate(columns, 1)
        ]
        return exp.select(*cells).from_(rows)

    def date_text(self, days: exp.Expr, *, far: bool) -> exp.Expr:
        text = exp.Anonymous(this="toString", expressions=[_date(days)])
        return _far_date_text(days) if far else text

    def bytes_of(self, text: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this="length", expressions=[text])

    def listed(self, value: exp.Expr) -> exp.Expr:
        texts = exp.Anonymous(
            this="arraySort", expressions=[exp.Anonymous(this="groupUniqArray", expressions=[value.copy()])]
        )
        joined = exp.Anonymous(this="arrayStringConcat", expressions=[texts, exp.Literal.string(",")])
        some = exp.GT(this=exp.Count(this=value.copy()), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=some, true=joined)])

    def run(
        self, sql: str, values: Mapping[str, Any] | None = None, limit_ms: int | None = None
    ) -> tuple[list[str], Rows]:
        settings: dict[str, Any] = dict(_SETTINGS)
        if limit_ms is not None:
            settings["max_execution_time"] = max(limit_ms / 1000, 0.001)
        try:
            answer = self._client.query(sql, parameters=dict(values or {}), settings=settings)
        except (ClickHouseError, OSError) as error:
            if any(sign in str(error) for sign in _TIMEOUT_EXCEEDED):
                raise Interrupted("ClickHouse did not answer in time.") from error
            raise EngineError(f"ClickHouse says: {_said(error)}") from error
        return list(answer.column_names), [tuple(row) for row in answer.result_rows]

    def make(self, table: str, columns: Sequence[tuple[str, Kind]], order: Sequence[str]) -> None:
        listed = ", ".join(f'"{name}" {self._type(name, kind)}' for name, kind in columns)
        key = ", ".join(f'"{name}"' for name in order)
        self._command(
            f'CREATE TABLE IF NOT EXISTS "{table}" ({listed}) ENGINE = MergeTree ORDER BY ({key})'
            " SETTINGS allow_nullable_key = 1"
        )

    def insert(self, table: str, rows: pyarrow.Table) -> None:
        try:
            self._client.insert_arrow(table, rows)
        except (ClickHouseError, OSError) as error:
            raise EngineError(f"ClickHouse says: {_said(error)}") from error

    def delete(self, table: str, column: str, numbers: Sequence[int]) -> None:
        listed = ", ".join(map(str, numbers))
        self._command(f'DELETE FROM "{table}" WHERE "{column}" IN ({listed})')

    @contextmanager
    def alone(self) -> Iterator[None]:
        """As declared; a server has no lock, so loaders leave a sign of life in a table, by the server's clock.

        Raises EngineError where another program gave one of late: of two that begin at once both may be refused.
        """
        self.make(_LOADING, (("loader", "integer"), ("at", "real")), ())
        loader = secrets.randbits(62)
        ended = threading.Event()

        def give_sign() -> None:
            self._command(f"INSERT INTO {_LOADING} SELECT {loader}, toFloat64(now())")

        def go_on() -> None:
            while not ended.wait(_SIGN_EVERY_S):
                with suppress(EngineError):  # the load itself will meet what is wrong
                    give_sign()

        give_sign()
        alive = threading.Thread(target=go_on, name="state-ledger-load", daemon=True)
        try:
            lately = f"at > toFloat64(now()) - {_DEAD_AFTER_S}"
            others = f"SELECT loader FROM {_LOADING} WHERE loader <> {loader} AND {lately}"
            if self.run(others)[1]:
                raise EngineError(
                    "Another program loads into this database. Try again when it is done, or, if it was killed, after"
                    f" {_DEAD_AFTER_S} seconds."
                )
            alive.start()
            yield
        finally:
            ended.set()
            if alive.ident is not None:
                alive.join()
            self.delete(_LOADING, "loader", [loader])

    def close(self) -> None:
        self._client.close()

    def _type(self, name: str, kind: Kind) -> str:
        return "LowCardinality(Nullable(String))" if kind == "text" and name in _FEW else self.kinds[kind]

    def _command(self, sql: str) -> None:
        try:
            self._client.command(sql)
        except (ClickHouseError, OSError) as error:
            raise EngineError(f"ClickHouse says: {_said(error)}") from error


_FEW = frozenset(
    {"store", "host", "source", "profile", "model", "canonical_model", "billing_provider", "billing_base_url",
     "billing_mode", "task", "attribution", "basis", "cost_status", "cost_source", "day_rule", "kind", "end_reason",
     "role", "state", "tool_name", "finish_reason", "lake_table", "source_table"}
)  # fmt: skip
"""Columns with few different texts."""


def _date(days: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="toDate32", expressions=[exp.Anonymous(this="toInt32", expressions=[days])])


def _far_date_text(days: exp.Expr) -> exp.Expr:
    """The date of a day of the same place in the calendar, with its own year."""
    text = "leftPad(toString(toYear(near) + 400 * cycles), 4, '0') || substring(toString(near), 5)"
    whole = exp.Anonymous(
        this="intDiv",
        expressions=[
            exp.Sub(this=days.copy(), expression=exp.Literal.number(_FIRST_DAY + _CYCLE * _BEFORE)),
            exp.Literal.number(_CYCLE),
        ],
    )
    cycles = exp.Paren(this=exp.Add(this=whole, expression=exp.Literal.number(_BEFORE)))
    shift = exp.Mul(this=cycles.copy(), expression=exp.Literal.number(_CYCLE))
    near = _date(exp.Sub(this=days.copy(), expression=shift))

    def put(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return near.copy() if node.name == "near" else cycles.copy()
        return node

    return exp.maybe_parse(text, dialect="clickhouse").transform(put)


_BEFORE = -5
"""Cycles of 400 years before which there is no day: whole numbers are divided towards 0 on one side of it only."""


def _said(error: Exception) -> str:
    """What the server says, in one line."""
    return " ".join(str(error).split())[:500]
