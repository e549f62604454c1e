"""`/-/ledger/fleet/search`: messages of all stores of a fleet; `.json` has what is on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response

from state_ledger.errors import StateLedgerError
from state_ledger.pages.fleet_search import ROUTES, SORTS, looked_back, read_fleet_search
from state_ledger.pages.links import message_link
from state_ledger.plugins import json_answer
from state_ledger.plugins.views import page, search_page, several, several_search
from state_ledger.plugins.views.fleet_place import FIND

if TYPE_CHECKING:
    from datasette.app import Datasette


async def fleet_search(request: Any, datasette: Datasette) -> Response:
    try:
        of = await several_search.searched(request, datasette, FIND, read_fleet_search)
    except StateLedgerError as error:
        return await several.refuse(datasette, request, error, FIND)
    sorts = [
        page.Link(search_page.SORTS[key], of.where.at.search(of.asked.but(sort=key)), key == of.asked.sort)
        for key in SORTS
    ]
    own = _own(of, several_search.zone_of(datasette, of.asked)) if of.found.found else {}
    return await several_search.respond(datasette, request, of, own, sorts)


async def fleet_search_json(request: Any, datasette: Datasette) -> Response:
    try:
        of = await several_search.searched(request, datasette, FIND, read_fleet_search)
    except StateLedgerError as error:
        return json_answer.refuse(str(error), several.status_of(error))
    answer = of.found.found
    hosts = {(each.store, each.hit.id): each.host for each in (answer.hits if answer else ())}
    return several_search.respond_json(
        of,
        {"route": answer.route if answer else None, "reached": answer.reached if answer else None},
        lambda group, shown: {"store": group.store, "host": hosts[group.store, shown.hit.id]},
        lambda _group, shown: message_link(of.where.at, shown.hit.id, shown.hit.session_id),
    )


def _own(of: several_search.Searched, zone: str) -> dict[str, Any]:
    answer = of.found.found
    return {
        **several_search.results(of, zone, lambda _store: of.where.at),
        "notices": [*answer.notices, *filter(None, [looked_back(answer, zone)])],
        "route": ROUTES.get(answer.route, answer.route) if answer.route else "",
    }
