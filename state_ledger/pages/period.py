"""Periods of whole calendar days in a named zone (accounting.md rule 20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from state_ledger.pages import figures

PRESETS = ("7d", "30d", "90d", "this-month", "last-month", "all")
"""The keys of the periods that a page offers."""


@dataclass(frozen=True)
class Period:
    """From `since` to `until`, both dates inclusive, ISO text; an empty end is open.

    `key` names a preset (`30d`, `this-month`, …) and is empty for a period of the reader's own.
    """

    since: str
    until: str
    label: str
    key: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        """The period as common parameters of a question; open ends are left out."""
        return {
            name: value for name, value in (("since", self.since), ("until", self.until)) if value
        }  # fmt: skip

    @property
    def days(self) -> list[str]:
        """Every day of a period that is closed on both sides, in order; empty for an open one."""
        if not (self.since and self.until):
            return []
        first, last = date.fromisoformat(self.since), date.fromisoformat(self.until)
        return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]


def presets(now: date) -> list[Period]:
    """The periods that a page offers as links: last 7, 30 and 90 days, this and last month, all.

    "Last 7 days" are seven calendar days that end with `now`.
    """
    first = now.replace(day=1)
    last_of_previous = first - timedelta(days=1)
    until = now.isoformat()
    return [
        *(
            Period((now - timedelta(days=n - 1)).isoformat(), until, f"Last {n} days", f"{n}d")
            for n in (7, 30, 90)
        ),
        Period(first.isoformat(), until, "This month", "this-month"),
        Period(
            last_of_previous.replace(day=1).isoformat(), last_of_previous.isoformat(),
            "Last month", "last-month",
        ),
        Period("", "", "All time", "all"),
    ]  # fmt: skip


def chosen(parameters: Mapping[str, str], now: date) -> Period:
    """The period that a page's URL asks for: `since`/`until`, else `period`, else the last 30 days.

    Dates that are no dates are kept as they are: the question that gets them refuses them by name.
    """
    since, until = parameters.get("since", "").strip(), parameters.get("until", "").strip()
    if since or until:
        for period in presets(now):
            if (period.since, period.until) == (since, until):
                return period
        return Period(since, until, spelled(since, until))
    known = {period.key: period for period in presets(now)}
    return known.get(parameters.get("period", "").strip(), known["30d"])


def spelled(since: str, until: str) -> str:
    """Two ISO dates, either of which may be empty, in words: `1 Nov 2026 to 3 Nov 2026`."""
    first, last = figures.day(since, year=True), figures.day(until, year=True)
    if since and until:
        return first if since == until else f"{first} to {last}"
    return f"since {first}" if since else f"until {last}"
