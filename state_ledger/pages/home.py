"""The home of a store: this month and the last 30 days, what cost most, what needs attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from state_ledger.budgets.spending import Spending, read_spendings
from state_ledger.errors import StateLedgerError
from state_ledger.ledger.days import today
from state_ledger.pages import attention
from state_ledger.pages.asking import Ask
from state_ledger.pages.attention import Notice
from state_ledger.pages.daily import Daily, daily
from state_ledger.pages.period import Period, presets
from state_ledger.pages.sums import Record, Sums
from state_ledger.shape import Shape

TOP = 5


@dataclass(frozen=True)
class PeriodFigures:
    """One period's sums, sessions active in it and messages stored in it."""

    period: Period
    sums: Sums
    sessions: int
    messages: int


@dataclass(frozen=True)
class Overview:
    """The whole store: its sessions and the last activity, epoch seconds or None."""

    sessions: int
    open_sessions: int
    last_active: float | None


@dataclass(frozen=True)
class Home:
    """Everything the page shows. `asked` are the common parameters of its 30-day figures."""

    overview: Overview
    month: PeriodFigures
    recent: PeriodFigures
    daily: Daily
    work: Sequence[Record]
    notices: list[Notice]
    asked: Mapping[str, str]
    late: list[str]
    budgets: list[Spending]


def overview_of(rows: Sequence[Record]) -> Overview:
    """Sessions and last activity of the store, from the rows of `sessions_per_source`."""
    return Overview(
        sum(row["sessions"] or 0 for row in rows),
        sum(row["open_sessions"] or 0 for row in rows),
        max((row["last_active"] for row in rows if row["last_active"] is not None), default=None),
    )


def periods(zone: str) -> tuple[Period, Period]:
    """This month and the last 30 days, as of now in a zone."""
    known = {period.key: period for period in presets(today(zone))}
    return known["this-month"], known["30d"]


def read_home(ask: Ask, shape: Shape | None, path: Path | None = None) -> Home:
    """Asks everything for the home page on one connection; `shape` is that of the file, None for several stores.

    path: where the store is, for budgets that name one.

    Both periods are read with one question that spans them. What runs out of time is named in
    `late` and left out; the rest of the page stands.
    """
    zone, day_rule = ask.settings.zone_name, ask.settings.day_rule
    month, recent = periods(zone)
    common = {"tz": zone, "day_rule": day_rule}
    spanning = {"since": min(month.since, recent.since), "until": recent.until, **common}
    asked = {**recent.parameters, **common}
    late: list[str] = []

    def rows(name: str, parameters: Mapping[str, str] | None = None) -> Sequence[Record]:
        try:
            return ask(name, parameters).rows
        except StateLedgerError as error:
            late.append(str(error))
            return []

    usage = rows("cost_per_day_and_model", spanning)

    def figures_of(period: Period) -> PeriodFigures:
        within = [r for r in usage if r["day"] is not None and period.since <= r["day"] <= period.until]
        active = rows("activity_summary", {**period.parameters, "tz": zone})
        first = active[0] if active else {"sessions": 0, "messages": 0}
        return PeriodFigures(period, Sums.of(within), first["sessions"], first["messages"])

    budgets = ask.settings.budgets
    spendings = read_spendings(rows, budgets, path, zone) if budgets and path is not None else []
    open_limit = 100
    notices = [
        *attention.of_budgets(spendings),
        *attention.of_unpriced(rows("unpriced_usage", asked), asked),
        *attention.of_audit(rows("ledger_problems")),
        *attention.of_lineage(rows("lineage_problems")),
        *attention.of_open_sessions(rows("open_idle_sessions", {"limit": str(open_limit)}), open_limit),
        *(attention.of_shape(shape) if shape is not None else ()),
    ]
    return Home(
        overview=overview_of(rows("sessions_per_source")),
        month=figures_of(month),
        recent=figures_of(recent),
        daily=daily(usage, recent.days),
        work=rows("top_work", {**asked, "limit": str(TOP)}),
        notices=notices,
        asked=asked,
        late=late,
        budgets=spendings,
    )
