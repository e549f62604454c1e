"""What a question says about its parameters alone is worked out beforehand, by SQLite and our own functions.

`:since = ''`, `day_start(:since, :tz)` or the bounds of `:limit` depend on no row. SQLite computes them, so that
they mean on every engine what they mean on a store; the engine gets bound numbers and texts, and conditions that
are true or false whatever a row says are gone from the SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from state_ledger.ledger import functions
from state_ledger.sqlite import sqlite3

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook

Value = str | int | float | None

_COMPUTED = (
    exp.Binary, exp.Unary, exp.Paren, exp.Case, exp.If, exp.Func, exp.Cast, exp.In, exp.Between, exp.Tuple,
)  # fmt: skip
"""Expressions whose value follows from those below them."""

_NOT_COMPUTED = (exp.AggFunc, exp.Window, exp.Exists, exp.Query)


class Folded:
    """A statement in which every expression over parameters and constants alone is a bound value.

    tree: the statement, which is changed; bound values stand in it as placeholders, NULL as itself. values: by
    name. consulted: the names of the values by which the statement was written: with others of these it is another.
    """

    def __init__(self, tree: exp.Expr, values: Mapping[str, Value]) -> None:
        self.tree = tree
        self.values: dict[str, Any] = dict(values)
        self.consulted: set[str] = set()

    def node(self, value: Value) -> exp.Expr:
        """A value as it stands in the statement."""
        return exp.Null() if value is None else exp.Placeholder(this=self.bind(value))

    def bind(self, value: Any) -> str:
        """The name under which a value is bound that follows from the consulted ones."""
        for name, bound in self.values.items():
            if name.startswith("more") and bound is value:
                return name
        name = f"more{len(self.values)}"
        self.values[name] = value
        return name

    def value(self, node: exp.Expr | None) -> tuple[bool, Value]:
        """Whether a node is a known value, and which."""
        if node is None or isinstance(node, exp.Null):
            return True, None
        if isinstance(node, exp.Paren):
            return self.value(node.this)
        if isinstance(node, exp.Literal):
            return True, node.this if node.is_string else _number(node.this)
        if isinstance(node, exp.Boolean):
            return True, int(node.this)
        if isinstance(node, exp.Placeholder) and node.name in self.values:
            self.consulted.add(node.name)
            return True, self.values[node.name]
        return False, None


def constants_of(tree: exp.Expr) -> list[exp.Expr]:
    """The largest expressions over parameters and constants alone, without those that are plain constants."""
    found: list[exp.Expr] = []

    def visit(each: exp.Expr) -> tuple[bool, bool]:
        """Whether it is constant, and whether it needs to be computed."""
        below = list(each.iter_expressions())
        told = [visit(child) for child in below]
        if isinstance(each, exp.Placeholder):
            return True, True
        if isinstance(each, (exp.Literal, exp.Null, exp.Boolean, exp.DataType, exp.DataTypeParam)):
            return True, False
        if isinstance(each, _COMPUTED) and not isinstance(each, _NOT_COMPUTED) and all(known for known, _ in told):
            # A call without a parameter too: `strftime('%s', 'now')`, `days_ago(0, 'UTC')`.
            return True, any(needed for _, needed in told) or isinstance(each, (exp.Anonymous, exp.TimeToStr))
        for child, (known, needed) in zip(below, told, strict=True):
            if known and needed:
                # One arm of a CASE is no expression, its two sides are.
                found.extend(child.iter_expressions() if isinstance(child, exp.If) else [child])
        return False, False

    if visit(tree) == (True, True):
        found.append(tree)
    return found


def computed(
    texts: Sequence[str], bound: Mapping[str, str], zone: str, book: Callable[[], PriceBook]
) -> tuple[Value, ...]:
    """The values of expressions in SQLite's dialect. Raises sqlite3.Error for what cannot be computed."""
    if not texts:
        return ()
    connection = sqlite3.connect(":memory:")
    try:
        functions.register(connection, zone, book)
        return tuple(connection.execute(f"SELECT {', '.join(texts)}", dict(bound)).fetchone())
    finally:
        connection.close()


def simplify(folded: Folded) -> None:
    """Takes out conditions and cases that are decided, and orders by what is the same for all rows."""
    for node in list(folded.tree.walk(bfs=False))[::-1]:  # children before their parents
        if isinstance(node, (exp.And, exp.Or)):
            _simplify_connector(folded, node)
        elif isinstance(node, exp.Not):
            known, value = folded.value(node.this)
            if known:
                node.replace(_truth(None if value is None else not value))
        elif isinstance(node, exp.Case):
            _simplify_case(folded, node)
        elif isinstance(node, exp.Coalesce):
            _simplify_coalesce(folded, node)
        elif isinstance(node, (exp.Where, exp.Having)):
            known, value = folded.value(node.this)
            if known:
                node.set("this", _truth(bool(value)))
        elif isinstance(node, exp.Order):
            kept = [each for each in node.expressions if not _orders_nothing(folded, each.this)]
            if kept:
                node.set("expressions", kept)
            else:
                node.pop()


def _truth(value: bool | None) -> exp.Expr:
    return exp.Null() if value is None else exp.Boolean(this=value)


def _simplify_connector(folded: Folded, node: exp.And | exp.Or) -> None:
    deciding = isinstance(node, exp.Or)
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        known, value = folded.value(one)
        if not known or not isinstance(value, (int, float)):
            continue
        node.replace(_truth(deciding) if bool(value) is deciding else other)
        return


def _simplify_coalesce(folded: Folded, node: exp.Coalesce) -> None:
    kept: list[exp.Expr] = []
    for each in (node.this, *node.expressions):
        known, value = folded.value(each)
        if known and value is None:
            continue
        kept.append(each)
        if known:
            break
    if len(kept) > 1:
        node.set("this", kept[0])
        node.set("expressions", kept[1:])
    else:
        node.replace(kept[0] if kept else exp.Null())


def _orders_nothing(folded: Folded, node: exp.Expr) -> bool:
    """Whether a term is the same for all rows, and not the place of a column."""
    known, value = folded.value(node)
    return known and not (isinstance(node, exp.Literal) and isinstance(value, int))


def _simplify_case(folded: Folded, node: exp.Case) -> None:
    operand = node.this
    operand_known, operand_value = folded.value(operand) if operand is not None else (False, None)
    kept: list[exp.If] = []
    for arm in node.args["ifs"]:
        known, value = folded.value(arm.this)
        if operand is not None:
            if not (operand_known and known):
                kept.append(arm)
                continue
            holds = operand_value is not None and operand_value == value
        else:
            if not known:
                kept.append(arm)
                continue
            holds = bool(value)
        if holds:
            _end_case(node, kept, arm.args["true"])
            return
    _end_case(node, kept, node.args.get("default") or exp.Null())


def _end_case(node: exp.Case, kept: list[exp.If], default: exp.Expr) -> None:
    if kept:
        node.set("ifs", kept)
        node.set("default", default)
    else:
        node.replace(default if isinstance(default, (exp.Column, exp.Literal, exp.Null, exp.Placeholder))
                     else exp.Paren(this=default))  # fmt: skip


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
