"""The SQL of a question, carried over from SQLite's dialect to an engine's.

The files of the canned queries stay as they are. Views are put in by their text, so that a question runs on one
generation of a warehouse, narrowed to chosen stores, with nothing made in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from state_ledger.ledger.days import BUCKET_SECONDS
from state_ledger.warehouse import views, zones
from state_ledger.warehouse.constants import Folded, fold
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.native import FOLDED
from state_ledger.warehouse.prices import Listed

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook

_FOLDED = {
    (f"ledger_{table}", function, argument): name
    for table, columns in FOLDED.items()
    for name, (function, argument) in columns.items()
}


@dataclass(frozen=True)
class Carrier:
    """Carries statements over to one engine and one generation.

    places: the numbers of the stores to which answers are narrowed; None for all. zone: for days where the SQL
    names none. prices: the list prices of all models of the warehouse, made when they are first asked for.
    """

    dialect: Dialect
    state: views.State
    zone: str
    book: Callable[[], PriceBook]
    prices: Callable[[], Listed]
    places: tuple[int, ...] | None = None

    def statement(self, sql: str, bound: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """The text for the engine, and the values that are bound in it."""
        folded = fold(_parsed(sql).copy(), bound, self.zone, self.book)
        tree = folded.tree
        self._put_in_views(folded)
        _count_by_number(tree)
        self._put_in_functions(folded)
        _join_plainly(tree)
        _take_any_of_a_group(tree)
        _tell_truth(tree)
        if not self.dialect.recursion_unites:
            _end_recursion(tree, self.state.longest)
        _name_columns(tree)
        # Lists are bound where they are used; a text may have decided a case that is gone.
        used = {name for name, value in folded.values.items() if not isinstance(value, str)}
        for node in list(tree.find_all(exp.Placeholder)):
            used.add(node.name)
            if isinstance(folded.values[node.name], str):
                node.replace(self.dialect.parameter(node.name, "text"))
        return self.dialect.text(tree), {name: value for name, value in folded.values.items() if name in used}

    def _put_in_views(self, folded: Folded) -> None:
        pending = [folded.tree]
        while pending:
            tree = pending.pop()
            for table in list(tree.find_all(exp.Table)):
                if not table.name.startswith("ledger_"):
                    continue
                select = self._view(folded, table.name)
                alias = table.alias or table.name
                put = exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(alias)))
                put.set("joins", table.args.get("joins"))
                put.meta["view"] = table.name
                table.replace(put)
                pending.append(select)

    def _view(self, folded: Folded, name: str) -> exp.Expr:
        if name == views.PRICES:
            return self.prices().select(self.dialect, folded)
        tree = _parsed(views.body(name, self.state)).copy()
        now = fold(tree, {}, self.zone, self.book)
        assert not now.values, "views have no texts of their own to bind"
        if self.places is None or name in _OF_VIEWS:
            return now.tree
        listed: list[exp.Expr] = [exp.Literal.number(each) for each in self.places] or [exp.Null()]
        narrowed = exp.Column(this=exp.to_identifier("place"), table=exp.to_identifier("narrowed"))
        condition: exp.Expr = exp.In(this=narrowed, expressions=listed)
        if name == "ledger_copies":  # shown where either of the two stores is chosen
            other = exp.Column(this=exp.to_identifier("place_of_copy"), table=exp.to_identifier("narrowed"))
            condition = exp.or_(condition, exp.In(this=other, expressions=[each.copy() for each in listed]))
        return exp.select("*").from_(now.tree.subquery("narrowed")).where(condition)  # type: ignore[attr-defined]

    def _put_in_functions(self, folded: Folded) -> None:
        for call in list(folded.tree.find_all(exp.Anonymous)):
            name = call.name.lower()
            if name == "local_day":
                call.replace(self._local_day(folded, *call.expressions))
            elif name in ("canonical_model", "folded_name"):
                call.replace(_folded_column(call, name))
            elif name in ("list_price", "priced_as"):
                self.prices().put_in(call, name, folded, self.dialect, self.book())
        for length in list(folded.tree.find_all(exp.Length)):
            if isinstance(length.this, exp.Cast):
                length.replace(self.dialect.bytes_of(length.this.this))
        for listed in list(folded.tree.find_all(exp.GroupConcat)):
            inner = listed.this
            listed.replace(self.dialect.listed(inner.expressions[0] if isinstance(inner, exp.Distinct) else inner))

    def _local_day(self, folded: Folded, instant: exp.Expr, zone: exp.Expr) -> exp.Expr:
        known, name = folded.value(zone)
        assert known, "the zone of a day is a parameter"
        return day_of(self.dialect, instant, str(name or self.zone), self.state.spans)


def day_of(dialect: Dialect, instant: exp.Expr, zone: str, spans: Sequence[int]) -> exp.Expr:
    """The calendar day of an instant as text; NULL for NULL and for what has none."""
    # Buckets are what most days are asked of: nothing is rounded there.
    at = instant if isinstance(instant, exp.Column) and instant.name == "bucket" else _bucket_of(instant)
    known = zones.offsets(tuple(spans), zone)
    offset: exp.Expr = exp.Literal.number(known[0][1])
    if len(known) > 1:
        arms = [
            exp.If(this=exp.GTE(this=at.copy(), expression=exp.Literal.number(since)), true=exp.Literal.number(seconds))
            for since, seconds in reversed(known[1:])
        ]
        offset = exp.Case(ifs=arms, default=offset)
    moved = exp.Paren(this=exp.Add(this=at.copy(), expression=offset))
    days = exp.Floor(this=exp.Div(this=moved, expression=exp.Literal.number("86400.0")))
    low, high = exp.Literal.number(zones.FIRST + 86_400), exp.Literal.number(zones.LAST - 86_400)
    inside = exp.Between(this=at.copy(), low=low, high=high)
    return exp.Case(ifs=[exp.If(this=inside, true=dialect.date_text(days))])


def _bucket_of(instant: exp.Expr) -> exp.Expr:
    """The beginning of the quarter of an hour in which an instant falls."""
    length = exp.Literal.number(f"{BUCKET_SECONDS}.0")
    quarters = exp.Floor(this=exp.Div(this=exp.Paren(this=instant.copy()), expression=length))
    return exp.Paren(this=exp.Mul(this=quarters, expression=exp.Literal.number(BUCKET_SECONDS)))


@lru_cache(maxsize=512)
def _parsed(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="sqlite")


_OF_VIEWS = frozenset(
    {"ledger_session_usage", "ledger_session_sums", "ledger_sessions", "ledger_family", "ledger_conversations",
     "ledger_work", "ledger_places"}
)  # fmt: skip
"""Views that read other views alone, which are narrowed already."""


def _count_by_number(tree: exp.Expr) -> None:
    """Rows that stand for several are counted as such."""
    for count in list(tree.find_all(exp.Count)):
        select = count.find_ancestor(exp.Select)
        if not isinstance(count.this, exp.Star) or select is None or select.args.get("joins"):
            continue
        source = _from(select).this
        if source.meta.get("view") in views.COUNTED_VIEWS:
            number = exp.column("number", table=source.alias)
            count.replace(exp.Coalesce(this=exp.Sum(this=number), expressions=[exp.Literal.number(0)]))


def _from(select: exp.Select) -> exp.From:
    found = select.args.get("from_") or select.args.get("from")
    assert isinstance(found, exp.From), "every SELECT here reads something"
    return found


def _folded_column(call: exp.Anonymous, function: str) -> exp.Expr:
    """The column in which the value of a function of another column was kept when rows were loaded."""
    column = call.find(exp.Column)
    select = call.find_ancestor(exp.Select)
    assert column is not None and select is not None, f"{function} is asked of a column or of a parameter"
    sources = [_from(select).this, *(join.this for join in select.args.get("joins") or ())]
    named = next(each for each in sources if not column.table or each.alias == column.table)
    return exp.column(_FOLDED[named.meta["view"], function, column.name], table=column.table or None)


def _join_plainly(tree: exp.Expr) -> None:
    """SQLite lets a CROSS JOIN have a condition, by which it only fixes the order of loops."""
    for join in tree.find_all(exp.Join):
        if join.args.get("on") is not None and join.kind == "CROSS":
            join.set("kind", None)


def _take_any_of_a_group(tree: exp.Expr) -> None:
    """A column that is the same in all rows of a group need not be grouped by in SQLite."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        if group is None:
            continue
        places = {each.this for each in group.expressions if isinstance(each, exp.Literal)}
        grouped = {each.name for each in group.expressions if isinstance(each, exp.Column)}
        for place, shown in enumerate(list(select.expressions), 1):
            if str(place) in places:
                continue
            column = shown.this if isinstance(shown, exp.Alias) else shown
            if isinstance(column, exp.Column) and column.name not in grouped:
                shown.replace(exp.alias_(exp.Max(this=column.copy()), shown.alias_or_name))


