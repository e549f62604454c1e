"""Every address of a page of ours, and the view in `views/` that answers it.

A view is imported when its first request comes: a start pays for none of them, and most instances are never
asked for most. Two kinds of address stand elsewhere, with the hooks that lead to them: the index and its cards
(`stores_page`), and the JSON of a question (`queries`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from datasette import hookimpl

if TYPE_CHECKING:
    from datasette.app import Datasette

STORE = r"/(?P<database>[^/.]+)/-"

EVERY = "/-/ledger/all"
"""Where the pages over all stores are."""

FLEET = "/-/ledger/fleet"
"""Where the pages over the books of a fleet are."""

FIND = "/-/find"
"""Where a search begins that is not on a page of a store; it leads to the search page of the one chosen."""

VIEWS = (
    (f"{STORE}/home$", "home_page", "home_page"),
    (f"{STORE}/cost$", "cost_page", "cost_page"),
    (f"{STORE}/why\\.json$", "why", "why_json"),
    (f"{STORE}/money$", "money_page", "money_page"),
    (f"{STORE}/reconcile$", "reconcile_page", "reconcile_page"),
    (f"{STORE}/search$", "search_page", "search_page"),
    (f"{STORE}/search\\.json$", "search_page", "search_json"),
    (f"{STORE}/search-count\\.json$", "search_page", "count_json"),
    (f"{FIND}$", "search_page", "find_page"),
    (f"{STORE}/(?P<kind>session|conversation|work)/(?P<session>[^/]+)$", "transcript_page", "transcript_page"),
    (f"{STORE}/ops$", "ops_page", "ops_page"),
    (f"{STORE}/ops\\.json$", "ops_page", "ops_json"),
    (f"{STORE}/export$", "export", "export_page"),
    (
        f"{STORE}/export/(?P<scope>session|conversation|work|source|search|all)\\.(?P<format>[a-z]+)$",
        "export",
        "scope_file",
    ),
    (f"{STORE}/export/question/(?P<query>[a-z_]+)\\.(?P<format>[a-z]+)$", "export", "answer_file"),
    (f"{STORE}/live\\.json$", "live", "live_json"),
    (f"{EVERY}/search$", "all_search", "all_search"),
    (f"{EVERY}/search\\.json$", "all_search", "all_search_json"),
    (f"{FLEET}/lineage$", "fleet_pages", "lineage"),
    (f"{FLEET}/search$", "fleet_search", "fleet_search"),
    (f"{FLEET}/search\\.json$", "fleet_search", "fleet_search_json"),
    (f"{FLEET}/ops$", "fleet_pages", "ops"),
    ("/-/ledger/health\\.json$", "health", "health_json"),
    ("/-/ledger/metrics$", "health", "metrics_text"),
)
"""Address as a regular expression, module and function. The first that matches answers."""

SEVERAL = (
    ("$", "home"),
    ("/cost$", "cost"),
    ("/cache$", "cache"),
    ("/live\\.json$", "changes"),
    ("/(?P<kind>session|conversation|work)/(?P<session>[^/]+)$", "transcript"),
    # Last of these, since any name fits.
    ("/(?P<query>[a-z_]+)$", "question_page"),
    ("/(?P<query>[a-z_]+)\\.json$", "question_json"),
    ("/(?P<query>[a-z_]+)\\.csv$", "question_csv"),
)
"""Address below a place that reads several stores as one, and the function of `views/several` that answers."""

PLACES = ((EVERY, "together"), (FLEET, "fleet_place"))
"""Where such places are, and the module of what finds the place of a request."""

View = Callable[..., Awaitable[Any]]


@hookimpl
def register_routes() -> list[tuple[str, View]]:
    alone = [(address, _when_asked(module, function)) for address, module, function in VIEWS]
    several = [
        (f"{root}{address}", _when_asked("several", function, place))
        for root, place in PLACES
        for address, function in SEVERAL
    ]
    return [*alone, *several]


def _when_asked(module: str, function: str, place: str = "") -> View:
    async def view(request: Any, datasette: Datasette) -> Any:
        answer: View = getattr(_view_module(module), function)
        return await answer(request, datasette, *([_view_module(place).FIND] if place else []))

    view.__name__ = function  # what profiles and tracebacks show
    return view


def _view_module(name: str) -> Any:
    return import_module(f"state_ledger.plugins.views.{name}")
