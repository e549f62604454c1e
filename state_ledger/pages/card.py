"""What the index shows of one store: cheap enough to be asked of every store on one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from state_ledger.pages import attention
from state_ledger.pages.asking import Ask
from state_ledger.pages.attention import Notice
from state_ledger.pages.daily import daily
from state_ledger.pages.home import Overview, overview_of, periods
from state_ledger.pages.sums import Sums, left_out
from state_ledger.shape import Shape


@dataclass(frozen=True)
class Card:
    """One store: the whole of it, the last 30 days, and their cost day by day (None: not known)."""

    overview: Overview
    sums: Sums
    by_day: list[float | None]
    notices: list[Notice]
    asked: Mapping[str, str]


def read_card(ask: Ask, shape: Shape) -> Card:
    """Two questions: the sessions of the store, and the cost of 30 days by day and model."""
    zone, day_rule = ask.settings.zone_name, ask.settings.day_rule
    recent = periods(zone)[1]
    asked = {**recent.parameters, "tz": zone, "day_rule": day_rule}
    usage = ask("cost_per_day_and_model", asked).rows
    days = daily(usage, recent.days)
    sums = Sums.of(usage)
    notices = []
    unpriced = left_out(sums.unknown_calls, sums.unknown_tokens)
    if unpriced:
        notices.append(Notice(unpriced, question="unpriced_usage", parameters=asked))
    notices += attention.of_shape(shape)
    by_day = [days.sums(day).cost_usd if days.sums(day).rows else 0.0 for day in days.days]
    return Card(overview_of(ask("sessions_per_source").rows), sums, by_day, notices, asked)
