"""Usage at list prices: what it would cost, what the cache saved, what subscriptions are worth, what looks wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from state_ledger import questions
from state_ledger.errors import ParameterError
from state_ledger.pages import cost
from state_ledger.pages.asking import Answer, Ask
from state_ledger.pages.period import Period
from state_ledger.pages.sums import Record
from state_ledger.questions.parameters import ParameterSettings

BY = {"model": "Model", "day": "Day", "month": "Month", "source": "Source", "provider": "Provider",
      "profile": "Profile"}  # fmt: skip
"""What the tables are summed by."""

PRICES = {"day": "of the day of use", "now": "of today"}
"""Which list prices count; the first is the default."""

CHOSEN = ("by", "prices", "as_model", "as_provider")
"""The parameters of the page beside those of the cost page."""


@dataclass(frozen=True)
class Money:
    """What the page shows: an answer for each of its tables, and the price lists in force."""

    repriced: Answer
    savings: Answer
    subscription: Answer
    plausibility: Answer
    sources: str


def check(values: Mapping[str, str], settings: ParameterSettings) -> list[ParameterError]:
    """Every parameter of the page that cannot be meant, each with its reason."""
    wrong = cost.check(values, settings)
    for name, known in (("by", BY), ("prices", PRICES)):
        if values.get(name, "") not in ("", *known):
            wrong.append(ParameterError(name, values[name], f"choose one of {', '.join(known)}"))
    if values.get("as_provider") and not values.get("as_model"):
        wrong.append(ParameterError("as_provider", values["as_provider"], "name the model of that provider too"))
    return wrong


def read_money(ask: Ask, period: Period, values: Mapping[str, str]) -> Money:
    """Asks for the page. Raises ParameterError and OutOfTime as `Ask` does."""
    asked = {**period.parameters, **{name: values[name] for name in cost.FILTERS if values.get(name)}}
    chosen = {"by": values.get("by") or "model", "prices": values.get("prices") or next(iter(PRICES))}
    limit = {"limit": str(ask.settings.max_limit)}
    other = {name: values[name] for name in ("as_model", "as_provider") if values.get(name)}
    whole = {name: value for name, value in asked.items() if name in ("source", "model", "profile")}
    return Money(
        ask("repriced", {**asked, **chosen, **other, **limit}),
        ask("cache_savings", {**asked, **chosen, **limit}),
        ask("subscription_value", {**asked, **chosen, **limit}),
        ask("cost_plausibility", whole),
        ask.settings.price_book.sources,
    )


def total(rows: Sequence[Record], column: str) -> float | None:
    """The sum of a column over the rows that have it; None where none has."""
    known = [row[column] for row in rows if row[column] is not None]
    return fsum(known) if known else None


def same_question(answer: Answer, question: str) -> dict[str, str]:
    """The parameters of an answer, for links that ask the same again."""
    names = {parameter.name for parameter in questions.load()[question].parameters}
    return {name: value for name, value in answer.parameters.items() if name in names and name != "limit"}
