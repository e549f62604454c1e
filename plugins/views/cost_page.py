"""`/<store>/-/cost`: what a period cost, by model, day, source, task, profile, conversation, …"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from datasette.utils.asgi import Response
from markupsafe import Markup

from state_ledger.errors import ParameterError
from state_ledger.ledger.days import today
from state_ledger.pages import charts, controls, figures, provenance, tables
from state_ledger.pages.asking import Ask, OutOfTime, Unanswered
from state_ledger.pages.charts import Bar, Segment
from state_ledger.pages.cost import FILTERS, GROUPS, Cost, Group, check, read_cost
from state_ledger.pages.cost_rows import row_cells, row_columns, row_label, row_link, total_cells
from state_ledger.pages.links import Links
from state_ledger.pages.period import Period, chosen, presets
from state_ledger.pages.sums import Sums, left_out
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page, why

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.settings import Settings

ACTUAL, ESTIMATED = 1, 0
"""Colours of the two bases: the usual one has the colour of the house."""

DRAWN = 15
"""How many groups the picture shows; the table has them all."""


async def cost_page(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    live = page.live(datasette, [name], page.links(datasette, name))
    shown = await answered(
        request, registry(datasette).settings, page.links(datasette, name),
        lambda reader: page.read(datasette, name, reader),
    )  # fmt: skip
    if shown.cost is not None:
        shown.context.update(await _why(datasette, request, name, shown.cost))
    return await page.respond(
        datasette, request, "ledger_cost.html", shown.context, title="Cost", store=name, section="cost",
        status=shown.status, permalink=shown.permalink, live=live,
    )  # fmt: skip


class Shown(NamedTuple):
    """What a cost page shows; `cost` is None where the request could not be answered."""

    context: dict[str, Any]
    status: int
    permalink: str
    cost: Cost | None


async def answered(
    request: Any,
    settings: Settings,
    at: Links,
    read: Callable[[Callable[[Ask], Cost]], Awaitable[Cost]],
    groups: Mapping[str, Group] = GROUPS,
    taken: Collection[str] = (),
) -> Shown:
    """The cost that a request asks for, of one store or of several as one.

    read: runs a reader where the questions are answered. taken: parameters that narrow where that is, and which
    no question gets.
    """
    filters = [key for key in FILTERS if key not in taken]
    values = {key: (request.args.get(key) or "").strip() for key in (*filters, "since", "until", "limit")}
    values |= {key: (request.args.get(key) or "").strip() for key in ("group", "period")}
    wrong = check(values, settings, groups)
    bad = {error.name for error in wrong}
    zone = settings.zone_name if "tz" in bad else values["tz"] or settings.zone_name
    now = today(zone)
    period = chosen({key: value for key, value in values.items() if key not in bad}, now)
    usual = next(iter(groups))
    group = groups.get(values["group"] or usual, groups[usual])
    context = _controls(values, filters, bad, group, period, presets(now), at, groups)
    status = 400 if wrong else 200
    problems = [str(error) for error in wrong]
    cost = None
    if not wrong:
        try:
            wanted = {key: values[key] for key in (*filters, "limit")}
            cost = await read(lambda ask: read_cost(ask, group, period, wanted))
            context |= _answer(cost, at)
        except (OutOfTime, Unanswered) as error:
            status, problems = 503, [str(error)]
        except ParameterError as error:
            status, problems = 400, [str(error)]
    context |= {"problems": problems, "dates": f"{page.dates(period)}, days in {zone}"}
    return Shown(context, status, context.pop("permalink", ""), cost)


async def _why(datasette: Datasette, request: Any, name: str, cost: Cost) -> dict[str, Any]:
    """Of a single day without filters: what made it expensive if that is asked for, else where to ask."""
    day = cost.period.since
    if not day or day != cost.period.until or any(cost.asked.get(key) for key in ("source", "model", "profile")):
        return {}
    at = page.links(datasette, name)
    known = {key: cost.asked[key] for key in ("tz", "day_rule") if cost.asked.get(key)}
    if request.args.get("why") != "1":
        asked = {"since": day, "until": day, "group": cost.group.key, "why": "1", **known}
        return {"why_link": at.cost(asked) + "#why"}
    return {"why": await why.explained(datasette, name, "day", day, known)}


def _controls(
    values: Mapping[str, str],
    filters: Sequence[str],
    bad: set[str],
    group: Group,
    period: Period,
    known: list[Period],
    at: Links,
    groups: Mapping[str, Group],
) -> dict[str, Any]:
    """Links for period and group, and the form; what cannot be used stays in the form to be mended."""
    kept = {key: values[key] for key in (*filters, "limit") if values[key] and key not in bad}
    now = {"period": period.key} if period.key else period.parameters
    by_period = [
        page.Link(p.label, at.cost({**kept, "group": group.key, "period": p.key}), p.key == period.key) for p in known
    ]
    by_group = [
        page.Link(g.label, at.cost({**kept, **now, "group": g.key}), g.key == group.key) for g in groups.values()
    ]
    dates = {"since": values["since"] or period.since, "until": values["until"] or period.until}
    return {
        "choices": [
            {"label": "Period", "links": by_period},
            {"label": "Group by", "links": by_group},
        ],
        "fields": controls.filters(values, dates, bad),
        "filters_open": bool(kept or bad) or not period.key,
        # Without dates the period is all there is; dates go before it.
        "hidden": [("group", group.key), ("period", "all")],
        "action": at.cost(),
        "money": at.money({**kept, **now}),
        "reconcile": at.reconcile,
    }


def _answer(cost: Cost, at: Links) -> dict[str, Any]:
    group, total = cost.group, cost.total
    said = (
        f"Basis: {provenance.MONEY}; all usage of the store, so no day rule applies."
        if cost.all_time
        else provenance.basis(cost.asked["tz"], cost.asked["day_rule"])
    )
    order = "newest first" if cost.daily else "most expensive first"
    shown = f"{figures.plural(len(_rows(cost)), *_nouns(group))}, {order}"
    if cost.cut:
        shown += f"; cut at {cost.asked['limit']}, the total above is of all"
    picture = _days(cost, at, said) if cost.daily else _bars(cost, at, said)
    return {
        "answered": True,
        "permalink": at.cost({**cost.asked, "group": cost.group.key} | ({"period": "all"} if cost.all_time else {})),
        "sums": total,
        "exact": figures.exact_money(total.cost_usd),
        "unpriced": at.query("unpriced_usage", _same(cost)),
        "figures": [
            *page.sum_figures(total),
            ("Fresh tokens", figures.short(total.fresh_tokens), total.fresh_tokens is None),
            ("Processed tokens", figures.short(total.processed_tokens), total.processed_tokens is None),
        ],
        "heading": f"Cost by {group.label.lower()}",
        "table_heading": "The same as a table",
        "table": Markup(
            tables.table(
                shown, row_columns(group), [row_cells(group, row, at, _same(cost)) for row in _rows(cost)],
                totals=total_cells(group, cost.shown, cut=cost.cut), name="cost-table",
            )
        ),
        "provenance": Markup(provenance.line(said, at, group.question, cost.asked)),
        **picture,
    }  # fmt: skip


def _nouns(group: Group) -> tuple[str, str]:
    one = {"work": "piece of work"}.get(group.key, group.label.lower())
    return one, group.many


def _rows(cost: Cost) -> list[Any]:
    """The rows of the table; days are summed over their models."""
    if cost.daily is None:
        return cost.rows
    days = [day for day in reversed(cost.daily.days) if day in cost.daily.by_day]
    return [{"day": day, **cost.daily.sums(day).record} for day in days]


def _same(cost: Cost) -> dict[str, str]:
    """The parameters that select what the page shows, for links to sessions and other questions."""
    return {key: value for key, value in cost.asked.items() if key != "limit"}


def _days(cost: Cost, at: Links, said: str) -> dict[str, Any]:
    assert cost.daily is not None
    same = _same(cost)

    def link(day: str, model: str) -> str:
        one = {} if cost.group.question == "cost_per_day" else {"model": model or same.get("model", "")}
        return at.sessions({**same, "since": day, "until": day, **one})

    ring = "calls of unknown cost, not in the bar" if cost.daily.has_unknown else ""
    chart = charts.stacked_bars(
        cost.daily.bars(link), name="cost-chart", title="Cost per day by model",
        description=f"Stacked bars, one per day, in dollars. {said} The same figures are in the table below.",
    )  # fmt: skip
    return {
        "legend": Markup(charts.legend(cost.daily.legend, ring=ring)),
        "chart": Markup(chart),
        "chart_note": "",
    }


def _bars(cost: Cost, at: Links, said: str) -> dict[str, Any]:
    same = _same(cost)
    bars = [_bar(cost.group, row, lambda row: row_link(cost.group, row, at, same)) for row in cost.rows[:DRAWN]]
    chart = charts.horizontal_bars(
        bars, name="cost-chart", title=f"Cost by {cost.group.label.lower()}",
        description=f"Horizontal bars in dollars, split into actual and estimated. {said} "
        "The same figures are in the table below.",
    )  # fmt: skip
    bases = [("actual", ACTUAL), ("estimated", ESTIMATED)]
    present = [(name, colour) for name, colour in bases if getattr(cost.shown, f"{name}_usd")]
    more = len(cost.rows) - DRAWN
    note = f'<p class="provenance">{more:,} more in the table.</p>' if more > 0 else ""
    return {"legend": Markup(charts.legend(present)), "chart": Markup(chart), "chart_note": Markup(note)}


def _bar(group: Group, row: Mapping[str, Any], link: Callable[[Mapping[str, Any]], str]) -> Bar:
    parts = (("actual", row["actual_usd"], ACTUAL), ("estimated", row["estimated_usd"], ESTIMATED))
    segments = [Segment(name, value, colour) for name, value, colour in parts if value]
    sums = Sums.of([row])
    note = left_out(sums.unknown_calls, sums.unknown_tokens)
    return Bar(row_label(group, row), segments, link(row), note, sums.cost_text)
