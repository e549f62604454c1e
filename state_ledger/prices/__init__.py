"""List prices of models, offline: the user's own table over the package `genai-prices`.

One order decides everywhere (docs/prices.md): the first row of the user's table that fits model, provider
and day; else the package; else there is no price, which is not a price of 0 (accounting rules 6 and 10).
"""

from __future__ import annotations

from state_ledger.prices.book import PriceBook
from state_ledger.prices.price import BUCKETS, Price, Span

__all__ = ["BUCKETS", "Price", "PriceBook", "Span"]
"""What other parts of the project need of it."""
