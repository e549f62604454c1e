"""List prices in a warehouse: those of the models that it holds, from the price list of whoever asks.

The list is the reader's own, so that nothing of it is kept in the engine: the prices of the few models there are
go along with each question as bound lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from state_ledger.lake.tables import Kind
from state_ledger.ledger.models import canonical_model
from state_ledger.ledger.prices import KEY, PRICED
from state_ledger.prices import sql as lists
from state_ledger.warehouse.portable import source_of

if TYPE_CHECKING:
    from state_ledger.prices import PriceBook
    from state_ledger.warehouse.constants import Folded
    from state_ledger.warehouse.dialect import Dialect

_NUMBERS = frozenset(
    {"from_epoch", "until_epoch", "input_price", "output_price", "cache_read_price", "cache_write_price"}
)  # fmt: skip


class Listed:
    """The prices of models, one row for each time in which a price holds, as the view `ledger_prices` has them."""

    def __init__(self, book: PriceBook, models: Iterable[tuple[str, str, str]]) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in (*KEY, "canonical_model", *PRICED)}
        for key in models:
            for span in json.loads(lists.spans(book, *key)):
                cells = {**dict(zip(KEY, key, strict=True)), "canonical_model": canonical_model(key[0]), **span}
                for name, column in self.columns.items():
                    column.append(cells.get(name))

    @property
    def values(self) -> dict[str, list[Any]]:
        """The lists that `select` reads, by the names under which they are bound."""
        return {f"listed_{name}": column for name, column in self.columns.items()}

    def select(self, dialect: Dialect) -> exp.Expr:
        """The rows as a SELECT from bound lists."""
        return dialect.unnested({name: (f"listed_{name}", _kind(name)) for name in self.columns})

    def put_in(
        self, call: exp.Anonymous, function: str, folded: Folded, book: PriceBook
    ) -> None:
        """Puts the price in the place of a call: from the rows that hold it, or for one model by its spans."""
        *key, at = [each for number, each in enumerate(call.expressions) if function != "list_price" or number != 3]
        bucket = folded.value(call.expressions[3])[1] if function == "list_price" else None
        told = [folded.value(_bare(each)) for each in key]
        if all(known for known, _ in told):
            call.replace(_of_one(book, [value for _, value in told], bucket, at, folded))
            return
        source = _joined(call, [_bare(each) for each in key], at)
        call.replace(_cell(source, bucket))


def _kind(name: str) -> Kind:
    return "real" if name in _NUMBERS else "text"


def _bare(node: exp.Expr) -> exp.Expr:
    """Without the cast to bytes, which only SQLite needs."""
    return node.this if isinstance(node, exp.Cast) else node


def _of_one(book: PriceBook, key: list[Any], bucket: Any, at: exp.Expr, folded: Folded) -> exp.Expr:
    """The price of one model at an instant."""
    spans: list[Mapping[str, Any]] = json.loads(lists.spans(book, *key))
    arms = [
        exp.If(
            this=exp.LT(this=at.copy(), expression=exp.Literal.number(span["until_epoch"])),
            true=folded.node(_value(span, bucket)),
        )
        for span in spans
    ]
    return exp.Case(ifs=arms)


def _value(span: Mapping[str, Any], bucket: Any) -> Any:
    if bucket is not None:
        return span.get(f"{bucket}_price")
    if span.get("priced_as") is None:
        return None
    return f"{span['priced_as']} ({span['price_match']}, {span['price_source']})"


def _joined(call: exp.Expr, key: list[exp.Expr], at: exp.Expr) -> str:
    """The alias under which the price of a key and an instant stands beside the rows of the SELECT of a call."""
    select = call.find_ancestor(exp.Select)
    assert select is not None, "a call stands in a SELECT"
    wanted = tuple(each.sql() for each in (*key, at))
    made: dict[tuple[str, ...], str] = select.meta.setdefault("prices", {})
    if wanted not in made:
        alias = made[wanted] = f"listed{len(made)}"
        # Under names that no other table has.
        listed = exp.select(*(exp.alias_(exp.column(name), f"{alias}_{name}") for name in (*KEY, *PRICED)))
        same: list[exp.Expr] = [
            exp.EQ(
                this=exp.column(f"{alias}_{name}", table=alias),
                expression=exp.Coalesce(this=each.copy(), expressions=[exp.Literal.string("")]),
            )
            for name, each in zip(KEY, key, strict=True)
        ]
        same.append(exp.GTE(this=at.copy(), expression=exp.column(f"{alias}_from_epoch", table=alias)))
        same.append(exp.LT(this=at.copy(), expression=exp.column(f"{alias}_until_epoch", table=alias)))
        source = listed.from_("ledger_prices").subquery(alias)
        for shown in select.expressions:
            if isinstance(shown, exp.Star):
                shown.replace(exp.Column(this=exp.Star(), table=exp.to_identifier(_name_of_source(select))))
        select.join(source, on=exp.and_(*same), join_type="LEFT", copy=False)
    return made[wanted]


def _name_of_source(select: exp.Select) -> str:
    source = source_of(select)
    assert source is not None and not select.args.get("joins"), "what is shown with a price is of one table"
    return str(source.alias_or_name)


def _cell(alias: str, bucket: Any) -> exp.Expr:
    if bucket is not None:
        return exp.column(f"{alias}_{bucket}_price", table=alias)
    parts: list[exp.Expr] = [
        exp.column(f"{alias}_priced_as", table=alias), exp.Literal.string(" ("),
        exp.column(f"{alias}_price_match", table=alias), exp.Literal.string(", "),
        exp.column(f"{alias}_price_source", table=alias), exp.Literal.string(")"),
    ]  # fmt: skip
    told = parts[0]
    for part in parts[1:]:
        told = exp.DPipe(this=told, expression=part)
    return told
