"""A bill beside the books as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from state_ledger.bills import Comparison, Row
from state_ledger.pages import figures
from state_ledger.pages.links import Links
from state_ledger.pages.tables import Cell, Column, table

EXPLAINED = 10
"""How many of the largest differences name the sessions behind them."""

SHOWN = 1000
"""Rows of the table of days and models; the command line has them all."""

_SIDES = [
    Column("Billed", True, "On the bill"),
    Column("In the books", True, "Best known cost: actual, else estimated"),
    Column("Difference", True, "Billed less booked"),
]

Explained = Sequence[tuple[Row, Sequence[Mapping[str, Any]]]]
"""Differences with the sessions behind them, dearest first."""


def by_model(found: Comparison) -> str:
    """One row per model."""
    rows = [
        [Cell(row.model, sub=f"billed as {named}" if (named := found.billed_as(row.model)) else ""), *_sides(row)]
        for row in found.models
    ]
    return table("Dollars, the largest difference first", [Column("Model"), *_SIDES], rows,
                 totals=[Cell("Total"), *_sides(found.total)], name="models-table")  # fmt: skip


def differences(found: Comparison, explained: Explained, at: Links) -> str:
    """The days and models that differ, with the sessions that explain the largest."""
    behind = {(row.day, row.model): sessions for row, sessions in explained}
    largest = found.largest[:SHOWN]
    rows = [
        [
            Cell(row.day, sub=row.model),
            *_sides(row),
            Cell(row.why, sub=_sessions(behind.get((row.day, row.model), ()))),
            _behind(found, row, at),
        ]
        for row in largest
    ]
    more = f", the largest {SHOWN:,} of {len(found.largest):,}" if len(found.largest) > SHOWN else ""
    heads = [Column("Day"), *_SIDES, Column("What is known"), Column("Behind it")]
    return table(f"Dollars, the largest difference first{more}", heads, rows, name="differences-table")


def said(found: Comparison) -> list[tuple[str, str, bool]]:
    """Label, text and whether it is a word, for the sums."""
    total, bill = found.total, found.bill
    return [
        ("Billed", figures.money(total.billed), total.billed is None),
        ("In the books", figures.money(total.booked, unknown="none"), total.booked is None),
        ("Difference", figures.money(total.difference), False),
        ("Credits", figures.money(float(bill.credits)), False),
        ("Lines", figures.count(bill.lines), False),
        ("Days and models that differ", figures.count(len(found.largest)), False),
    ]


def _sides(row: Row) -> list[Cell]:
    difference = row.difference if row.differs else 0.0
    return [_dollars(row.billed), _dollars(row.booked), _dollars(difference)]


def _behind(found: Comparison, row: Row, at: Links) -> Cell:
    if not row.sessions:
        return Cell("none", word=True)
    return Cell(figures.plural(row.sessions, "session"), at.sessions(found.behind(row)))


def _dollars(amount: float | None) -> Cell:
    if amount is None:
        return Cell("none", word=True)
    return Cell(figures.money(amount), title=figures.exact_money(amount))


def _sessions(sessions: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{each['title'] or each['session_id']} {figures.money(each['cost_usd'])}" for each in sessions
    )
