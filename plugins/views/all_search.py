"""`/-/ledger/all/search`: messages of all stores that a visitor may see; `.json` has what is on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response

from state_ledger.errors import StateLedgerError
from state_ledger.pages.all_search import read_all_search
from state_ledger.pages.links import message_link
from state_ledger.plugins import json_answer
from state_ledger.plugins.views import page, search_page, several, several_search, together
from state_ledger.sqlite import sqlite3

if TYPE_CHECKING:
    from datasette.app import Datasette


async def all_search(request: Any, datasette: Datasette) -> Response:
    try:
        of = await several_search.searched(request, datasette, together.FIND, read_all_search)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return await several.refuse(datasette, request, error, together.FIND)
    return await several_search.respond(datasette, request, of, _own(datasette, of) if of.found.found else {})


async def all_search_json(request: Any, datasette: Datasette) -> Response:
    try:
        of = await several_search.searched(request, datasette, together.FIND, read_all_search)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return json_answer.refuse(str(error), several.status_of(error))
    return several_search.respond_json(
        of,
        {"routes": of.found.found.routes if of.found.found else {}},
        lambda group, _shown: {"store": group.store},
        lambda group, shown: message_link(page.links(datasette, group.store), shown.hit.id, shown.hit.session_id),
    )


def _own(datasette: Datasette, of: several_search.Searched) -> dict[str, Any]:
    answer = of.found.found
    routes = dict.fromkeys(route for route in answer.routes.values() if route)
    zone = several_search.zone_of(datasette, of.asked)
    return {
        **several_search.results(of, zone, lambda store: page.links(datasette, store), longer=True),
        "notices": answer.notices,
        "route": ", ".join(search_page.ROUTES.get(route, route) for route in routes),
    }
