"""Our own SQL functions on an engine that does not have them.

What they give for parameters alone is computed beforehand (`constants`). Of a column, a day is told by the offsets of
its zone (`zones`), a price by the price list (`prices`), and what a name is folded to was kept when rows were
loaded (`native.FOLDED`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from state_ledger.ledger.days import BUCKET_SECONDS
from state_ledger.warehouse import zones
from state_ledger.warehouse.constants import Folded
from state_ledger.warehouse.dialect import Dialect
from state_ledger.warehouse.native import FOLDED
from state_ledger.warehouse.portable import sources_of
from state_ledger.warehouse.prices import Listed

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook

_FOLDED = {
    (f"ledger_{table}", function, argument): name
    for table, columns in FOLDED.items()
    for name, (function, argument) in columns.items()
}


def put_in_functions(
    folded: Folded, dialect: Dialect, zone: str, spans: Sequence[int], prices: Callable[[], Listed],
    book: Callable[[], PriceBook],
) -> None:
    """Puts what an engine reads in the place of every call of a function of ours, and of three of SQLite's."""
    for call in list(folded.tree.find_all(exp.Anonymous)):
        name = call.name.lower()
        if name == "local_day":
            instant, named = call.expressions
            _, of_zone = folded.value(named)
            call.replace(day_of(dialect, instant, str(of_zone or zone), spans))
        elif name in ("canonical_model", "folded_name"):
            call.replace(_folded_column(call, name))
        elif name in ("list_price", "priced_as"):
            prices().put_in(call, name, folded, book())
    for length in list(folded.tree.find_all(exp.Length)):
        if isinstance(length.this, exp.Cast):
            length.replace(dialect.bytes_of(length.this.this))
    for listed in list(folded.tree.find_all(exp.GroupConcat)):
        inner = listed.this
        listed.replace(dialect.listed(inner.expressions[0] if isinstance(inner, exp.Distinct) else inner))


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
    return exp.Case(ifs=[exp.If(this=inside, true=dialect.date_text(days, far=zones.are_far(spans)))])


def _bucket_of(instant: exp.Expr) -> exp.Expr:
    """The beginning of the quarter of an hour in which an instant falls."""
    length = exp.Literal.number(f"{BUCKET_SECONDS}.0")
    quarters = exp.Floor(this=exp.Div(this=exp.Paren(this=instant.copy()), expression=length))
    return exp.Paren(this=exp.Mul(this=quarters, expression=exp.Literal.number(BUCKET_SECONDS)))


def _folded_column(call: exp.Anonymous, function: str) -> exp.Expr:
    """The column in which the value of a function of another column was kept."""
    column, select = call.find(exp.Column), call.find_ancestor(exp.Select)
    assert column is not None and select is not None, f"{function} is asked of a column or of a parameter"
    view = next(each.name for each in sources_of(select) if column.table in ("", each.alias_or_name))
    return exp.column(_FOLDED[view, function, column.name], table=column.table or None)
