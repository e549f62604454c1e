"""Which price a model has on a day: the user's table, then the package, then none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

from state_ledger.prices import package, table
from state_ledger.prices.price import Price, Span

PACKAGE = package.Package()


class PriceBook:
    """The price list of an instance.

    path: the user's table; None for the package alone. Raises PriceTableError for a table that cannot be used.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path else None
        self.rows: Sequence[table.Row] = table.read(self.path) if self.path else ()
        self.package = PACKAGE
        # For each book its own, so that it ends with the book.
        self.spans = lru_cache(maxsize=4096)(self._spans)

    def price(self, model: str, provider: str = "", base_url: str = "", *, on: date) -> Price | None:
        """The price on a day, UTC; None where none is known."""
        return next(span.price for span in self.spans(model, provider, base_url) if span.holds(on))

    def _spans(self, model: str, provider: str = "", base_url: str = "") -> tuple[Span, ...]:
        """Every price of a model with its days: without gaps, in order, together all of time.

        model, provider, base_url: as stored. `spans` is the same and remembers.
        """
        rows = [(row, match) for row in self.rows if (match := row.match(model, provider)) is not None]
        found = self.package.find(model, provider, base_url)
        begins = {row.first for row, _ in rows if row.first}
        begins |= {row.last + timedelta(days=1) for row, _ in rows if row.last and row.last < date.max}
        begins |= set(package.starts(found[1])) if found else set()
        spans: list[Span] = []
        for first in [date.min, *sorted(begins - {date.min})]:
            mine = next((replace(row.price, match=match) for row, match in rows if row.holds(first)), None)
            price = mine or (self.package.price(found, first) if found else None)
            if spans and spans[-1].price == price:
                continue
            if spans:
                spans[-1] = Span(spans[-1].first, first, spans[-1].price)
            spans.append(Span(None if first == date.min else first, None, price))
        return tuple(spans)

    @property
    def sources(self) -> str:
        """The lists in force, for a reader, in their order."""
        named = [f"{self.path.name} (your table)"] if self.path else []
        if self.package.available:
            named.append(f"{self.package.source} (price changes up to {self.package.dated})")
        return ", then ".join(named) or "no price list (install genai-prices, or set a price table of your own)"
