"""One budget: an amount, a period, and what it is for; read from settings or from a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from state_ledger.errors import StateLedgerError
from state_ledger.stores import answers_to

PERIODS = ("day", "week", "month")
"""Calendar days, weeks from Monday, and calendar months of the zone in force."""

FILTERS = ("profile", "source", "model", "cron_job")
"""What a budget can be narrowed to, by the parameter of the question that answers it."""

KEYS = ("name", "per", "usd", "tokens", "store", *FILTERS)

_TEXT = re.compile(r"\$?(?P<amount>[0-9]+(?:\.[0-9]+)?)\s*(?P<tokens>tokens)?\s*/\s*(?P<per>[a-z]+)", re.IGNORECASE)


class WrongBudget(StateLedgerError):
    """A budget that cannot be meant. key: what of it, '' for all of it; at: which one of a list, from 1, or None."""

    def __init__(self, value: object, allowed: str, *, key: str = "", at: int | None = None) -> None:
        super().__init__(f"The budget {value!r} cannot be used: {key or 'it'} must be {allowed}.")
        self.value = value
        self.allowed = allowed
        self.key = key
        self.at = at


@dataclass(frozen=True)
class Budget:
    """What may be used in a period.

    per: one of `PERIODS`. unit: `usd` (dollars) or `tokens` (processed: input, output, cache reads and writes).
    store: the name or path of a store, '' for every store by itself. filters: values of `FILTERS`.
    """

    per: str
    amount: float
    unit: str = "usd"
    given_name: str = ""
    store: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name it was given, else what it is."""
        if self.given_name:
            return self.given_name
        what = [f"{key.replace('_', ' ')} {value}" for key, value in self.filters.items()]
        what += [f"store {self.store}"] if self.store else []
        kind = " in tokens" if self.unit == "tokens" else ""
        return f"{', '.join(what) or 'all'} per {self.per}{kind}"

    def is_for(self, path: str | Path) -> bool:
        """Whether it is about the store at a path."""
        return not self.store or answers_to(path, self.store)

    def mapping(self) -> dict[str, Any]:
        """As settings have it."""
        kept = {"name": self.given_name, "per": self.per, self.unit: self.amount, "store": self.store, **self.filters}
        return {key: value for key, value in kept.items() if value != ""}


def as_budgets(given: object) -> tuple[Budget, ...]:
    """The budgets of the setting `budgets`: a list of mappings or of texts. Raises WrongBudget."""
    entries = [given] if isinstance(given, (str, Mapping)) else given
    if not isinstance(entries, (list, tuple)):
        raise WrongBudget(given, "a list of budgets, each with per and usd or tokens")
    found = []
    for number, entry in enumerate(entries, start=1):
        try:
            found.append(parse_budget(entry) if isinstance(entry, str) else _of_mapping(entry))
            distinct(found)
        except WrongBudget as wrong:
            raise WrongBudget(wrong.value, wrong.allowed, key=wrong.key, at=number) from None
    return tuple(found)


def parse_budget(text: str) -> Budget:
    """A budget as a command line has it: `50/month`, `5/day,source=cron`, `2000000 tokens/week,name=Reading`.

    Raises WrongBudget.
    """
    first, *rest = [part.strip() for part in text.split(",")]
    match = _TEXT.fullmatch(first)
    if match is None:
        raise WrongBudget(text, f"like 50/month or 5/day,source=cron; after the comma one of {', '.join(_NAMED)}")
    unit = "tokens" if match["tokens"] else "usd"
    given: dict[str, Any] = {"per": match["per"].lower(), unit: float(match["amount"])}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in _NAMED or not value.strip():
            raise WrongBudget(text, f"like 50/month or 5/day,source=cron; after the comma one of {', '.join(_NAMED)}")
        given[key.strip()] = value.strip()
    return _of_mapping(given)


_NAMED = ("name", "store", *FILTERS)


def distinct(budgets: Iterable[Budget]) -> tuple[Budget, ...]:
    """Budgets without repetition. Raises WrongBudget for two that differ and have one name."""
    kept: dict[str, Budget] = {}
    for budget in budgets:
        if kept.setdefault(budget.name, budget) != budget:
            raise WrongBudget(budget.mapping(), "different from the others in its name", key="name")
    return tuple(kept.values())


def _of_mapping(given: object) -> Budget:
    if not isinstance(given, Mapping):
        raise WrongBudget(given, "a mapping with per and usd or tokens, or a text like 50/month")
    for key in given:
        if key not in KEYS:
            raise WrongBudget(given[key], f"left out: a budget has {', '.join(KEYS)}", key=str(key))
    if given.get("per") not in PERIODS:
        raise WrongBudget(given.get("per"), f"one of {', '.join(PERIODS)}", key="per")
    units = [unit for unit in ("usd", "tokens") if given.get(unit) is not None]
    if len(units) != 1:
        raise WrongBudget(dict(given), "a mapping with either usd or tokens")
    texts = {key: _text(key, given.get(key)) for key in _NAMED}
    return Budget(
        str(given["per"]), _amount(units[0], given[units[0]]), units[0], texts["name"], texts["store"],
        {key: texts[key] for key in FILTERS if texts[key]},
    )  # fmt: skip


def _amount(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e15:
        raise WrongBudget(value, "a number above 0", key=key)
    return float(value)


def _text(key: str, value: object) -> str:
    if value is None:
        return ""
    text = str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    if not text or "\x00" in text:
        raise WrongBudget(value, "text", key=key)
    return text
