"""A price: dollars per million tokens of each bucket, whose it is and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

BUCKETS = ("input", "output", "cache_read", "cache_write")
"""The token buckets, which do not overlap (accounting rule 1)."""

Match = Literal["exact", "alias", "pattern", "fuzzy"]
"""How a model's name led to its price.

exact: the name as stored, but for case. alias: another spelling of the same name, or a name that the price list
itself gives for it. pattern: a pattern of the user's table. fuzzy: the price of something near: a name that only
begins alike, or the maker's price where the provider that billed is not in the list.
"""


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens, None for a bucket without a known price.

    model, provider: what was matched, as the price list names it; provider '' where the list names none.
    source: the price list, with line or version. source_date: ISO date of the list. note: what is assumed, or
    the user's own note; '' for none.
    """

    model: str
    provider: str
    match: Match
    source: str
    source_date: str
    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    note: str = ""

    @property
    def priced_as(self) -> str:
        """What was matched, for a reader: `openai gpt-5.2`."""
        return f"{self.provider} {self.model}".strip()

    def of(self, bucket: str) -> Decimal | None:
        """The price of one of BUCKETS."""
        price: Decimal | None = getattr(self, bucket)
        return price


@dataclass(frozen=True)
class Span:
    """The days, UTC, on which one price holds, None for an open end; price None: no price is known.

    first: the first day. after: the first day on which it does not hold any more.
    """

    first: date | None
    after: date | None
    price: Price | None

    @property
    def last(self) -> date | None:
        """The last day on which the price holds."""
        return self.after - timedelta(days=1) if self.after else None

    def holds(self, day: date) -> bool:
        """Whether a day is one of these."""
        return (self.first is None or self.first <= day) and (self.after is None or day < self.after)
