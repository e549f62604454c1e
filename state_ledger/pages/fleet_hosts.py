"""The hosts of a fleet, or the stores of one host: what they cost, how much they hold, when they were pushed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from state_ledger.errors import StateLedgerError
from state_ledger.pages import figures, provenance, tables
from state_ledger.pages.asking import Ask
from state_ledger.pages.attention import Notice
from state_ledger.pages.links import FleetLinks
from state_ledger.pages.sums import Record, Sums
from state_ledger.pages.tables import Cell, Column

SHOWN = 100
"""How many hosts or stores the home lists: those that cost most."""

STALE_S = 2 * 86_400.0
"""Seconds without a push after which a host is named: a push each day may fail once."""


@dataclass(frozen=True)
class Kind:
    """What a row of the table is: a host, or a store of the one host that is shown.

    listed: the question that lists them; spent: the question of what they cost; column: what names them in both.
    """

    one: str
    listed: str
    spent: str
    column: str


HOSTS = Kind("host", "hosts", "cost_per_host", "host")
STORES = Kind("store", "pushes", "cost_per_store", "store")


def kind_of(hosts: Sequence[str]) -> Kind:
    """What is listed where these hosts are shown."""
    return STORES if len(set(hosts)) == 1 else HOSTS


def read(ask: Ask, asked: Mapping[str, str], kind: Kind) -> list[Record]:
    """Every host or store with what it cost in a period as `sums`; the most expensive first.

    Where it is not answered in time there are none, and the figures of the page say so.
    """
    most = str(ask.settings.max_limit)
    try:
        spent = {row[kind.column]: row for row in ask(kind.spent, {**asked, "limit": most}).rows}
        rows = [{**row, "sums": spent.get(row[kind.column])} for row in ask(kind.listed, {"limit": most}).rows]
    except StateLedgerError:
        return []
    return sorted(rows, key=lambda row: (-((row["sums"] or {}).get("cost_usd") or 0.0), str(row[kind.column])))


def table(rows: Sequence[Record], kind: Kind, narrowed: Callable[[str], str], zone: str) -> str:
    """The table. narrowed: the address of the home of one row alone."""
    if not rows:
        return f'<p class="all-well">The {kind.one}s cannot be listed now: none was read, or not in time.</p>'
    columns = [Column(kind.one.capitalize()), Column("Cost", True), Column("Cache read", True),
               Column("Sessions", True), Column("Last activity"), Column("Last push")]  # fmt: skip
    cells = [_row(row, kind, narrowed(str(row[kind.column])), zone) for row in rows[:SHOWN]]
    said = f"Cost of the last 30 days; all sessions of each {kind.one}"
    if len(rows) > SHOWN:
        said += f"; the {SHOWN} of {len(rows):,} that cost most"
    return tables.table(said, columns, cells, name="hosts-table")


def line(asked: Mapping[str, str], kind: Kind, at: FleetLinks) -> str:
    """The provenance of the table."""
    return provenance.line(provenance.basis(asked["tz"], asked["day_rule"]), at, kind.spent, asked)


def stale(pushed: Mapping[str, float], now: float | None = None) -> list[Notice]:
    """Stores that were not pushed for long. pushed: the moment of the last push by name, epoch seconds."""
    at = time.time() if now is None else now
    late = sorted((moment, name) for name, moment in pushed.items() if at - moment > STALE_S)
    if not late:
        return []
    named = ", ".join(name for _, name in late[:3]) + (f" and {len(late) - 3:,} more" if len(late) > 3 else "")
    oldest = figures.ago(at - late[0][0])
    said = f"{figures.plural(len(late), 'store')} not pushed for two days or more"
    return [Notice(said, f"{named}; {late[0][1]} was pushed {oldest}", "pushes")]


def _row(row: Record, kind: Kind, href: str, zone: str) -> list[Cell]:
    sums = Sums.of([row["sums"]] if row["sums"] else [])
    cost = sums.cost_text if row["sums"] else "none"
    sub = figures.plural(row["stores"], "store") if kind is HOSTS else f"profile {row['profile']}"
    pushed = row["oldest_push"] if kind is HOSTS else row["pushed_at"]
    since_s = time.time() - pushed
    ratio = sums.cache_read_ratio
    return [
        Cell(str(row[kind.column]), href, sub=sub),
        Cell(cost, title=figures.exact_money(sums.cost_usd) if row["sums"] else "", word=not cost.startswith("$")),
        Cell(figures.ratio(ratio), word=ratio is None),
        Cell(figures.count(row["sessions"])),
        Cell(figures.moment(row["last_active"], zone)),
        Cell(figures.ago(since_s), title=figures.moment(pushed, zone), word=since_s > STALE_S),
    ]