def _name_columns(tree: exp.Expr) -> None:
    """Every column that is shown has its plain name, also where two tables have one of it; and what orders rows by
    the name of a shown column says which by its place, since engines differ in what such a name means."""
    for select in tree.find_all(exp.Select):
        for shown in list(select.expressions):
            if isinstance(shown, exp.Column) and shown.table and not isinstance(shown.this, exp.Star):
                shown.replace(exp.alias_(shown.copy(), shown.name))
        order = select.args.get("order")
        if order is None or any(each.is_star for each in select.expressions):
            continue
        places = {each.alias: at for at, each in enumerate(select.expressions, 1) if isinstance(each, exp.Alias)}
        for term in order.expressions:
            named = term.this
            if isinstance(named, exp.Column) and not named.table and named.name in places:
                named.replace(exp.Literal.number(places[named.name]))


def _end_recursion(tree: exp.Expr, longest: int) -> None:
    """A recursion that ends when it finds nothing new ends after as many steps as the longest chain of sessions has."""
    for cte in list(tree.find_all(exp.CTE)):
        union = cte.this
        if not isinstance(union, exp.Union) or not union.args.get("distinct") or not _reads(union.expression, cte.alias):
            continue
        step = exp.to_identifier("step")
        above = next(table for table in union.expression.find_all(exp.Table) if table.name == cte.alias)
        before = exp.Column(this=step.copy(), table=exp.to_identifier(above.alias_or_name))
        first, following = union.this, union.expression
        first.select(exp.alias_(exp.Literal.number(1), "step"), copy=False)
        following.select(exp.alias_(exp.Add(this=before, expression=exp.Literal.number(1)), "step"), copy=False)
        following.where(exp.LT(this=before.copy(), expression=exp.Literal.number(longest)), copy=False)
        following.set("distinct", exp.Distinct())
        union.set("distinct", False)


