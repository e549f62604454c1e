"""A bill compared with the books, by day and model, and the sessions that explain a difference."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from math import fsum
from typing import Any

from state_ledger.bills.bill import NO_MODEL, Bill
from state_ledger.errors import StateLedgerError
from state_ledger.questions import Result

Answers = Callable[[str, Mapping[str, str]], Result]
"""Asks a named question with parameters."""

CENT = 0.005
"""Below half a cent there is no difference."""


class TooMuch(StateLedgerError):
    """The books have more days and models in the time of a bill than one answer holds."""


@dataclass(frozen=True)
class Row:
    """One day and model, or one model, or all: dollars billed and booked, None where one side has nothing.

    unknown_calls, included_calls, sessions: what the books know of it besides dollars.
    """

    day: str
    model: str
    billed: float | None
    booked: float | None
    sessions: int = 0
    unknown_calls: float = 0
    included_calls: float = 0

    @property
    def difference(self) -> float:
        """Billed less booked."""
        return (self.billed or 0.0) - (self.booked or 0.0)

    @property
    def differs(self) -> bool:
        return abs(self.difference) >= CENT

    @property
    def why(self) -> str:
        """What the books know of a difference; '' where there is none or nothing is known."""
        if self.model == NO_MODEL:
            return "the bill names no model: fees, credits or taxes"
        if not self.sessions:
            return "the books have no usage of this model on this day"
        said = []
        if self.billed is None:
            said.append("not on the bill")
        if self.unknown_calls:
            said.append(f"{self.unknown_calls:,.0f} calls without a known price")
        if self.included_calls:
            said.append(f"{self.included_calls:,.0f} calls that a subscription covers")
        return "; ".join(said) if self.differs or self.billed is None else ""


@dataclass(frozen=True)
class Comparison:
    """A bill beside the books.

    rows: every day and model of either side. models: the same by model, most different first.
    asked: the parameters as they were understood.
    """

    bill: Bill
    rows: Sequence[Row]
    models: Sequence[Row]
    total: Row
    asked: Mapping[str, str]

    @property
    def largest(self) -> list[Row]:
        """The rows that differ, most different first."""
        return sorted((row for row in self.rows if row.differs), key=lambda row: (-abs(row.difference), row.day))

    def billed_as(self, model: str) -> str:
        """The names of a model on the bill, '' where it is the books' own."""
        return ", ".join(sorted(self.bill.spelled.get(model, set()) - {model, ""}))

    def explained_by(self, row: Row, ask: Answers, most: int) -> Sequence[Mapping[str, Any]]:
        """The sessions behind a row, dearest first: records of the question `cost_sessions`."""
        if not row.sessions:
            return []
        return ask("cost_sessions", {**self.behind(row), "limit": str(most)}).records()

    def behind(self, row: Row) -> dict[str, str]:
        """The parameters that select the sessions behind a row."""
        same = {name: self.asked[name] for name in ("tz", "day_rule", "provider") if self.asked.get(name)}
        return {**same, "since": row.day, "until": row.day, "model": row.model}


def compare(bill: Bill, ask: Answers, *, tz: str, day_rule: str = "", provider: str = "", limit: int) -> Comparison:
    """Lays a bill beside the books of its days.

    tz must be the zone that the bill was read with. limit: the most days and models of the books.
    Raises TooMuch, and ParameterError as the question does.
    """
    asked = {"since": bill.first_day, "until": bill.last_day, "tz": tz, "day_rule": day_rule, "provider": provider,
             "limit": str(limit)}  # fmt: skip
    answer = ask("reconcile", asked)
    if answer.truncated:
        raise TooMuch(
            f"The books have more than {limit:,} days and models from {bill.first_day} to {bill.last_day}: compare a"
            " shorter bill, or raise the setting max_limit."
        )
    booked = {(record["day"], record["model"]): record for record in answer.records()}
    bill = bill.renamed(same_models({model for _day, model in bill.amounts}, {model for _day, model in booked}))
    rows = [_row(key, bill.amounts.get(key), booked.get(key)) for key in sorted({*bill.amounts, *booked})]
    by_model: dict[str, list[Row]] = {}
    for row in rows:
        by_model.setdefault(row.model, []).append(row)
    models = [_sum("", model, of) for model, of in by_model.items()]
    models.sort(key=lambda row: (-abs(row.difference), row.model))
    return Comparison(bill, rows, models, _sum("", "", rows), answer.parameters)


def same_models(billed: Set[str], booked: Set[str]) -> dict[str, str]:
    """The books' names of models that a bill spells in its own way; only where there is no doubt.

    `claude-4.5-sonnet` and `Claude Sonnet 4.5` are `claude-sonnet-4-5`: the same words in any order, the same
    numbers in the same order.
    """
    known: dict[str, list[str]] = {}
    for model in booked:
        known.setdefault(_words(model), []).append(model)
    found = {model: known.get(_words(model), []) for model in billed - booked - {NO_MODEL}}
    return {model: names[0] for model, names in found.items() if len(names) == 1}


def _words(model: str) -> str:
    parts = re.findall(r"[^\W_]+", model.lower())
    words, numbers = sorted(part for part in parts if not part.isdigit()), [part for part in parts if part.isdigit()]
    return " ".join([*words, *numbers])


def _row(key: tuple[str, str], amount: Decimal | None, record: Mapping[str, Any] | None) -> Row:
    billed = None if amount is None else float(amount)
    if record is None:
        return Row(*key, billed, None)
    unknown, included = record["unknown_calls"] or 0, record["included_calls"] or 0
    return Row(*key, billed, record["cost_usd"], record["sessions"], unknown, included)


def _sum(day: str, model: str, rows: Sequence[Row]) -> Row:
    def total(amounts: list[float | None]) -> float | None:
        known = [amount for amount in amounts if amount is not None]
        return fsum(known) if known else None

    return Row(
        day, model, total([row.billed for row in rows]), total([row.booked for row in rows]),
        sum(row.sessions for row in rows), sum(row.unknown_calls for row in rows),
        sum(row.included_calls for row in rows),
    )  # fmt: skip
