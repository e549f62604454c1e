"""The tables of the money page: heads, rows and totals of each question."""

from __future__ import annotations

from collections.abc import Sequence

from state_ledger.pages import figures
from state_ledger.pages.links import Links
from state_ledger.pages.money import BY, total
from state_ledger.pages.sums import Record
from state_ledger.pages.tables import Cell, Column, table

_PRICED_AS = 3
"""How many price entries a row names; more are counted."""


def repriced(rows: Sequence[Record], by: str, as_model: str) -> str:
    """History at list prices beside the stored cost."""
    columns = [
        Column(BY[by]),
        Column("Stored cost", True, "As recorded: actual, else estimated; what a subscription covers is 0"),
        Column(f"As {as_model}" if as_model else "List price", True, "The same tokens at list prices"),
        Column("Difference", True, "List price less stored cost, where both are known in full"),
        Column("Incomplete", True, "Tokens of buckets without a price; they are in no amount"),
        Column("No price", True, "Tokens of models without any price; they are in no amount"),
    ]
    body = [[_name(row, by), *_compared(_Sums([row]))] for row in rows]
    return table("Dollars, dearest first" if by not in ("day", "month") else "Dollars, newest first", columns, body,
                 totals=[Cell("Total"), *_compared(_Sums(rows))] if rows else (), name="repriced-table")  # fmt: skip


def savings(rows: Sequence[Record], by: str) -> str:
    """What the cache saved and cost."""
    columns = [
        Column(BY[by]),
        Column("Saved", True, "What reads saved less what writes cost more"),
        Column("Saved by reads", True, "Cache reads at the price of input, less their own price"),
        Column("Spent on writes", True, "Cache writes at their own price, less that of input"),
        Column("Uncached", True, "The prompts as if nothing had been cached"),
        Column("Cache read", True, "Cache read / whole prompt"),
        Column("No price", True, "Cached tokens without the prices to value them; they are in no amount"),
    ]
    body = [[_name(row, by), *_saved(_Sums([row]))] for row in rows]
    return table("Dollars against the same prompts uncached", columns, body,
                 totals=[Cell("Total"), *_saved(_Sums(rows))] if rows else (), name="savings-table")  # fmt: skip


def subscription(rows: Sequence[Record], by: str) -> str:
    """What included calls are worth."""
    columns = [
        Column(BY[by]),
        Column("Included calls", True, "Calls that a subscription covers"),
        Column("List price", True, "What they would cost at list prices"),
        Column("Incomplete", True, "Tokens of buckets without a price; they are in no amount"),
        Column("No price", True, "Tokens of models without any price; they are in no amount"),
    ]

    def cells(sums: _Sums) -> list[Cell]:
        return [Cell(figures.count(sums.of("included_calls"))), sums.dollars("list_price_usd"), sums.incomplete,
                sums.tokens("unpriced_tokens")]  # fmt: skip

    body = [[_name(row, by), *cells(_Sums([row]))] for row in rows]
    return table("Dollars that the bill does not show", columns, body,
                 totals=[Cell("Total"), *cells(_Sums(rows))], name="subscription-table")  # fmt: skip


def plausibility(rows: Sequence[Record], at: Links) -> str:
    """Costs that look wrong, each with its session."""
    columns = [
        Column("Session"), Column("Model"), Column("Stored", True), Column("List price", True),
        Column("Times", True, "Stored cost / list price"), Column("Finding"),
    ]  # fmt: skip
    body = [
        [
            Cell(row["session_id"], at.session(row["session_id"]), sub=row["task"] or ""),
            Cell(row["model"] or "unknown", title=row["priced_as"] or ""),
            _dollars(row["stored_usd"]),
            _dollars(row["list_price_usd"]),
            Cell(figures.count(row["ratio"]), word=row["ratio"] is None),
            Cell(row["finding"], sub="" if row["in_sums"] else "set aside: in no sum"),
        ]
        for row in rows
    ]
    return table("Furthest from the list price first", columns, body, name="plausibility-table")


class _Sums:
    """One row, or the sums of several, as cells."""

    def __init__(self, rows: Sequence[Record]) -> None:
        self.rows = rows

    def of(self, column: str) -> float | None:
        return total(self.rows, column)

    def dollars(self, column: str) -> Cell:
        return _dollars(self.of(column))

    def tokens(self, column: str) -> Cell:
        number = self.of(column) or 0
        return Cell(figures.short(number), title=figures.count(number)) if number else Cell("0")

    @property
    def incomplete(self) -> Cell:
        """Tokens without a price, with the names of their buckets."""
        buckets = {name for row in self.rows for name in (row["incomplete_buckets"] or "").split()}
        cell = self.tokens("incomplete_tokens")
        return Cell(cell.text, title=cell.title, sub=", ".join(sorted(buckets)).replace("_", " "))


def _compared(sums: _Sums) -> list[Cell]:
    some = sums.of("difference_usd") is not None
    return [
        sums.dollars("cost_usd"), sums.dollars("repriced_usd"),
        sums.dollars("difference_usd") if some else Cell("none", word=True), sums.incomplete,
        sums.tokens("unpriced_tokens"),
    ]  # fmt: skip


def _saved(sums: _Sums) -> list[Cell]:
    prompt, read = sums.of("prompt_tokens"), sums.of("cache_read_tokens")
    share = read / prompt if prompt and read is not None else None
    return [
        sums.dollars("saved_usd"), sums.dollars("saved_by_reads_usd"), sums.dollars("spent_on_writes_usd"),
        sums.dollars("uncached_prompt_usd"), Cell(figures.ratio(share), word=share is None),
        sums.tokens("unpriced_tokens"),
    ]  # fmt: skip


def _dollars(amount: float | None) -> Cell:
    if amount is None:
        return Cell(figures.UNKNOWN, word=True)
    # What is left of a difference of equal sums is no money.
    rounded = 0.0 if abs(amount) < 1e-9 else amount
    return Cell(figures.money(rounded), title=figures.exact_money(rounded))


def _name(row: Record, by: str) -> Cell:
    """The name of a row; below it what it was priced as, where that is not simply its name."""
    name = str(row["name"] or f"no {BY[by].lower()}")
    priced = (row["priced_as"] or "").split(",")
    matches = set((row["price_match"] or "").split(",")) - {"exact", "none", ""}
    if by != "model" or not priced[0] or not matches:
        return Cell(name)
    more = f" and {len(priced) - _PRICED_AS} more" if len(priced) > _PRICED_AS else ""
    listed = ", ".join(priced[:_PRICED_AS]) + more
    return Cell(name, sub=f"priced as {listed} ({', '.join(sorted(matches))})")
