"""`/-/ledger/all/search`: messages of all stores that a visitor may see; `.json` has what is on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response

from state_ledger.errors import ParameterError, StateLedgerError
from state_ledger.pages.all_search import AllFound, read_all_search
from state_ledger.pages.links import AllLinks, message_link
from state_ledger.pages.search import record
from state_ledger.pages.search_address import SESSIONS_QUESTION, Asked
from state_ledger.plugins import json_answer
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page, search_page, several, together
from state_ledger.sqlite import sqlite3

if TYPE_CHECKING:
    from datasette.app import Datasette


async def all_search(request: Any, datasette: Datasette) -> Response:
    try:
        asked, wrong, where, found = await _found(request, datasette)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return await several.refuse(datasette, request, error, together.FIND)
    zone = asked.tz or registry(datasette).settings.zone_name
    hits = [each.hit for each in found.found.hits] if found.found else []
    context = {
        "asked": asked,
        "problems": [*map(str, wrong), *found.problems],
        "controls": search_page.controls(asked, hits, where.at),
        "zone": zone,
        "examples": [{"label": each, "href": where.at.search({"q": each})} for each in search_page.EXAMPLES],
        "sessions": [search_page.session_line(row, where.at, zone) for row in found.sessions],
        "all_sessions": where.at.query(SESSIONS_QUESTION, {"q": asked.q}) if found.more_sessions else "",
        **(_results(asked, found, where.at, datasette, zone) if found.found else {}),
    }
    context["controls"]["hidden"] += where.at.pairs
    kept = [pair for pair in search_page.pairs(asked.but(q="")) if pair[0] != "q"]
    return await page.respond(
        datasette, request, "ledger_search.html", context,
        title=f"Search: {asked.q[:60]}" if asked.q else "Search", section="search", status=400 if wrong else 200,
        finder={"q": asked.q, "kept": [*kept, *where.at.pairs], "here": True},
        every=where.at,
    )  # fmt: skip


async def all_search_json(request: Any, datasette: Datasette) -> Response:
    try:
        asked, wrong, _where, found = await _found(request, datasette)
    except (StateLedgerError, sqlite3.DatabaseError) as error:
        return json_answer.refuse(str(error), several.status_of(error))
    if wrong:
        return json_answer.refuse(" ".join(map(str, wrong)), 400)
    answer = found.found
    by_place = {
        (group.store, shown.hit.id): {
            "store": group.store,
            **record(shown, group.conversation.conversation_id),
            "url": message_link(page.links(datasette, group.store), shown.hit.id, shown.hit.session_id),
        }
        for group in found.groups
        for shown in group.conversation.hits
    }
    return json_answer.respond(
        {
            "ok": True,
            "q": asked.q,
            "parameters": asked.parameters,
            "routes": answer.routes if answer else {},
            "complete": answer.complete if answer else True,
            "after": answer.after if answer else None,
            "notices": [*(answer.notices if answer else ()), *found.problems],
            "hint": answer.hint if answer else search_page.EMPTY_HINT,
            "sessions": [dict(row) for row in found.sessions],
            "hits": [by_place[each.store, each.hit.id] for each in (answer.hits if answer else ())],
        }
    )


async def _found(
    request: Any, datasette: Datasette
) -> tuple[Asked, list[ParameterError], together.Place, AllFound]:
    """What was asked, what of it cannot be meant, of which stores, and what was found if all could."""
    where = await together.FIND(datasette, request)
    asked, wrong = search_page.read_address(datasette, request)
    asked = replace(asked, before=None)
    if wrong:
        return asked, wrong, where, AllFound(None)
    after = (request.args.get("after") or "").strip()
    found = await where.read(lambda reading: read_all_search(reading, asked, after))
    return asked, wrong, where, found


def _results(asked: Asked, found: AllFound, at: AllLinks, datasette: Datasette, zone: str) -> dict[str, Any]:
    answer = found.found
    assert answer is not None
    further = at.search({**asked.parameters, "after": answer.after}) if answer.after is not None else ""
    routes = dict.fromkeys(route for route in answer.routes.values() if route)
    return {
        "answered": True,
        "notices": answer.notices,
        "hint": answer.hint,
        "route": ", ".join(search_page.ROUTES.get(route, route) for route in routes),
        "groups": [
            {"store": group.store,
             **search_page.group_lines(group.conversation, page.links(datasette, group.store), zone)}
            for group in found.groups
        ],
        "number": len(answer.hits),
        "complete": answer.complete,
        "go_on": "" if answer.complete else further or at.search({**asked.parameters, "longer": "1"}),
        "go_on_label": "Go on searching" if further else "" if asked.longer else "Look for longer",
        "further": further if answer.complete else "",
        "further_label": search_page.FURTHER[asked.sort],
        "json": at.search(asked.parameters, form="json"),
    }  # fmt: skip
