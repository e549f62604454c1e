"""`/<store>`: the home of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response
from markupsafe import Markup

from state_ledger import questions
from state_ledger.errors import StateLedgerError
from state_ledger.health import checkup
from state_ledger.pages import attention, budget_bars, charts, figures, provenance, tables
from state_ledger.pages.asking import Ask
from state_ledger.pages.attention import Notice
from state_ledger.pages.home import Home, PeriodFigures, read_home
from state_ledger.pages.links import Links
from state_ledger.pages.sums import Record, cost_text
from state_ledger.pages.tables import Cell, Column
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page

if TYPE_CHECKING:
    from datasette.app import Datasette

GROUPS = {
    "cost": "Cost", "cache": "Cache", "lineage": "Lineage", "activity": "Activity", "search": "Search",
    "ops": "Operations", "stores": "Stores",
}  # fmt: skip


async def home_page(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    state = registry(datasette).stores[name]
    settings = registry(datasette).settings

    def look(ask: Ask) -> tuple[Home, list[Notice]]:
        home = read_home(ask, state.shape, state.store.path)
        try:
            return home, attention.of_findings(checkup.glance_at_file(state.patient(ask.connection, settings)))
        except (OSError, StateLedgerError):  # gone from its place; what is open is read all the same
            return home, []

    at = page.links(datasette, name)
    live = page.live(datasette, [name], at)
    home, of_file = await page.read(datasette, name, look)
    of_file += [Notice("A canned query cannot be used", said) for said in questions.malformed()]
    zone = settings.zone_name
    context = {
        "facts": page.store_facts(state, home.overview.sessions, home.overview.last_active, zone),
        "plain": at.plain,
        **shown(home, at, questions.load(), of_file),
    }
    return await page.respond(
        datasette, request, "ledger_home.html", context, title=name, store=name, section="home", live=live
    )


def shown(
    home: Home, at: Links, known: Mapping[str, questions.Question], of_file: Sequence[Notice] = ()
) -> dict[str, Any]:
    """What a home shows of one store or of several as one; `known` are the questions that it offers.

    of_file: what is wrong with the file of the one store.
    """
    return {
        "late": home.late,
        "periods": [_period(home.month, home, at), _period(home.recent, home, at)],
        "budgets": [{"line": line, "bar": Markup(line.bar)} for line in budget_bars.lines(home.budgets, at)],
        "zone": home.asked["tz"],
        "daily": _daily(home, at),
        "work": _work(home, at),
        "attention": [page.linked(notice, at) for notice in (*of_file, *home.notices)],
        "groups": _groups(at, known),
    }


def _period(part: PeriodFigures, home: Home, at: Links) -> dict[str, Any]:
    asked = {**home.asked, **part.period.parameters}
    return {
        "label": part.period.label,
        "dates": page.dates(part.period),
        "sums": part.sums,
        "exact": figures.exact_money(part.sums.cost_usd),
        "unpriced": at.query("unpriced_usage", asked),
        "cost": at.cost({"period": part.period.key}),
        "figures": [
            *page.sum_figures(part.sums),
            ("Sessions active", figures.count(part.sessions), False),
            ("Messages", figures.count(part.messages), False),
        ],
    }


def _daily(home: Home, at: Links) -> dict[str, Any]:
    def link(day: str, model: str) -> str:
        return at.sessions({**home.asked, "since": day, "until": day, "model": model})

    said = provenance.basis(home.asked["tz"], home.asked["day_rule"])
    rows = []
    for day in reversed(home.daily.days):
        sums = home.daily.sums(day)
        cost = Cell(sums.cost_text, title=figures.exact_money(sums.cost_usd), word=sums.cost_is_word)
        rows.append(
            [Cell(day, link(day, "") if sums.rows else ""), cost,
             Cell(figures.count(sums.unknown_calls or 0)),
             Cell(figures.ratio(sums.cache_read_ratio), word=sums.cache_read_ratio is None)]
        )  # fmt: skip
    columns = [Column("Day"), Column("Cost", True), Column("Unknown calls", True), Column("Cache read", True)]
    ring = "calls of unknown cost, not in the bar" if home.daily.has_unknown else ""
    return {
        "all_days": at.cost({"period": "all", "group": "day"}),
        "dates": page.dates(home.recent.period),
        "legend": Markup(charts.legend(home.daily.legend, ring=ring)),
        "chart": Markup(
            charts.stacked_bars(
                home.daily.bars(link), name="daily-chart", title="Cost per day by model",
                description=f"Stacked bars, one per day, in dollars. {said} The table below has the same.",
            )
        ),
        "table": Markup(tables.table("Cost per day, newest first", columns, rows, name="daily-table")),
        "provenance": Markup(provenance.line(said, at, "cost_per_day_and_model", home.asked)),
    }  # fmt: skip


def _work(home: Home, at: Links) -> dict[str, Any]:
    columns = [Column("Work"), Column("Cost", True), Column("Calls", True), Column("Cache read", True)]
    said = f"A conversation and all its delegates. {provenance.basis(home.asked['tz'], home.asked['day_rule'])}"
    asked = {**home.asked, "limit": str(len(home.work) or 5)}
    return {
        "dates": page.dates(home.recent.period),
        "table": Markup(
            tables.table("Cost that falls in the period", columns, [_work_row(row, at) for row in home.work],
                         name="work-table")
        ) if home.work else Markup('<p class="all-well">No usage in this period.</p>'),
        "provenance": Markup(provenance.line(said, at, "top_work", asked)),
    }  # fmt: skip


def _work_row(row: Record, at: Links) -> list[Cell]:
    cost = cost_text(row["cost_usd"], row["included_calls"], row["unknown_calls"] or row["unknown_tokens"])
    sub = [figures.plural(row["sessions"], "session")]
    if row["delegates"]:
        sub.append(figures.plural(row["delegates"], "delegate"))
    if row["source"]:
        sub.append(str(row["source"]))
    ratio = row["cache_read_ratio"]
    return [
        Cell(str(row["title"] or row["work_id"]), at.work(str(row["work_id"])),
             title=str(row["work_id"]), sub=" · ".join(sub)),
        Cell(cost, title=figures.exact_money(row["cost_usd"]), word=not cost.startswith("$")),
        Cell(figures.count(row["api_call_count"]), word=row["api_call_count"] is None),
        Cell(figures.ratio(ratio), word=ratio is None),
    ]  # fmt: skip


def _groups(at: Links, known: Mapping[str, questions.Question]) -> list[dict[str, Any]]:
    by_group: dict[str, list[dict[str, str]]] = {name: [] for name in GROUPS}
    for question in known.values():
        by_group.setdefault(question.group, []).append(
            {"href": at.query(question.name), "label": question.title, "title": question.description}
        )
    return [
        {"title": GROUPS.get(name, name.capitalize()), "links": links}
        for name, links in by_group.items()
        if links
    ]  # fmt: skip
