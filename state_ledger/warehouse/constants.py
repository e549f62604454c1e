"""What a question says about its parameters alone is worked out beforehand, by SQLite and our own functions.

`:since = ''`, `day_start(:since, :tz)` or the bounds of `:limit` depend on no row. SQLite computes them, so that
they mean on every engine what they mean on a store; the engine gets numbers and bound texts, and conditions that
are true or false whatever the row says are gone from the SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """A statement without parameters of its own.

    tree: the statement; texts that it needs stand in it as placeholders. values: those texts by name.
    """

    def __init__(self, tree: exp.Expr) -> None:
        self.tree = tree
        self.values: dict[str, Any] = {}

    def node(self, value: Value) -> exp.Expr:
        """A value as it stands in the statement."""
        if value is None:
            return exp.Null()
        if isinstance(value, str):
            return exp.Placeholder(this=self.bind(value))
        return exp.Literal.number(repr(value)) if value >= 0 else exp.Neg(this=exp.Literal.number(repr(-value)))

    def bind(self, value: Any) -> str:
        """The name under which a value is bound."""
        for name, bound in self.values.items():
            if bound is value or (isinstance(value, str) and bound == value):
                return name
        name = f"v{len(self.values)}"
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
        if isinstance(node, exp.Neg):
            known, value = self.value(node.this)
            return known and isinstance(value, (int, float)), -value if isinstance(value, (int, float)) else None
        if isinstance(node, exp.Boolean):
            return True, int(node.this)
        if isinstance(node, exp.Placeholder) and node.name in self.values:
            return True, self.values[node.name]
        return False, None


def fold(tree: exp.Expr, bound: Mapping[str, str], zone: str, book: Callable[[], PriceBook]) -> Folded:
    """The statement with every expression over parameters and constants replaced by its value.

    tree: is changed. Raises ValueError for what SQLite or one of our functions refuses.
    """
    folded = Folded(tree)
    constants = list(_largest_constants(tree))
    if constants:
        for node, value in zip(constants, _values(constants, bound, zone, book), strict=True):
            node.replace(folded.node(value))
    simplify(folded)
    return folded


def _largest_constants(node: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []

    def visit(each: exp.Expr) -> tuple[bool, bool]:
        """Whether it is constant, and whether it needs to be computed."""
        below = [child for child in each.iter_expressions()]
        told = [visit(child) for child in below]
        if isinstance(each, exp.Placeholder):
            return True, True
        if isinstance(each, (exp.Literal, exp.Null, exp.Boolean, exp.DataType, exp.DataTypeParam)):
            return True, False
        constant = (
            isinstance(each, _COMPUTED) and not isinstance(each, _NOT_COMPUTED) and all(known for known, _ in told)
        )
        if constant:
            # A call without a parameter too: `strftime('%s', 'now')`, `days_ago(0, 'UTC')`.
            return True, any(needed for _, needed in told) or isinstance(each, (exp.Anonymous, exp.TimeToStr))
        found.extend(child for child, (known, needed) in zip(below, told, strict=True) if known and needed)
        return False, False

    if visit(node) == (True, True):
        found.append(node)
    return found


def _values(
    nodes: list[exp.Expr], bound: Mapping[str, str], zone: str, book: Callable[[], PriceBook]
) -> tuple[Value, ...]:
    texts = [node.sql(dialect="sqlite") for node in nodes]
    distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    connection = sqlite3.connect(":memory:")
    try:
        functions.register(connection, zone, book)
        row = connection.execute(f"SELECT {', '.join(distinct)}", dict(bound)).fetchone()
    finally:
        connection.close()
    return tuple(row[distinct[text]] for text in texts)


def simplify(folded: Folded) -> None:
    """Takes out conditions and cases that are decided."""
    for node in list(folded.tree.walk(bfs=False))[::-1]:  # children before their parents
        if isinstance(node, (exp.And, exp.Or)):
            _simplify_connector(folded, node)
        elif isinstance(node, exp.Not):
            known, value = folded.value(node.this)
            if known:
                node.replace(folded.node(None if value is None else int(not value)))
        elif isinstance(node, exp.Case):
            _simplify_case(folded, node)
        elif isinstance(node, exp.Coalesce):
            _simplify_coalesce(folded, node)
    for order in list(folded.tree.find_all(exp.Order)):
        kept = [each for each in order.expressions if not _orders_nothing(folded, each.this)]
        if kept:
            order.set("expressions", kept)
        else:
            order.pop()


def _simplify_connector(folded: Folded, node: exp.And | exp.Or) -> None:
    deciding = isinstance(node, exp.Or)
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        known, value = folded.value(one)
        if not known or not isinstance(value, (int, float)):
            continue
        if bool(value) is deciding:
            node.replace(folded.node(int(deciding)))
        else:
            node.replace(other)
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
