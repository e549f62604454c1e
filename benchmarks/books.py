"""The ledger's total beside plain SQL over the raw tables that counts every call once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from benchmarks import every_call_once
from benchmarks.bench import Bench
from benchmarks.figure import Figure
from state_ledger import questions
from state_ledger.connection import open_for_reading

CENT = 0.01


def measure(bench: Bench) -> Iterator[Figure]:
    """Dollars by which they differ."""
    with closing(open_for_reading(bench.path)) as connection:
        rows = questions.ask(connection, "cost_per_model", {"limit": "1000"}).records()
    ours, plain = sum(row["cost_usd"] or 0 for row in rows), every_call_once.total(bench.path)
    yield Figure(f"off by, of ${plain:,.2f}", abs(ours - plain), CENT / 2, "dollars", "half a cent", of="books")
