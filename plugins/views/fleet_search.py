"""`/-/ledger/fleet/search`: messages of all stores of a fleet; `.json` has what is on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response

from state_ledger.errors import ParameterError, StateLedgerError
from state_ledger.pages.fleet_search import ROUTES, SORTS, FleetFound, looked_back, read_fleet_search
from state_ledger.pages.links import message_link
from state_ledger.pages.search import record
from state_ledger.pages.search_address import SESSIONS_QUESTION, Asked
from state_ledger.plugins import json_answer
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page, search_page, several
from state_ledger.plugins.views.fleet_place import FIND, FleetPlace

if TYPE_CHECKING:
    from datasette.app import Datasette


async def fleet_search(request: Any, datasette: Datasette) -> Response:
    try:
        asked, wrong, where, found = await _found(request, datasette)
    except StateLedgerError as error:
        return await several.refuse(datasette, request, error, FIND)
    zone = asked.tz or registry(datasette).settings.zone_name
    hits = [each.hit for each in found.found.hits] if found.found else []
    controls = search_page.controls(asked, hits, where.at)
    controls["sorts"] = [
        page.Link(search_page.SORTS[key], where.at.search(asked.but(sort=key)), key == asked.sort) for key in SORTS
    ]
    controls["hidden"] += where.at.pairs
    context = {
        "asked": asked,
        "problems": [*map(str, wrong), *found.problems],
        "controls": controls,
        "zone": zone,
        "examples": [{"label": each, "href": where.at.search({"q": each})} for each in search_page.EXAMPLES],
        "sessions": [search_page.session_line(row, where.at, zone) for row in found.sessions],
        "all_sessions": where.at.query(SESSIONS_QUESTION, {"q": asked.q}) if found.more_sessions else "",
        **(_results(asked, found, where, zone) if found.found else {}),
        **where.shown,
    }
    kept = [pair for pair in search_page.pairs(asked.but(q="")) if pair[0] != "q"]
    return await page.respond(
        datasette, request, "ledger_search.html", context,
        title=f"Search: {asked.q[:60]}" if asked.q else "Search", section="search", status=400 if wrong else 200,
        finder={"q": asked.q, "kept": [*kept, *where.at.pairs], "here": True},
        every=where.at,
    )  # fmt: skip


async def fleet_search_json(request: Any, datasette: Datasette) -> Response:
    try:
        asked, wrong, where, found = await _found(request, datasette)
    except StateLedgerError as error:
        return json_answer.refuse(str(error), several.status_of(error))
    if wrong:
        return json_answer.refuse(" ".join(map(str, wrong)), 400)
    answer = found.found
    hosts = {(each.store, each.hit.id): each.host for each in (answer.hits if answer else ())}
    by_place = {
        (group.store, shown.hit.id): {
            "store": group.store,
            "host": hosts[group.store, shown.hit.id],
            **record(shown, group.conversation.conversation_id),
            "url": message_link(where.at, shown.hit.id, shown.hit.session_id),
        }
        for group in found.groups
        for shown in group.conversation.hits
    }
    return json_answer.respond(
        {
            "ok": True,
            "q": asked.q,
            "parameters": asked.parameters,
            "route": answer.route if answer else None,
            "complete": answer.complete if answer else True,
            "reached": answer.reached if answer else None,
            "after": answer.after if answer else None,
            "notices": [*(answer.notices if answer else ()), *found.problems],
            "hint": answer.hint if answer else search_page.EMPTY_HINT,
            "sessions": [dict(row) for row in found.sessions],
            "hits": [by_place[each.store, each.hit.id] for each in (answer.hits if answer else ())],
        }
    )


async def _found(
    request: Any, datasette: Datasette
) -> tuple[Asked, list[ParameterError], FleetPlace, FleetFound]:
    """What was asked, what of it cannot be meant, of which stores, and what was found if all could."""
    where = await FIND(datasette, request)
    asked, wrong = search_page.read_address(datasette, request)
    asked = replace(asked, before=None)
    if wrong:
        return asked, wrong, where, FleetFound(None)
    after = (request.args.get("after") or "").strip()
    found = await where.read(lambda reading: read_fleet_search(reading, asked, after))
    return asked, wrong, where, found


def _results(asked: Asked, found: FleetFound, where: FleetPlace, zone: str) -> dict[str, Any]:
    answer, at = found.found, where.at
    assert answer is not None
    further = at.search({**asked.parameters, "after": answer.after}) if answer.after is not None else ""
    return {
        "answered": True,
        "notices": [*answer.notices, *filter(None, [looked_back(answer, zone)])],
        "hint": answer.hint,
        "route": ROUTES.get(answer.route, answer.route) if answer.route else "",
        "groups": [
            {"store": group.store, **search_page.group_lines(group.conversation, at, zone)} for group in found.groups
        ],
        "number": len(answer.hits),
        "complete": answer.complete,
        "go_on": "" if answer.complete else further,
        "go_on_label": "Go on searching" if further else "",
        "further": further if answer.complete else "",
        "further_label": search_page.FURTHER[asked.sort],
        "json": at.search(asked.parameters, form="json"),
    }  # fmt: skip
