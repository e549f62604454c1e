"""Cost per day, stacked by model: rows of one question as the bars of a chart and a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from state_ledger.pages.charts import SERIES, Bar, Segment
from state_ledger.pages.sums import Record, Sums, left_out

OTHER = "other models"

Linked = Callable[[str, str], str]
"""The address of the sessions of a day and a model; an empty model means all of that day."""


@dataclass(frozen=True)
class Daily:
    """Days in order, with the models that have a colour of their own (most expensive first)."""

    days: list[str]
    models: list[str]
    by_day: dict[str, list[Record]]
    has_others: bool

    @property
    def legend(self) -> list[tuple[str, int | None]]:
        """Names with the number of their colour, for the legend of the chart; none without bars."""
        if not any(self.sums(day).cost_usd for day in self.days):
            return []
        named: list[tuple[str, int | None]] = [(name, n) for n, name in enumerate(self.models)]
        return [*named, (OTHER, None)] if self.has_others else named

    @property
    def has_unknown(self) -> bool:
        """Whether any day has calls of unknown cost."""
        return any(row.get("unknown_tokens") for rows in self.by_day.values() for row in rows)

    def sums(self, day: str) -> Sums:
        """The sums of one day."""
        return Sums.of(self.by_day.get(day, ()))

    def bars(self, link: Linked) -> list[Bar]:
        """One bar per day; days without usage are empty bars, so that time stays to scale."""
        return [self._bar(day, link) for day in self.days]

    def _bar(self, day: str, link: Linked) -> Bar:
        rows = self.by_day.get(day, [])
        if not rows:
            return Bar(day)
        by_model = {str(row["model"]): row["cost_usd"] for row in rows}
        segments = [
            Segment(name, by_model[name], number, link(day, name))
            for number, name in enumerate(self.models)
            if name in by_model
        ]
        others = [cost for name, cost in by_model.items() if name not in self.models]
        if others:
            known = [cost for cost in others if cost is not None]
            segments.append(Segment(OTHER, sum(known) if known else None, None, link(day, "")))
        sums = Sums.of(rows)
        return Bar(day, segments, link(day, ""), left_out(sums.unknown_calls, sums.unknown_tokens))


def daily(records: Sequence[Record], days: Sequence[str] = ()) -> Daily:
    """Groups rows of `day`, `model`, `cost_usd`, … ; `days` are the days to show.

    Without `days` (an open period) the days run from the first to the last one with usage. Rows
    that have no day (nothing tells when they happened) are in no bar.
    """
    by_day: dict[str, list[Record]] = defaultdict(list)
    cost: dict[str, float] = defaultdict(float)
    for row in records:
        if row["day"] is None:
            continue
        by_day[str(row["day"])].append(row)
        cost[str(row["model"])] += row["cost_usd"] or 0.0
    # The name decides between equals, so that a reload does not swap colours.
    ranked = sorted(cost, key=lambda name: (-cost[name], name))
    shown = list(days) or _span(by_day)
    return Daily(shown, ranked[:SERIES], dict(by_day), len(ranked) > SERIES)


def _span(by_day: dict[str, list[Record]]) -> list[str]:
    if not by_day:
        return []
    first, last = date.fromisoformat(min(by_day)), date.fromisoformat(max(by_day))
    return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
