"""`/`: a card per store; and the short addresses of the pages of a store.

What a store of 1.5 GB cost in 30 days takes a second to add up, which nobody should wait for who only
wants to go on. So the index asks small stores at once and shows the cards of large ones without
figures; a script fetches those when the page is there (`/<store>/-/card`), and without scripts a link
leads to the page with all figures (`/?figures=1`).

| address | is |
|---|---|
| `/` | the cards (`/-/stores`) |
| `/-/datasette` | Datasette's own index |
| `/<store>` | the home of the store (`/<store>/-/home`), unless there is a query string |
| `/<store>/-/tables` | Datasette's own page of the database |

The short addresses are rewritten before Datasette routes them; `.json` forms are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from datasette.utils import tilde_decode
from datasette.utils.asgi import Forbidden, Response
from markupsafe import Markup

from state_ledger.errors import StateLedgerError
from state_ledger.pages import figures, provenance
from state_ledger.plugins import address, compat, fleet
from state_ledger.plugins.address import App, Scope
from state_ledger.plugins.store_database import StoreRefused
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page

if TYPE_CHECKING:
    from datasette.app import Datasette


AT_ONCE_BYTES = 64_000_000
"""How large the stores may be in all whose figures the index waits for: about a tenth of a second."""


@hookimpl
def register_routes() -> list[tuple[str, Any]]:
    return [(r"/-/stores$", stores_page), (r"/(?P<database>[^/.]+)/-/card$", card_page)]


@hookimpl
def asgi_wrapper(datasette: Datasette) -> Callable[[App], App]:
    """Turns the short addresses into those of the routes, for GET and HEAD."""

    def wrap(app: App) -> App:
        async def with_short_addresses(scope: Scope, receive: Any, send: Any) -> None:
            if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
                # An embedder's first request can come before start-up, when no store is known yet.
                await datasette.invoke_startup()
                base, local = address.split_base(datasette, address.path_of(scope))
                stores = registry(datasette).stores
                target = long_address(local, bool(scope.get("query_string")), stores)
                if target != local:
                    scope = address.at(scope, base + target)
            await app(scope, receive, send)

        return with_short_addresses

    return wrap


def long_address(path: str, has_query: bool, stores: Any) -> str:
    """The address of the route that a short address stands for; any other path as it is.

    `stores` holds the names of the databases that are stores.
    """
    if path == "/":
        return "/-/stores"
    if path == "/-/datasette":
        return "/"
    first, _, rest = path.lstrip("/").partition("/")
    if tilde_decode(first) not in stores:
        return path
    if not rest and not has_query and path == f"/{first}":
        return f"/{first}/-/home"
    return f"/{first}" if rest == "-/tables" else path


async def stores_page(request: Any, datasette: Datasette) -> Response:
    """The index: what this visitor may see, a card per store, then the other databases."""
    held = registry(datasette)
    names = await page.visible_stores(datasette, request)
    cards, left = [], AT_ONCE_BYTES
    for name in names:
        left -= _bytes(held.stores[name].store.path)
        now = left >= 0 or bool(request.args.get("figures"))
        cards.append(await _card(datasette, name) if now else _card_to_come(datasette, name))
    others = [
        {"name": name, "href": datasette.urls.database(name)}
        for name, database in datasette.databases.items()
        if name not in held.stores
        and not name.startswith("_")
        and await compat.may_view_database(datasette, request.actor, name)
    ]
    shows_fleet = await fleet.visible(datasette, request)
    if not cards and not others and not await compat.may_view_instance(datasette, request.actor):
        raise Forbidden("view-instance")
    settings = held.settings
    left_out = await page.left_out(datasette, request)
    context = {
        "every": page.all_links(datasette) if len(names) > 1 else None,
        "fleet_links": page.fleet_links(datasette) if shows_fleet else None,
        "notices": [f"{name} is left out: {why}" for name, why in left_out.items()],
        "cards": cards,
        "others": others,
        "fleet_facts": fleet_facts(datasette) if shows_fleet else "",
        "summary": figures.plural(len(cards), "store") if cards or not shows_fleet else "",
        "basis": provenance.basis(settings.zone_name, settings.day_rule),
    }
    title = "Stores" if cards or not shows_fleet else "Fleet"
    return await page.respond(datasette, request, "ledger_stores.html", context, title=title)


def fleet_facts(datasette: Datasette) -> str:
    """How large the fleet is and as of when, if it was read already: the index does not wait for it."""
    desk = fleet.desk(datasette)
    stores = desk.fleet.stores if desk is not None else ()
    if not stores:
        return ""
    zone = registry(datasette).settings.zone_name
    return (
        f"{figures.plural(len({each.host for each in stores}), 'host')} · {figures.plural(len(stores), 'store')}"
        f" · last push {figures.moment(max(each.pushed_at for each in stores), zone)}"
    )


async def card_page(request: Any, datasette: Datasette) -> Response:
    """One card with its figures, as the index shows it: a piece of a page."""
    name = await page.open_store(datasette, request)
    context = {"card": await _card(datasette, name)}
    return await page.respond(datasette, request, "ledger_card.html", context, title=name, store=name)


def _frame(datasette: Datasette, name: str) -> dict[str, Any]:
    held = registry(datasette)
    state, taken = held.stores[name], held.stores[name].taken_at()
    return {
        "name": name,
        "home": page.links(datasette, name).home,
        "facts": [page.place(state)],
        "copy_of": state.copy_of,
        "snapshot": figures.moment(taken, held.settings.zone_name) if taken is not None else "",
        "problem": "",
    }


def _card_to_come(datasette: Datasette, name: str) -> dict[str, Any]:
    """A card without what has to be added up."""
    state = registry(datasette).stores[name]
    return _frame(datasette, name) | {
        "facts": [*page.file_facts(state), figures.size(_bytes(state.store.path))],
        "to_come": page.links(datasette, name).card,
        "with_figures": datasette.urls.path("/?figures=1"),
    }


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # replaced or gone: asking it tells what is wrong
        return 0


async def _card(datasette: Datasette, name: str) -> dict[str, Any]:
    from state_ledger.pages import charts
    from state_ledger.pages.card import read_card

    held = registry(datasette)
    state, zone, at = held.stores[name], held.settings.zone_name, page.links(datasette, name)
    shown = _frame(datasette, name)
    try:
        card = await page.read(datasette, name, lambda ask: read_card(ask, state.shape))
    except (StateLedgerError, StoreRefused) as error:
        return shown | {"problem": str(error)}
    sums = card.sums
    return shown | {
        "facts": page.store_facts(state, card.overview.sessions, card.overview.last_active, zone),
        "sums": sums,
        "figures": page.sum_figures(sums),
        "attention": [page.linked(notice, at) for notice in card.notices],
        "spark": Markup(
            charts.sparkline(
                card.by_day,
                name=f"spark-{name}",
                title=f"Cost per day of {name}",
                description=f"Small bars for the last 30 days, in all {sums.cost_text}.",
            )
        ),
    }
