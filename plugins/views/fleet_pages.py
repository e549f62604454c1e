"""`/-/ledger/fleet/lineage` and `/-/ledger/fleet/ops`: pages that are made of the answers to questions alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response

from state_ledger.errors import StateLedgerError
from state_ledger.fleet.reading import FleetReading
from state_ledger.pages import answers
from state_ledger.plugins.views import page, several
from state_ledger.plugins.views.fleet_place import FIND

if TYPE_CHECKING:
    from datasette.app import Datasette

Asked = tuple[str, dict[str, str]]

OPS: Sequence[Asked] = (
    ("pushes", {"limit": "20"}),
    ("store_sizes", {"limit": "20"}),
    ("open_idle_sessions", {"limit": "10"}),
    ("sessions_by_age", {}),
    ("ledger_problems", {}),
    ("orphans", {"limit": "10"}),
    ("locks", {"limit": "10"}),
    ("delegations", {"limit": "10"}),
)
"""The questions whose answers the ops page shows; each has all rows as a page of its own."""

LINEAGE: Sequence[Asked] = (("longest_conversations", {"limit": "20"}), ("lineage_problems", {"limit": "10"}))
OF_A_SESSION = ("lineage_conversation", "lineage_work", "lineage_ancestors", "lineage_descendants")

READS_ONLY = (
    "This page only reads. What ends or deletes sessions is a command on the host that has the store; its next push"
    " shows it here."
)


async def ops(request: Any, datasette: Datasette) -> Response:
    return await _page(request, datasette, OPS, title="Ops", section="ops", lead=READS_ONLY)


async def lineage(request: Any, datasette: Datasette) -> Response:
    """Long conversations and broken links; or where one session belongs."""
    session = (request.args.get("session") or "").strip()
    asked = [(name, {"session": session}) for name in OF_A_SESSION] if session else LINEAGE
    return await _page(request, datasette, asked, title="Lineage", section="lineage", session=session)


async def _page(
    request: Any, datasette: Datasette, asked: Sequence[Asked], *, title: str, section: str, **context: Any
) -> Response:
    def read(reading: FleetReading) -> tuple[list[dict[str, Any]], list[str]]:
        return [_shown(reading, name, values) for name, values in asked], reading.notices

    def _shown(reading: FleetReading, name: str, values: dict[str, str]) -> dict[str, Any]:
        try:
            return answers.shown(reading.ask(name, values), place.at, reading.settings.zone_name)
        except StateLedgerError as error:  # the others are shown all the same
            return answers.unanswered(place.known[name], values, place.at, error)

    try:
        place = await FIND(datasette, request)
        live_now = place.live
        shown, notices = await place.read(read)
    except StateLedgerError as error:
        return await several.refuse(datasette, request, error, FIND)
    context |= {"answers": shown, "notices": notices, "finds_session": section == "lineage", **place.shown}
    if context.get("session"):
        context["transcript"] = place.at.session(context["session"])
    return await page.respond(
        datasette, request, "ledger_answers.html", context, title=title, section=section, every=place.at, live=live_now
    )
