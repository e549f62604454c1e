"""`/<store>/-/search`: messages that contain what was typed, in groups of conversations.

| address | is |
|---|---|
| `/<store>/-/search?q=` | the page |
| `/<store>/-/search.json?q=` | what is on it, as JSON |
| `/<store>/-/search-count.json?q=` | how many messages match, up to 1,000 |
| `/-/find?q=&store=` | the way to the page of a store, for the box of pages that are of none |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import NotFound, Response
from markupsafe import Markup

from state_ledger.pages import figures
from state_ledger.pages.asking import OutOfTime, Unanswered
from state_ledger.pages.links import Links, message_link, session_link
from state_ledger.pages.search import Conversation, Found, Shown, count_text, read_count, read_search, record
from state_ledger.pages.search_address import LISTS, QUESTION, SESSIONS_QUESTION, Asked, read_asked
from state_ledger.plugins import json_answer
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page
from state_ledger.search import marks
from state_ledger.search.request import ROUTES

if TYPE_CHECKING:
    from datasette.app import Datasette

    from state_ledger.errors import ParameterError
    from state_ledger.search import Hit

SORTS = {"newest": "Newest first", "oldest": "Oldest first", "best": "Best match"}
FURTHER = {"newest": "Older messages", "oldest": "Newer messages", "best": "Further messages"}
ROLES = ("user", "assistant", "tool", "system")
LABELS = {"source": "source", "exclude_source": "not from", "role": "role", "model": "model"}
EXAMPLES = ('"exact phrase"', "src/main.py", "don't", "prefix*", "harbour OR port", "cache NOT redis", "桂林")

_BLANK_LINES = re.compile(r"\s*\n\s*")

async def search_page(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    asked, wrong = read_address(datasette, request)
    at, shape = page.links(datasette, name), registry(datasette).stores[name].shape
    zone = asked.tz or registry(datasette).settings.zone_name
    found = Found(None)
    if not wrong:
        found = await page.read(datasette, name, lambda ask: read_search(ask, asked, shape=shape))
    problems = [*map(str, wrong), *found.problems]
    status = 400 if wrong else 503 if found.answer is None and problems else 200
    context = {
        "asked": asked,
        "problems": problems,
        "controls": controls(asked, found.answer.hits if found.answer else (), at),
        "zone": zone,
        "examples": [{"label": each, "href": at.search({"q": each})} for each in EXAMPLES],
        "sessions": [session_line(row, at, zone) for row in found.sessions],
        "all_sessions": at.query(SESSIONS_QUESTION, {"q": asked.q}) if found.more_sessions else "",
        **(_results(asked, found, at, zone) if found.answer else {}),
    }
    kept = [(name, value) for name, value in pairs(asked.but(q="")) if name != "q"]
    return await page.respond(
        datasette, request, "ledger_search.html", context,
        title=f"Search: {asked.q[:60]}" if asked.q else "Search", store=name, section="search", status=status,
        finder={"q": asked.q, "kept": kept, "here": True},
    )  # fmt: skip


async def search_json(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    asked, wrong = read_address(datasette, request)
    if wrong:
        return json_answer.refuse(" ".join(map(str, wrong)), 400)
    shape = registry(datasette).stores[name].shape
    found = await page.read(datasette, name, lambda ask: read_search(ask, asked, shape=shape, counted=False))
    if found.answer is None and found.problems:
        return json_answer.refuse(" ".join(found.problems), 503)
    at, answer = page.links(datasette, name), found.answer
    by_id = {
        shown.hit.id: {
            **record(shown, group.conversation_id),
            "url": message_link(at, shown.hit.id, shown.hit.session_id),
        }
        for group in found.conversations
        for shown in group.hits
    }
    return json_answer.respond(
        {
            "ok": True,
            "q": asked.q,
            "parameters": asked.parameters,
            "route": answer.route if answer else None,
            "complete": answer.complete if answer else True,
            "next_before": answer.next_before if answer else None,
            "notices": [*(answer.notices if answer else ()), *found.problems],
            "hint": answer.hint if answer else EMPTY_HINT,
            "sessions": [dict(row) for row in found.sessions],
            "hits": [by_id[hit.id] for hit in (answer.hits if answer else ())],
        }
    )


async def count_json(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    asked, wrong = read_address(datasette, request)
    if wrong:
        return json_answer.refuse(" ".join(map(str, wrong)), 400)
    try:
        shape = registry(datasette).stores[name].shape
        count = await page.read(datasette, name, lambda ask: read_count(ask, asked, shape=shape))
    except (OutOfTime, Unanswered) as error:
        return json_answer.refuse(str(error), 503)
    return json_answer.respond({"ok": True, "number": count.number, "more": count.more, "text": count_text(count)})


async def find_page(request: Any, datasette: Datasette) -> Response:
    """Leads to the search page of the store that was chosen, else of the first that this visitor may see.

    An empty choice is that of all stores.
    """
    names = await page.visible_stores(datasette, request)
    wanted = request.args.get("store")
    if wanted == "" and len(names) > 1:
        return Response.redirect(page.all_links(datasette).search({"q": request.args.get("q") or ""}))
    if not names or (wanted and wanted not in names):
        raise NotFound("There is no such store to search in.")
    at = page.links(datasette, wanted or names[0])
    return Response.redirect(at.search({"q": request.args.get("q") or ""}))


EMPTY_HINT = "Type a word to look for, or several: all must occur."


def read_address(datasette: Datasette, request: Any) -> tuple[Asked, list[ParameterError]]:
    values = {name: request.args.getlist(name) for name in request.args}
    return read_asked(values, registry(datasette).settings)


def _results(asked: Asked, found: Found, at: Links, zone: str) -> dict[str, Any]:
    answer = found.answer
    assert answer is not None
    further = {**asked.parameters, "before": answer.next_before} if answer.next_before is not None else None
    return {
        "answered": True,
        "notices": answer.notices,
        "hint": answer.hint,
        "route": ROUTES.get(answer.route, answer.route) if answer.route else "",
        "groups": [group_lines(group, at, zone) for group in found.conversations],
        "number": len(answer.hits),
        "count": count_text(found.count) if found.count else "",
        "count_later": at.search(asked.but(), form="count") if answer.route and not found.count else "",
        "complete": answer.complete,
        "go_on": at.search(further or {**asked.parameters, "longer": "1"}) if not answer.complete else "",
        "go_on_label": "Go on searching" if further else "" if asked.longer else "Look for longer",
        "further": at.search(further) if further and answer.complete else "",
        "further_label": FURTHER[asked.sort],
        "first_page": at.search(asked.but()) if asked.before is not None else "",
        "question": at.query(QUESTION, asked.canned),
        "json": at.search(asked.parameters, form="json"),
        "csv": at.query(QUESTION, asked.canned, form="csv"),
    }


def group_lines(group: Conversation, at: Links, zone: str) -> dict[str, Any]:
    first = group.first
    return {
        "title": group.title,
        "named": group.named,
        "href": session_link(at, first.session_id),
        "source": first.source,
        "model": first.model or "",
        "hits": [_hit(shown, at, zone) for shown in group.hits],
    }


def _hit(shown: Shown, at: Links, zone: str) -> dict[str, Any]:
    hit: Hit = shown.hit
    return {
        "href": message_link(at, hit.id, hit.session_id),
        "role": hit.role,
        "tool": hit.tool_name or "",
        "time": figures.moment(hit.timestamp, zone),
        "snippet": Markup(marks.html(_BLANK_LINES.sub("\n", hit.snippet).strip())),
        "before": shown.before,
        "after": shown.after,
    }


def session_line(row: Any, at: Links, zone: str) -> dict[str, str]:
    facts = [row["source"], row["model"], figures.moment(row["last_active"], zone)]
    return {
        "href": session_link(at, row["session_id"]),
        "title": str(row["title"] or row["session_id"]),
        "sub": " · ".join(str(fact) for fact in facts if fact),
        "id": str(row["session_id"]),
    }


def controls(asked: Asked, hits: Sequence[Hit], at: Links) -> dict[str, Any]:
    """Links that change the search: its order, what is chosen (each can be taken out), what may be added."""
    chosen = [
        {"label": f"{LABELS[name]}: {value}", "href": at.search(asked.without(name, value))}
        for name in LISTS
        for value in getattr(asked, name)
    ]
    chosen += [
        {"label": f"{label} {value}", "href": at.search(asked.but(**{name: ""}))}
        for name, label in (("since", "from"), ("until", "to"), ("tz", "days in"))
        if (value := getattr(asked, name))
    ]
    return {
        "sorts": [
            page.Link(label, at.search(asked.but(sort=key)), key == asked.sort) for key, label in SORTS.items()
        ],
        "hide_tools": at.search(asked.but(hide_tools=not asked.hide_tools)) if not asked.role else "",
        "chosen": chosen,
        "offered": _offered(asked, hits, at),
        "without_filters": at.search({"q": asked.q}) if len(chosen) > 1 else "",
        "action": at.search(),
        "fields": [
            {"name": name, "label": label, "value": value, "kind": kind, "placeholder": placeholder}
            for name, label, value, kind, placeholder in (
                ("source", "Sources", ", ".join(asked.source), "text", "cli, telegram"),
                ("exclude_source", "Without sources", ", ".join(asked.exclude_source), "text", "cron"),
                ("role", "Roles", ", ".join(asked.role), "text", ", ".join(ROLES[:3])),
                ("model", "Models", ", ".join(asked.model), "text", "all"),
                ("since", "From", asked.since, "date", "YYYY-MM-DD"),
                ("until", "To", asked.until, "date", "YYYY-MM-DD"),
            )
        ],
        "hidden": [
            (name, value)
            for name, value in pairs(asked.but())
            if name in ("q", "sort", "limit", "tz", "hide_tools")
        ],
    }  # fmt: skip


def _offered(asked: Asked, hits: Sequence[Hit], at: Links) -> list[dict[str, str]]:
    """Filters that would leave something of what is on the page, and take something away."""
    offers = []
    for name, values in (
        ("source", _distinct(hit.source for hit in hits)),
        ("role", _distinct(hit.role for hit in hits)),
        ("model", _distinct(hit.model for hit in hits)),
    ):
        if len(values) > 1 and not getattr(asked, name):
            offers += [
                {"label": f"{LABELS[name]}: {value}", "href": at.search(asked.but(**{name: (value,)}))}
                for value in values[:4]
                if "," not in value
            ]
    return offers


def _distinct(values: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def pairs(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    """Parameters as a form sends them: a name for each value."""
    return [
        (name, str(value))
        for name, values in parameters.items()
        for value in (values if isinstance(values, tuple) else (values,))
    ]
