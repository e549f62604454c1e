"""The SQL of a question, carried over from SQLite's dialect to an engine's.

The files of the canned queries stay as they are. The views that a question reads go before it by their text, so
that it runs on one generation of a warehouse, narrowed to chosen stores, with nothing made in the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlglot
from sqlglot import exp

from state_ledger.lake.tables import Kind
from state_ledger.warehouse import portable, rollups, views
from state_ledger.warehouse.constants import Folded, Value, computed, constants_of, simplify
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.own import put_in_functions
from state_ledger.warehouse.prices import Listed

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook


class Statement(NamedTuple):
    """A statement as an engine takes it. columns: of its answer; () where only the engine knows them."""

    text: str
    values: Mapping[str, Any]
    columns: tuple[str, ...]


class Carrier:
    """Carries statements over to one engine and one generation. Used by many threads at once.

    places: the numbers of the stores to which answers are narrowed; None for all. zone: for days where the SQL
    names none. prices: the list prices of all models of the warehouse, made when they are first asked for. What was
    written for a statement is kept, and serves all values of its parameters that lead to the same text.
    """

    def __init__(
        self, dialect: Dialect, state: views.State, zone: str, book: Callable[[], PriceBook],
        prices: Callable[[], Listed], places: tuple[int, ...] | None = None,
    ) -> None:
        self.dialect, self.state, self.zone = dialect, state, zone
        self.book, self.prices, self.places = book, prices, places
        self._prepared: dict[tuple[str, bool], _Prepared] = {}
        self._views: dict[str, _View] = {}

    def statement(self, sql: str, bound: Mapping[str, str], *, places: bool = False) -> Statement:
        """The statement for the engine, with these values of its parameters. Raises sqlite3.Error for bad ones.

        places: whether rows about the file of a store say which (`portable.show_places`).
        """
        prepared = self._prepared.get((sql, places))
        if prepared is None:
            tree = _parsed(sql).copy()
            if places:
                portable.show_places(tree, views.OF_FILES)
            prepared = self._prepared[sql, places] = _Prepared(tree)
        values = dict(zip(prepared.names, computed(prepared.texts, bound, self.zone, self.book), strict=True))
        written = prepared.written.get(prepared.key(values))
        if written is None:
            written = self._write(prepared, values)
        known = {**values, **written.values, views.NOW: int(time.time())}
        return Statement(written.text, {name: known[name] for name in written.names}, written.columns)

    def _write(self, prepared: _Prepared, values: Mapping[str, Value]) -> _Written:
        folded = Folded(prepared.tree.copy(), values)
        tree = folded.tree
        for node in list(tree.find_all(exp.Placeholder)):
            if values[node.name] is None:
                node.replace(exp.Null())
        simplify(folded)
        if self._zones_of_days(folded) <= {self.state.rolled}:
            rollups.put_in(folded, self.state.rolled, narrowed=self.places is not None)
        put_in_functions(folded, self.dialect, self.zone, self.state.spans, self.prices, self.book)
        self._plain(tree)
        columns = () if tree.is_star else tuple(tree.named_selects)  # type: ignore[attr-defined]
        used = self._put_in_values(tree, folded.values)
        more = {name: value for name, value in folded.values.items() if name not in values}
        if self._put_in_views(tree):
            used.add(views.NOW)
        if any(table.name == views.PRICES for table in tree.find_all(exp.Table)):
            more |= self.prices().values
        used |= more.keys() & {name for name, value in more.items() if isinstance(value, list)}
        written = _Written(self.dialect.text(tree), tuple(sorted(used)), more, columns)
        return prepared.keep(written, values, frozenset(folded.consulted))

    def _zones_of_days(self, folded: Folded) -> set[str]:
        calls = [call for call in folded.tree.find_all(exp.Anonymous) if call.name.lower() == "local_day"]
        return {str(folded.value(call.expressions[1])[1] or self.zone) for call in calls}

    def _plain(self, tree: exp.Expr) -> None:
        """What SQLite reads in its own way is written as every engine reads it."""
        portable.count_by_number(tree, views.COUNTED_VIEWS)
        portable.join_plainly(tree)
        portable.take_any_of_a_group(tree)
        portable.tell_truth(tree)
        if not self.dialect.recursion_unites:
            portable.end_recursion(tree, self.state.longest)
        portable.name_columns(tree)

    def _put_in_values(self, tree: exp.Expr, values: Mapping[str, Any]) -> set[str]:
        used = set()
        for node in list(tree.find_all(exp.Placeholder)):
            value = values[node.name]
            if not isinstance(value, list):
                used.add(node.name)
                node.replace(self.dialect.parameter(node.name, _kind_of(value)))
        return used

    def _put_in_views(self, tree: exp.Expr) -> bool:
        """Puts the views that a statement reads before it; whether one of them asks for this moment."""
        found: dict[str, _View] = {}

        def read(name: str) -> None:
            if name not in found:
                view = self._view(name)
                for other in view.reads:
                    read(other)
                found[name] = view

        for name in sorted({table.name for table in tree.find_all(exp.Table) if table.name.startswith("ledger_")}):
            read(name)
        with_ = tree.args.get("with_")
        if with_ is None:
            with_ = exp.With(expressions=[])
            tree.set("with_", with_)
        before: list[exp.Expr] = [
            exp.CTE(
                this=exp.Var(this=view.text), alias=exp.TableAlias(this=exp.to_identifier(name)), materialized=False
            )
            for name, view in found.items()
        ]
        with_.set("expressions", before + with_.expressions)
        if not with_.expressions:
            tree.set("with_", None)
        return any(view.now for view in found.values())

    def _view(self, name: str) -> _View:
        if name not in self._views:
            self._views[name] = self._made(name)
        return self._views[name]

    def _made(self, name: str) -> _View:
        if name == views.PRICES:
            return _View(self.dialect.text(self.prices().select(self.dialect)), (), False)
        tree = _parsed(views.body(name, self.state)).copy()
        reads = tuple(sorted({table.name for table in tree.find_all(exp.Table) if table.name.startswith("ledger_")}))
        if self.places is not None and not reads:
            tree = _narrowed(tree, name, self.places)
        self._plain(tree)
        now = bool(self._put_in_values(tree, {views.NOW: 0}))
        return _View(self.dialect.text(tree), reads, now)


class _View(NamedTuple):
    """A view as it goes before a statement. reads: the views that it names; now: whether it asks for this moment."""

    text: str
    reads: tuple[str, ...]
    now: bool


class _Written(NamedTuple):
    """A statement as it was written. names: the values that are bound in it; values: those that no parameter tells."""

    text: str
    names: tuple[str, ...]
    values: Mapping[str, Any]
    columns: tuple[str, ...]


class _Prepared:
    """A statement, and what of it has to be computed before it can be written.

    tree: is changed. texts, names: the expressions over parameters alone, and what each is called. written: by the
    values that decided what was written, and the types of all others.
    """

    def __init__(self, tree: exp.Expr) -> None:
        names: dict[str, str] = {}
        for node in constants_of(tree):
            name = names.setdefault(node.sql(dialect="sqlite"), f"known{len(names)}")
            node.replace(exp.Placeholder(this=name))
        self.tree, self.texts, self.names = tree, tuple(names), tuple(names.values())
        self.written: dict[tuple[Any, ...], _Written] = {}
        self._consulted: frozenset[str] = frozenset()

    def key(self, values: Mapping[str, Value]) -> tuple[Any, ...]:
        """What decides how the statement is written."""
        return tuple(value if name in self._consulted else type(value) for name, value in values.items())

    def keep(self, written: _Written, values: Mapping[str, Value], consulted: frozenset[str]) -> _Written:
        """Keeps what was written for these values, of which the consulted ones decided."""
        if not consulted <= self._consulted or len(self.written) >= _MOST_WRITTEN:
            self._consulted |= consulted
            self.written = {}
        self.written[self.key(values)] = written
        return written


_MOST_WRITTEN = 200
"""Ways in which one statement is kept; a text that decides, as a model to reprice as, may have any value."""


def _kind_of(value: Value) -> Kind:
    return "text" if isinstance(value, str) else "integer" if isinstance(value, int) else "real"


def _narrowed(tree: exp.Expr, view: str, places: tuple[int, ...]) -> exp.Expr:
    """The rows of a view that are of these stores."""
    listed: list[exp.Expr] = [exp.Literal.number(each) for each in places] or [exp.Null()]
    condition: exp.Expr = exp.In(this=exp.column("place", table="narrowed"), expressions=listed)
    if view == "ledger_copies":  # shown where either of the two stores is chosen
        other = exp.column("place_of_copy", table="narrowed")
        condition = exp.or_(condition, exp.In(this=other, expressions=[each.copy() for each in listed]))
    return exp.select("*").from_(tree.subquery("narrowed")).where(condition)  # type: ignore[attr-defined]


@lru_cache(maxsize=512)
def _parsed(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="sqlite")
