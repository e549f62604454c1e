"""List prices of models, offline: the user's own table over the package `genai-prices`.

One order decides everywhere (docs/prices.md): the first row of the user's table that fits model, provider
and day; else the package; else there is no price, which is not a price of 0 (accounting rules 6 and 10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from state_ledger.prices.book import PriceBook
    from state_ledger.prices.price import BUCKETS, Price, Span

__all__ = ["BUCKETS", "Price", "PriceBook", "Span", "load"]
"""What other parts of the project need of it."""


def load() -> None:
    """Reads the package now, a third of a second once in a process: not within the time limit of a question."""
    from state_ledger.prices.book import PACKAGE

    _ = PACKAGE.providers


def __getattr__(name: str) -> Any:
    # Loaded when asked for: every connection can tell prices, and few are asked for one.
    if name == "PriceBook":
        from state_ledger.prices.book import PriceBook

        return PriceBook
    if name in ("BUCKETS", "Price", "Span"):
        from state_ledger.prices import price

        return getattr(price, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
