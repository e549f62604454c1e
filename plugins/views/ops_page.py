"""`/<store>/-/ops`: is the store well, what takes the room, what can go, and who works on it.

| address | is |
|---|---|
| `/<store>/-/ops` | the page: what look-ups tell; `check=full` looks closely, a filter or `plan=1` plans a clean-up |
| `/<store>/-/ops.json` | the same as JSON, with the ids of a plan |

Both only read. What changes a store is a command, and the page prints it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Response
from markupsafe import Markup

from state_ledger.pages.asking import Ask
from state_ledger.pages.ops import NAMES, Ops, Wanted, read_ops, wanted
from state_ledger.pages.ops_shown import Shown, sentence
from state_ledger.plugins import json_answer
from state_ledger.plugins.stores import registry
from state_ledger.plugins.views import page

if TYPE_CHECKING:
    from datasette.app import Datasette


async def ops_page(request: Any, datasette: Datasette) -> Response:
    """The page. What cannot be meant is said, and the rest of the page stands."""
    name = await page.open_store(datasette, request)
    values = _values(request)
    asked_for, wrong = wanted(values)
    ops, shown = await _read(datasette, name, asked_for, values)
    state, overview = registry(datasette).stores[name], ops.overview
    parts = {
        "status": shown.status(ops),
        "findings": shown.findings(ops),
        "sizes": shown.sizes(ops),
        "planner": shown.planner(wrong),
        "plan": shown.plan(ops, asked_for),
        "open": shown.open_sessions(ops, asked_for),
        "steps": shown.steps(ops),
        "workers": shown.workers(ops),
        "questions": shown.questions(),
    }
    facts = (
        page.file_facts(state)
        if overview is None
        else page.store_facts(state, overview.sessions, overview.last_active, shown.zone)
    )
    context = {
        **_marked(parts),
        "problems": [sentence(error) for error in wrong],
        "late": [shown.public(said) for said in ops.late],
        "facts": facts,
        "checked": asked_for.check,
    }
    return await page.respond(
        datasette, request, "ledger_ops.html", context, title="Operations", store=name, section="ops",
        status=400 if wrong else 200, permalink="" if wrong else shown.permalink(ops, asked_for),
    )  # fmt: skip


async def ops_json(request: Any, datasette: Datasette) -> Response:
    """What the page says, for programs."""
    name = await page.open_store(datasette, request)
    values = _values(request)
    asked_for, wrong = wanted(values)
    if wrong:
        return json_answer.refuse(" ".join(map(sentence, wrong)), 400)
    ops, shown = await _read(datasette, name, asked_for, values)
    body = {"ok": not ops.late, "store": name, **shown.record(ops, asked_for)}
    return json_answer.respond(body, status=503 if ops.late else 200)


def _values(request: Any) -> dict[str, str]:
    return {name: (request.args.get(name) or "").strip() for name in NAMES}


async def _read(
    datasette: Datasette, name: str, asked_for: Wanted, values: Mapping[str, str]
) -> tuple[Ops, Shown]:
    held, now = registry(datasette), time.time()
    state = held.stores[name]

    def look(ask: Ask) -> Ops:
        return read_ops(ask, state.patient(ask.connection, held.settings), asked_for, now)

    ops = await page.read(datasette, name, look)
    at = page.links(datasette, name)
    return ops, Shown(at, state.store.path, state.shape, held.settings, values, now)


def _marked(part: Any) -> Any:
    """A part at any depth, with what its names call HTML marked as such."""
    if isinstance(part, dict):
        return {name: _html(value) if name.endswith("_html") else _marked(value) for name, value in part.items()}
    return [_marked(each) for each in part] if isinstance(part, list) else part


def _html(value: Any) -> Any:
    return [Markup(each) for each in value] if isinstance(value, list) else Markup(value)
