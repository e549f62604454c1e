"""Prices for SQL: what the view `ledger_prices` and questions of another model ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time, timezone
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from state_ledger.prices.book import PriceBook
    from state_ledger.prices.price import Span

FIRST, LAST = 0, 1_000_000_000_000
"""Epoch seconds before and after everything that can be a time: the open ends of a price."""


@cache
def _package_alone() -> PriceBook:
    from state_ledger.prices.book import PriceBook

    return PriceBook()


def functions(book: Callable[[], PriceBook] | None = None) -> list[tuple[str, int, Callable[..., Any]]]:
    """Name, number of arguments and function of each; the book is asked for when a price is."""
    given = book or _package_alone
    return [
        ("price_spans", 3, lambda *of: spans(given(), *of)),
        ("list_price", 5, lambda *of: list_price(given(), *of)),
        ("priced_as", 4, lambda *of: priced_as(given(), *of)),
    ]


def spans(book: PriceBook, model: Any, provider: Any, base_url: Any) -> str:
    """JSON: one object for each price of a model with the time in which it holds; together all of time."""
    return json.dumps([_object(span) for span in book.spans(_text(model), _text(provider), _text(base_url))])


def list_price(book: PriceBook, model: Any, provider: Any, base_url: Any, bucket: Any, at: Any) -> float | None:
    """Dollars per million tokens of a bucket at an instant; None where no price is known."""
    from state_ledger.prices.price import BUCKETS

    if not isinstance(at, (int, float)):
        return None
    price = book.price(_text(model), _text(provider), _text(base_url), on=_day(at))
    value = price.of(str(bucket)) if price is not None and bucket in BUCKETS else None
    return None if value is None else float(value)


def priced_as(book: PriceBook, model: Any, provider: Any, base_url: Any, at: Any) -> str | None:
    """What a model is priced as at an instant, with how it was matched and by which list; None without a price."""
    if not isinstance(at, (int, float)):
        return None
    price = book.price(_text(model), _text(provider), _text(base_url), on=_day(at))
    return None if price is None else f"{price.priced_as} ({price.match}, {price.source})"


def _object(span: Span) -> dict[str, Any]:
    from state_ledger.prices.price import BUCKETS

    price = span.price
    known = {} if price is None else {
        **{f"{bucket}_price": None if price.of(bucket) is None else float(price.of(bucket) or 0) for bucket in BUCKETS},
        "priced_as": price.priced_as, "price_match": price.match, "price_source": price.source,
        "price_date": price.source_date or None, "price_note": price.note or None,
    }  # fmt: skip
    return {
        "valid_from": span.first.isoformat() if span.first else None,
        "valid_until": span.last.isoformat() if span.last else None,
        "from_epoch": _epoch(span.first) if span.first else FIRST,
        "until_epoch": _epoch(span.after) if span.after else LAST,
        "price_match": "none",
        **known,
    }


def _epoch(day: date) -> int:
    return int(datetime.combine(day, time(), timezone.utc).timestamp())


def _day(at: float) -> date:
    try:
        return datetime.fromtimestamp(at, timezone.utc).date()
    except (ValueError, OverflowError, OSError):
        return date.max


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
