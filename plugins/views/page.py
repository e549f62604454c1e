"""The frame that all pages of state-ledger share: permission, header, banner, response headers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from datasette.utils.asgi import Forbidden, NotFound, Response

import state_ledger
from state_ledger import homes
from state_ledger.pages import figures
from state_ledger.pages.links import AllLinks, FleetLinks, Links
from state_ledger.plugins import assets, compat, fleet, security, whole_store
from state_ledger.plugins.routes import EVERY, FIND, FLEET
from state_ledger.plugins.stores import registry

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.pages.asking import Ask
    from state_ledger.pages.attention import Notice
    from state_ledger.pages.period import Period
    from state_ledger.pages.sums import Sums
    from state_ledger.plugins.stores import StoreState

T = TypeVar("T")

PROMISE = (
    "The store is opened for reading only: nothing here writes to it, locks its writer out, checkpoints its log or"
    " keeps a transaction open after a page is sent."
)
PROMISE_OF_FLEET = "The books of the fleet are only read: nothing here writes to them or to a store on any host."
"""What the foot of a page says."""

_HEADERS = {
    "Content-Security-Policy": security.STRICT_CSP,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Link(NamedTuple):
    """A link of the frame; `current` marks the place where the reader is."""

    label: str
    href: str
    current: bool = False
    name: str = ""


async def open_store(datasette: Datasette, request: Any) -> str:
    """The name of the store in the address, after asking whether this visitor may see it.

    Raises NotFound if no store has that name, Forbidden if the visitor may not view the database.
    """
    name = compat.database_in_address(request)
    if name is None or name not in registry(datasette).stores:
        raise NotFound(f"No store named {name}")
    if not await whole_store.may_view_store(datasette, request.actor, name):
        raise Forbidden("view-database")
    return name


async def visible_stores(datasette: Datasette, request: Any) -> list[str]:
    """The names of the stores that this visitor may see, in the order in which they are served."""
    names = list(registry(datasette).stores)
    return [name for name in names if await whole_store.may_view_store(datasette, request.actor, name)]


async def left_out(datasette: Datasette, request: Any) -> dict[str, str]:
    """Stores that could not be opened at start, with the reason; of those that this visitor may see."""
    known = registry(datasette).left_out
    return {
        name: known[name] for name in known if await compat.may_view_database(datasette, request.actor, name)
    }


def links(datasette: Datasette, name: str) -> Links:
    """Addresses of one store, base URL included."""
    return Links(str(datasette.urls.database(name)))


def all_links(datasette: Datasette, only: tuple[str, ...] = ()) -> AllLinks:
    """Addresses of the pages over all stores, base URL included; `only` narrows them."""
    return AllLinks(str(datasette.urls.path(EVERY)), only)


def fleet_links(datasette: Datasette, **narrowed: Any) -> FleetLinks:
    """Addresses of the pages over the books of a fleet, base URL included; `narrowed` as the fields of FleetLinks."""
    return FleetLinks(str(datasette.urls.path(FLEET)), **narrowed)


def live(datasette: Datasette, names: list[str], at: Links) -> dict[str, str]:
    """What a page needs to renew itself: where to ask for changes, and how the stores are now."""
    return {"href": at.live, "version": versions(datasette, names)}


def versions(datasette: Datasette, names: list[str]) -> str:
    """A text that changes when one of these stores does; costs some microseconds a store."""
    told = []
    for name in names:
        database = datasette.get_database(name)
        watch = registry(datasette).watches.of(str(database.path), immutable=not database.is_mutable)
        told.append(f"{name}={watch.version()}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:20]


async def read(datasette: Datasette, name: str, reader: Callable[[Ask], T]) -> T:
    """Runs all questions of a page in one go on a reading connection of the store."""
    from state_ledger.pages.asking import Ask

    settings = registry(datasette).settings
    database = datasette.get_database(name)
    return await database.execute_fn(lambda connection: reader(Ask(connection, settings)))


async def respond(
    datasette: Datasette,
    request: Any,
    template: str,
    context: dict[str, Any],
    *,
    title: str,
    store: str = "",
    section: str = "",
    status: int = 200,
    permalink: str = "",
    finder: dict[str, Any] | None = None,
    every: AllLinks | None = None,
    live: dict[str, str] | None = None,
) -> Response:
    """Renders one of our templates in the frame, under the strict content policy.

    permalink: the address that shows the same again, with every parameter that has a default filled in.
    finder: what the search box of the header holds: `q`, and as `kept` the (name, value) of filters
    that go with it. every: the addresses of a page over several stores. live: as `live` gives it, before
    anything of the page was read.
    """
    frame = await _frame(datasette, request, title=title, store=store, section=section, every=every)
    if live is not None:
        frame["live"] = live
        frame["scripts"].append(datasette.urls.path(assets.static_path("live.js")))
    frame["permalink"] = permalink
    frame["finder"] |= finder or {}
    body = await datasette.render_template(template, {**context, "page": frame}, request=request)
    return Response.html(body, status=status, headers=dict(_HEADERS))


async def refuse(datasette: Datasette, template: str, context: dict[str, Any], *, title: str, status: int) -> Response:
    """A page that can be made at once and whatever the stores do: in a frame that names none of them."""
    shown = compat.jinja_environment(datasette).get_template(template)
    body = await shown.render_async({**context, "page": _bare_frame(datasette, title)})
    return Response.html(body, status=status, headers=dict(_HEADERS))


def sum_figures(sums: Sums) -> list[tuple[str, str, bool]]:
    """Label, text and whether it is a word, for the sums of a period (accounting.md rules 2, 3, 6)."""
    none = "none"
    return [
        ("Actual", figures.money(sums.actual_usd, unknown=none), sums.actual_usd is None),
        ("Estimated", figures.money(sums.estimated_usd, unknown=none), sums.estimated_usd is None),
        ("Included calls", figures.count(sums.included_calls or 0), False),
        ("Unknown calls", sums.unknown_calls_text, sums.unknown_calls_text == "uncounted"),
        ("Cache-read ratio", figures.ratio(sums.cache_read_ratio), sums.cache_read_ratio is None),
        ("Calls", figures.count(sums.api_call_count), sums.api_call_count is None),
    ]


def dates(period: Period) -> str:
    """The days of a period for a reader: `31 Oct 2026 to 29 Nov 2026`, `all time`."""
    from state_ledger.pages.period import spelled

    return spelled(period.since, period.until) if period.since or period.until else "all time"


def short_path(path: Path) -> str:
    """The last folders of a path, the user's home as `~`: a page need not tell the whole disk."""
    at_home = homes.home()
    within = Path("~") / path.relative_to(at_home) if at_home and path.is_relative_to(at_home) else path
    return str(within) if len(within.parts) <= 4 else str(Path("…", *within.parts[-3:]))