def _reads(tree: exp.Expr, name: str) -> bool:
    return any(table.name == name for table in tree.find_all(exp.Table))


_PREDICATES = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


def _tell_truth(tree: exp.Expr) -> None:
    """A condition that stands as a value is 1 or 0, and a number that stands as a condition is true unless 0."""
    for node in list(tree.walk(bfs=False))[::-1]:
        if isinstance(node, exp.Paren):
            continue
        if isinstance(node, _PREDICATES):
            if not _is_condition(node):
                node.replace(exp.cast(exp.Paren(this=node.copy()), "INT"))
        elif _is_condition(node):
            if isinstance(node, exp.Literal) and not node.is_string:
                node.replace(exp.Boolean(this=float(node.this) != 0))
            elif not isinstance(node, exp.Null):
                node.replace(exp.NEQ(this=exp.Paren(this=node.copy()), expression=exp.Literal.number(0)))


def _is_condition(node: exp.Expr) -> bool:
    child = node
    while isinstance(child.parent, exp.Paren):
        child = child.parent
    parent = child.parent
    if isinstance(parent, (exp.Connector, exp.Not, exp.Where, exp.Having)):
        return True
    if isinstance(parent, exp.Join):
        return child.arg_key == "on"
    if isinstance(parent, exp.If):
        of_case = parent.parent
        return child.arg_key == "this" and not (isinstance(of_case, exp.Case) and of_case.this is not None)
    return False
