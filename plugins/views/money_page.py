"""`/<store>/-/money`: usage at list prices, what the cache saved, what subscriptions are worth, what looks wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response
from markupsafe import Markup

from state_ledger.errors import ParameterError
from state_ledger.ledger.days import today
from state_ledger.pages import controls, cost, money_rows, provenance
from state_ledger.pages.asking import Answer, OutOfTime, Unanswered
from state_ledger.pages.links import Links
from state_ledger.pages.money import BY, CHOSEN, PRICES, Money, check, read_money, same_question
from state_ledger.pages.period import Period, chosen, presets
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page

if TYPE_CHECKING:
    from datasette.app import Datasette


async def money_page(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    settings = registry(datasette).settings
    names = (*cost.FILTERS, *CHOSEN, "since", "until", "period")
    values = {key: (request.args.get(key) or "").strip() for key in names}
    wrong = check(values, settings)
    bad = {error.name for error in wrong}
    zone = settings.zone_name if "tz" in bad else values["tz"] or settings.zone_name
    now = today(zone)
    period = chosen({key: value for key, value in values.items() if key not in bad}, now)
    at = page.links(datasette, name)
    context = _controls(values, bad, period, presets(now), at)
    status, problems = (400 if wrong else 200), [str(error) for error in wrong]
    if not wrong:
        try:
            found = await page.read(datasette, name, lambda ask: read_money(ask, period, values))
            context |= _answer(found, values, at)
        except (OutOfTime, Unanswered) as error:
            status, problems = 503, [str(error)]
        except ParameterError as error:
            status, problems = 400, [str(error)]
    context |= {"problems": problems, "dates": f"{page.dates(period)}, days in {zone}"}
    return await page.respond(
        datasette, request, "ledger_money.html", context,
        title="Money", store=name, section="cost", status=status, permalink=context.pop("permalink", ""),
    )  # fmt: skip


def _controls(
    values: Mapping[str, str], bad: set[str], period: Period, known: list[Period], at: Links
) -> dict[str, Any]:
    names = (*cost.FILTERS, *CHOSEN)
    kept = {key: values[key] for key in names if values[key] and key not in bad}
    now = {"period": period.key} if period.key else period.parameters
    by = kept.get("by", "model")
    prices = kept.get("prices", next(iter(PRICES)))
    dates = {"since": values["since"] or period.since, "until": values["until"] or period.until}
    other = [
        controls.field("as_model", "As if on model", values["as_model"], bad, empty="its own"),
        controls.field("as_provider", "of provider", values["as_provider"], bad, empty="its maker"),
    ]
    return {
        "choices": [
            {"label": "Period", "links": [
                page.Link(p.label, at.money({**kept, "period": p.key}), p.key == period.key) for p in known
            ]},
            {"label": "Sum by", "links": [
                page.Link(label, at.money({**kept, **now, "by": key}), key == by) for key, label in BY.items()
            ]},
            {"label": "Prices", "links": [
                page.Link(label, at.money({**kept, **now, "prices": key}), key == prices)
                for key, label in PRICES.items()
            ]},
        ],
        "fields": [*controls.filters(values, dates, bad), *other],
        "filters_open": bool(set(kept) - {"by", "prices"} or bad) or not period.key,
        "hidden": [("by", by), ("prices", prices), ("period", "all")],
        "action": at.money(),
        "cost": at.cost({**{key: kept[key] for key in cost.FILTERS if key in kept}, **now}),
        "reconcile": at.reconcile,
    }  # fmt: skip


def _answer(found: Money, values: Mapping[str, str], at: Links) -> dict[str, Any]:
    by = values["by"] or "model"
    asked = found.repriced.parameters
    listed = f"List prices {PRICES[asked['prices']]}, from {found.sources}."
    placed = provenance.basis(asked["tz"], asked["day_rule"])

    def line(said: str, answer: Answer, question: str) -> Markup:
        return Markup(provenance.line(said, at, question, same_question(answer, question)))

    tables = [
        {
            "id": "repriced", "heading": "At list prices",
            "intro": "What the recorded tokens cost at list prices, beside what was stored with them. Nothing is"
            " overwritten.",
            "table": Markup(money_rows.repriced(found.repriced.rows, by, values["as_model"])),
            "empty": "" if found.repriced.rows else "There is no usage in this period.",
            "provenance": line(f"{listed} {placed}", found.repriced, "repriced"),
        },
        {
            "id": "savings", "heading": "What the prompt cache saved",
            "intro": "Against the same prompts without a cache.",
            "table": Markup(money_rows.savings(found.savings.rows, by)),
            "empty": "" if found.savings.rows else "There is no usage in this period.",
            "provenance": line(listed, found.savings, "cache_savings"),
        },
        {
            "id": "subscription", "heading": "What subscriptions are worth",
            "intro": "Calls that a subscription covers are not on the bill; this is their list price.",
            "table": Markup(money_rows.subscription(found.subscription.rows, by)),
            "empty": "" if found.subscription.rows else "No call of this period is covered by a subscription.",
            "provenance": line(listed, found.subscription, "subscription_value"),
        },
        {
            "id": "plausibility", "heading": "Costs that look wrong",
            "intro": "Of all time: stored costs far from the list price of their day, and rows set aside.",
            "table": Markup(money_rows.plausibility(found.plausibility.rows, at)),
            "empty": "" if found.plausibility.rows else "None.",
            "provenance": line(f"List prices of the day of use, from {found.sources}.", found.plausibility,
                               "cost_plausibility"),
        },
    ]  # fmt: skip
    return {
        "answered": True,
        "tables": tables,
        "prices": at.query("model_prices"),
        "permalink": at.money({key: value for key, value in asked.items() if key != "limit"}
                              | ({} if asked["since"] or asked["until"] else {"period": "all"})),
    }  # fmt: skip
