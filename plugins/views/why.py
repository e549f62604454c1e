"""`/<store>/-/why.json`: what made a session, conversation, piece of work or day expensive, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response

from state_ledger.errors import ParameterError
from state_ledger.pages.asking import OutOfTime, Unanswered
from state_ledger.pages.cost_drivers import KINDS, QUESTION, read_drivers
from state_ledger.plugins import json_answer
from state_ledger.plugins.views import page

if TYPE_CHECKING:
    from datasette.app import Datasette


OF_COUNTERS = "What counters and stored rows say, unless a line says estimate."
OF_A_DAY = "Cost, calls and tokens of a day are estimates; results and loops are those of its stored messages."


async def why_json(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    at = page.links(datasette, name)
    given = {kind: (request.args.get(kind) or "").strip() for kind in KINDS}
    named = [kind for kind, value in given.items() if value]
    if len(named) != 1:
        return json_answer.refuse(f"Name one of {', '.join(KINDS)}.", 400)
    kind, subject = named[0], given[named[0]]
    more = {key: (request.args.get(key) or "").strip() for key in ("tz", "day_rule")}
    try:
        found = await page.read(datasette, name, lambda ask: read_drivers(ask, at, kind, subject, more))
    except ParameterError as error:
        return json_answer.refuse(str(error), 400)
    except (OutOfTime, Unanswered) as error:
        return json_answer.refuse(str(error), 503)
    if not found.drivers:
        return json_answer.refuse(f"This store has no usage and no messages of {kind} {subject}.", 404)
    body = {
        "ok": True,
        "kind": kind,
        "id": subject,
        "question": at.query(QUESTION, found.asked),
        "drivers": [driver.record() for driver in found.drivers],
    }
    return json_answer.respond(body)


async def explained(
    datasette: Datasette, name: str, kind: str, subject: str, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What the template `ledger_why.html` shows of a subject; what keeps it from being told is its `problem`."""
    at = page.links(datasette, name)
    try:
        found = await page.read(datasette, name, lambda ask: read_drivers(ask, at, kind, subject, more))
    except (OutOfTime, Unanswered, ParameterError) as error:
        return {"problem": str(error)}
    return {
        "drivers": found.drivers,
        "basis": OF_A_DAY if kind == "day" else OF_COUNTERS,
        "question": at.query(QUESTION, found.asked),
        "json": at.why(found.asked),
    }
