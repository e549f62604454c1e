"""What a search over several stores shows and says, whoever answers it: the shelf or the books of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from datasette.utils.asgi import Response

from state_ledger.pages.all_search import AllFound, InStore
from state_ledger.pages.links import Links
from state_ledger.pages.search import Shown, record
from state_ledger.pages.search_address import SESSIONS_QUESTION, Asked
from state_ledger.plugins import json_answer
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page, search_page
from state_ledger.plugins.views.places import Find, Place

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.errors import ParameterError


class Searched(NamedTuple):
    """What was asked, what of it cannot be meant, of which stores, and what was found if all could."""

    asked: Asked
    wrong: list[ParameterError]
    where: Place
    found: AllFound[Any]


async def searched(
    request: Any, datasette: Datasette, find: Find, read: Callable[[Any, Asked, str], AllFound[Any]]
) -> Searched:
    """Looks for what an address asks. read: of a reading, what was asked and after what. Raises as both do."""
    where = await find(datasette, request)
    asked, wrong = search_page.read_address(datasette, request)
    asked = replace(asked, before=None)
    if wrong:
        return Searched(asked, wrong, where, AllFound(None))
    after = (request.args.get("after") or "").strip()
    return Searched(asked, wrong, where, await where.read(lambda reading: read(reading, asked, after)))


async def respond(
    datasette: Datasette, request: Any, of: Searched, own: Mapping[str, Any], sorts: list[page.Link] | None = None
) -> Response:
    """The page. own: what the place has said of its answer, as `results` and more. sorts: where not all can be had."""
    asked, wrong, where, found = of
    hits = [each.hit for each in found.found.hits] if found.found else []
    controls = search_page.controls(asked, hits, where.at)
    controls["hidden"] += where.at.pairs
    if sorts is not None:
        controls["sorts"] = sorts
    context = {
        "asked": asked,
        "problems": [*map(str, wrong), *found.problems],
        "controls": controls,
        "zone": zone_of(datasette, asked),
        "examples": [{"label": each, "href": where.at.search({"q": each})} for each in search_page.EXAMPLES],
        "sessions": [search_page.session_line(row, where.at, zone_of(datasette, asked)) for row in found.sessions],
        "all_sessions": where.at.query(SESSIONS_QUESTION, {"q": asked.q}) if found.more_sessions else "",
        **own,
        **where.shown,
    }
    kept = [pair for pair in search_page.pairs(asked.but(q="")) if pair[0] != "q"]
    return await page.respond(
        datasette, request, "ledger_search.html", context,
        title=f"Search: {asked.q[:60]}" if asked.q else "Search", section="search", status=400 if wrong else 200,
        finder={"q": asked.q, "kept": [*kept, *where.at.pairs], "here": True},
        every=where.at,
    )  # fmt: skip


def zone_of(datasette: Datasette, asked: Asked) -> str:
    """The zone of the times on a page."""
    return asked.tz or registry(datasette).settings.zone_name


def results(of: Searched, zone: str, links: Callable[[str], Links], longer: bool = False) -> dict[str, Any]:
    """The hits for the page. links: the addresses of a store; longer: whether a search can be given more time."""
    asked, _wrong, where, found = of
    answer, at = found.found, where.at
    assert answer is not None
    further = at.search({**asked.parameters, "after": answer.after}) if answer.after is not None else ""
    again = at.search({**asked.parameters, "longer": "1"}) if longer else ""
    go_on_label = "Go on searching" if further else "Look for longer" if longer and not asked.longer else ""
    return {
        "answered": True,
        "hint": answer.hint,
        "groups": [
            {"store": group.store, **search_page.group_lines(group.conversation, links(group.store), zone)}
            for group in found.groups
        ],
        "number": len(answer.hits),
        "complete": answer.complete,
        "go_on": "" if answer.complete else further or again,
        "go_on_label": go_on_label,
        "further": further if answer.complete else "",
        "further_label": search_page.FURTHER[asked.sort],
        "json": at.search(asked.parameters, form="json"),
    }


def respond_json(
    of: Searched, own: Mapping[str, Any], told: Callable[[InStore, Shown], Mapping[str, Any]],
    url: Callable[[InStore, Shown], str],
) -> Response:
    """What is on the page. own: what the place says beside; told: of a hit, before what every search says of one."""
    asked, wrong, _where, found = of
    if wrong:
        return json_answer.refuse(" ".join(map(str, wrong)), 400)
    answer = found.found
    by_place = {
        (group.store, shown.hit.id): {
            **told(group, shown), **record(shown, group.conversation.conversation_id), "url": url(group, shown)
        }
        for group in found.groups
        for shown in group.conversation.hits
    }  # fmt: skip
    return json_answer.respond(
        {
            "ok": True,
            "q": asked.q,
            "parameters": asked.parameters,
            **own,
            "complete": answer.complete if answer else True,
            "after": answer.after if answer else None,
            "notices": [*(answer.notices if answer else ()), *found.problems],
            "hint": answer.hint if answer else search_page.EMPTY_HINT,
            "sessions": [dict(row) for row in found.sessions],
            "hits": [by_place[each.store, each.hit.id] for each in (answer.hits if answer else ())],
        }
    )
