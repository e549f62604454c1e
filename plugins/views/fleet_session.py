"""`/-/ledger/fleet/session/<id>`: the messages of a session of the fleet, if they were pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import NotFound, Response
from markupsafe import Markup

from state_ledger.errors import ParameterError
from state_ledger.pages import fleet_session, provenance
from state_ledger.pages.asking import Ask
from state_ledger.plugins import assets
from state_ledger.plugins.views import page

if TYPE_CHECKING:
    from state_ledger.fleet.reading import FleetReading
    from state_ledger.plugins.views.fleet_place import FleetPlace


async def page_of(place: FleetPlace, request: Any, session_id: str) -> Response:
    """The page. Raises NotFound for a session that no store of the choice has, StateLedgerError."""
    after = (request.args.get("after") or "0").strip()
    if not after.isdecimal():
        raise ParameterError("after", after, "a whole number from 0: the id of a message")

    def read(reading: FleetReading) -> tuple[fleet_session.Session, str, list[str]]:
        texts = {each.name: each.texts for each in reading.all}
        found = fleet_session.read(Ask(reading.source, reading.settings), session_id, after, texts)
        return found, reading.settings.zone_name, reading.notices

    found, zone, notices = await place.read(read)
    row, at = found.facts, place.at
    if row is None:
        raise NotFound("No store of the fleet, or of what was chosen of it, has this session.")
    pager = [page.Link("From the beginning", at.session(session_id))] if after != "0" else []
    if found.more is not None:
        pager.append(page.Link("Further messages", at.session(session_id, {"after": str(found.more)})))
    asked = {"session": session_id, "after": after}
    context = {
        "title": str(row["title"] or session_id),
        "facts": fleet_session.facts(row, zone),
        "lineage": at.lineage(session_id),
        "notices": notices,
        "not_pushed": "" if place.has_texts(str(row["store"])) else fleet_session.not_pushed(row),
        "messages": Markup(fleet_session.messages_html(found.messages, zone)),
        "pager": pager,
        "provenance": Markup(provenance.line(f"Times in {zone}.", at, "session_messages", asked)),
        "stylesheet": place.datasette.urls.path(assets.static_path("transcript.css")),
        **place.shown,
    }
    return await page.respond(
        place.datasette, request, "ledger_fleet_session.html", context, title=context["title"], every=at
    )
