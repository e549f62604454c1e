"""The books of a fleet in engines made for many rows: the same questions, answered from what a lake holds.

`Followed(url, settings).books()` gives a `Warehouse` over the lake at a URL, in DuckDB: it is asked as a store is
(`questions.ask`, `pages.Ask`), over all stores or `narrowed` to some.
"""

from __future__ import annotations

from state_ledger.warehouse.books import Store, Warehouse
from state_ledger.warehouse.following import Followed, WarehouseBusyError

__all__ = ["Followed", "Store", "Warehouse", "WarehouseBusyError"]
