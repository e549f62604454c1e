"""What of a budget was used in the period that is running, and what it will be at this pace."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from state_ledger.budgets.budget import Budget
from state_ledger.ledger import days
from state_ledger.pages import figures

NEAR, OVER = 0.8, 1.0
"""The marks: shares of the budget from which it is nearly used up, and used up."""

DAY_RULE = "activity"
"""Which day usage falls on: that of the messages, an estimate (accounting rule 21), whatever pages show."""

QUESTION = "budget_days"

TOO_EARLY_S = {"day": 6 * 3600.0, "week": 86400.0, "month": 86400.0}
"""Before so much of the period has passed, its pace says nothing: no forecast."""

Answer = Callable[[str, Mapping[str, str]], Iterable[Mapping[str, Any]]]
"""Answers a canned query: name and parameters to rows."""


@dataclass(frozen=True)
class Spending:
    """A budget and what was used of it.

    since, until: first and last day of the period, ISO, in `zone`. used: dollars or processed tokens.
    actual, estimated: parts of the dollars by basis. unknown_calls, unknown_tokens: usage without a known
    price, which `used` does not have; then it is the least that was used. forecast: `used` at the end of the
    period, None when it is too early.
    """

    budget: Budget
    zone: str
    since: str
    until: str
    used: float
    actual: float
    estimated: float
    unknown_calls: float
    unknown_tokens: float
    forecast: float | None

    @property
    def share(self) -> float:
        """The part of the budget that was used; above 1 when it is over."""
        return self.used / self.budget.amount

    @property
    def mark(self) -> str:
        """`over` from 100 % on, `near` from 80 % on, else `within`."""
        return "over" if self.share >= OVER else "near" if self.share >= NEAR else "within"

    @property
    def at_least(self) -> bool:
        """Whether usage without a known price is missing from a figure in dollars."""
        return self.budget.unit == "usd" and bool(self.unknown_calls or self.unknown_tokens)

    @property
    def asked(self) -> dict[str, str]:
        """The parameters of `budget_days` that give the figure."""
        return {"since": self.since, "until": self.until, "tz": self.zone, "day_rule": DAY_RULE, **self.budget.filters}

    def amount(self, value: float) -> str:
        """A value in the unit of the budget."""
        return figures.money(value) if self.budget.unit == "usd" else f"{figures.short(value)} tokens"

    @property
    def figure(self) -> str:
        """`at least $84.12 of $200.00 (42.1 %)`."""
        least = "at least " if self.at_least else ""
        return f"{least}{self.amount(self.used)} of {self.amount(self.budget.amount)} ({figures.ratio(self.share)})"

    @property
    def outlook(self) -> str:
        """What it will be at this pace, or why that is not said."""
        if self.forecast is None:
            return "too early for a forecast"
        beyond = ", over" if self.forecast >= self.budget.amount > self.used else ""
        return f"{self.amount(self.forecast)} at this pace{beyond}"

    @property
    def left_out(self) -> str:
        """Usage that is in no dollar figure, or ''."""
        if not self.at_least:
            return ""
        if self.unknown_calls:
            return f"{figures.plural(self.unknown_calls, 'call')} of unknown cost not counted"
        return f"{figures.short(self.unknown_tokens)} tokens of unknown cost not counted"

    @property
    def sentence(self) -> str:
        """One sentence for a report."""
        more = f"; {self.left_out}" if self.left_out else ""
        state = {"over": "is used up", "near": "is nearly used up"}.get(self.mark, "is within bounds")
        return (
            f"The budget {self.budget.name} {state}: {self.figure} from {self.since} to {self.until},"
            f" {self.outlook}{more}."
        )

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "budget": self.budget.name,
            **{key: value for key, value in self.budget.mapping().items() if key != "name"},
            "zone": self.zone,
            "since": self.since,
            "until": self.until,
            "day_rule": DAY_RULE,
            "unit": self.budget.unit,
            "amount": self.budget.amount,
            "used": self.used,
            "share": self.share,
            "mark": self.mark,
            "at_least": self.at_least,
            "actual_usd": self.actual,
            "estimated_usd": self.estimated,
            "unknown_calls": self.unknown_calls,
            "unknown_tokens": self.unknown_tokens,
            "forecast": self.forecast,
        }


def read_spendings(
    answer: Answer, budgets: Sequence[Budget], path: str | Path, zone: str, *, now: float | None = None
) -> list[Spending]:
    """What was used of the budgets that are for a store, in the order given; one question per period and filter.

    now: epoch seconds, the present if None. Raises what `answer` does.
    """
    now = time.time() if now is None else now
    known: dict[tuple[tuple[str, str], ...], list[Mapping[str, Any]]] = {}
    found = []
    for budget in budgets:
        if not budget.is_for(path):
            continue
        first, last = period_of(budget.per, days.today(zone, now))
        asked = {"since": first, "until": last, "tz": zone, "day_rule": DAY_RULE, **budget.filters}
        key = tuple(sorted(asked.items()))
        if key not in known:
            known[key] = list(answer(QUESTION, asked))
        found.append(_spending(budget, zone, first, last, known[key], now))
    return found


def period_of(per: str, day: date) -> tuple[str, str]:
    """The first and last day, ISO, of the day, the week from Monday or the month that a day is in."""
    if per == "week":
        first = day - timedelta(days=day.weekday())
        last = first + timedelta(days=6)
    elif per == "month":
        first = day.replace(day=1)
        last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    else:
        first = last = day
    return first.isoformat(), last.isoformat()


def forecast(used: float, per: str, start: float, end: float, now: float) -> float | None:
    """`used` + its pace from the start of the period until now, over the rest of the period; None when too early.

    start, end, now: epoch seconds, so that a day of 23 or 25 hours counts as what it is.
    """
    passed = min(now, end) - start
    if passed < TOO_EARLY_S[per]:
        return None
    return used + used / passed * max(end - now, 0.0)


def _spending(
    budget: Budget, zone: str, first: str, last: str, rows: Sequence[Mapping[str, Any]], now: float
) -> Spending:
    def total(name: str) -> float:
        return math.fsum(row[name] for row in rows if row[name] is not None)

    used = total("cost_usd" if budget.unit == "usd" else "processed_tokens")
    ahead = forecast(used, budget.per, days.day_start(first, zone), days.day_end(last, zone), now)
    return Spending(
        budget, zone, first, last, used, total("actual_usd"), total("estimated_usd"), total("unknown_calls"),
        total("unknown_tokens"), ahead,
    )  # fmt: skip