def place(state: StoreState) -> str:
    """Where a store is."""
    return state.copy_of or short_path(state.store.path)


def file_facts(state: StoreState) -> list[str]:
    """What is known of a store without asking it: where it is, its profile and schema."""
    version = f"schema {state.shape.version}" if state.shape.version is not None else "schema not recorded"
    return [place(state), f"profile {state.store.profile}", version]


def store_facts(state: StoreState, sessions: int, last_active: float | None, zone: str) -> list[str]:
    """The line under a store's name: where it is, its profile and schema, how much is in it."""
    return [
        *file_facts(state),
        figures.plural(sessions, "session"),
        f"last activity {figures.moment(last_active, zone)}",
    ]


def linked(notice: Notice, at: Links) -> dict[str, str]:
    """A notice with the address of the rows behind it."""
    href = at.query(notice.question, notice.parameters) if notice.question else ""
    href = at.ops(part="findings") if notice.of_file else href
    return {"text": notice.text, "detail": notice.detail, "href": href}


async def _switch(datasette: Datasette, request: Any, current: str) -> list[Link]:
    """Where one can go from here: all stores as one, then each that this visitor may see."""
    names = [current] if [current] == list(registry(datasette).stores) else await visible_stores(datasette, request)
    places = [(at.title, at.home) for at in ([all_links(datasette)] if len(names) > 1 else [])]
    if await fleet.visible(datasette, request):
        places.append((fleet_links(datasette).title, fleet_links(datasette).home))
    places += [(name, links(datasette, name).home) for name in names]
    return [Link(name, href, name == current, name) for name, href in places]


def _bare_frame(datasette: Datasette, title: str) -> dict[str, Any]:
    """The frame without a store, and without what has to be asked for."""
    urls = datasette.urls
    return {
        "title": title,
        "index": urls.path("/"),
        "stylesheet": urls.path(assets.static_path("ledger.css")),
        "scripts": [],
        "icon": urls.path(assets.static_path("icon.svg")),
        "cards": urls.path(assets.static_path("cards.js")),
        "plain": urls.path("/-/datasette"),
        "version": state_ledger.__version__,
        "promise": PROMISE,
        "store": "",
        "several": False,
        "stores": [],
        "finder": {"q": "", "kept": [], "stores": [], "action": "", "label": "Search messages"},
    }


async def _frame(
    datasette: Datasette, request: Any, *, title: str, store: str, section: str, every: AllLinks | None
) -> dict[str, Any]:
    urls = datasette.urls
    frame = _bare_frame(datasette, title) | {"store": store}
    frame["scripts"] += [urls.path(assets.static_path(name)) for name in ("search.js", "ledger.js")]
    if every is not None:
        return frame | {
            "store": every.title,
            "stores": await _switch(datasette, request, every.title),
            "sections": [Link(label, href, key != "" and key == section) for label, href, key in every.sections],
            "several": True,
            "finder": {**frame["finder"], "action": every.finder, "label": every.finds, "kept": every.pairs},
            "promise": PROMISE_OF_FLEET if isinstance(every, FleetLinks) else PROMISE,
        }
    if not store:
        names = await visible_stores(datasette, request)
        frame["finder"] |= {"stores": names, "action": urls.path(FIND)}
        return frame
    at = links(datasette, store)
    known = registry(datasette)
    taken = known.stores[store].taken_at()
    frame |= {
        "plain": at.plain,
        "stores": await _switch(datasette, request, store),
        "sections": [
            Link("Home", at.home, section == "home"),
            Link("Cost", at.cost(), section == "cost"),
            Link("Search", at.search(), section == "search"),
            Link("Ops", at.ops(), section == "ops"),
            Link("Questions", f"{at.home}#queries"),
            Link("Export", at.export_page({}), section == "export"),
            Link("Plain data", at.plain),
        ],
        "snapshot": figures.moment(taken, known.settings.zone_name) if taken is not None else "",
        "copy_of": known.stores[store].copy_of,
    }
    frame["finder"]["action"] = at.search()
    return frame
