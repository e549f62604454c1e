"""What was used of the budgets of a store, as findings and as samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from state_ledger import questions
from state_ledger.budgets.spending import Spending, read_spendings
from state_ledger.health.finding import Finding
from state_ledger.health.patient import Patient

SEVERITIES = {"over": "warning", "near": "note", "within": "ok"}


def spendings(patient: Patient) -> list[Spending]:
    """What was used of each budget that is for the store. Raises sqlite3.DatabaseError if it cannot be read."""

    def answer(name: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
        return questions.ask(patient.connection, name, asked, settings=patient.settings).records()

    settings = patient.settings
    return read_spendings(answer, settings.budgets, patient.path, settings.zone_name) if settings.budgets else []


def findings(told: Sequence[Spending]) -> Iterator[Finding]:
    """One finding for each budget: a warning when it is used up, a note from 80 % on or when its pace leads over."""
    for each in told:
        ahead = each.forecast is not None and each.forecast >= each.budget.amount
        severity = "note" if ahead and each.mark == "within" else SEVERITIES[each.mark]
        yield Finding(f"budget:{each.budget.name}", severity, each.sentence, figures=each.record())


def values(told: Sequence[Spending]) -> Iterator[tuple[str, tuple[tuple[str, str], ...], float]]:
    """Metric, labels and value of each figure of the budgets."""
    for each in told:
        labels = (("budget", each.budget.name), ("per", each.budget.per), ("unit", each.budget.unit))
        yield "state_ledger_budget_amount", labels, each.budget.amount
        yield "state_ledger_budget_used", labels, each.used
        yield "state_ledger_budget_unknown_calls", labels, each.unknown_calls
        if each.forecast is not None:
            yield "state_ledger_budget_forecast", labels, each.forecast
