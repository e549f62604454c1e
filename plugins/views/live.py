"""Whether a store has changed, for pages that renew themselves: `/<store>/-/live.json`.

A page that is looked at asks every two seconds with the version that it shows. The answer is 304 while
nothing changes: it costs the check of permissions and some microseconds (`watch`), runs no question and
holds none of Datasette's threads, which a stream for each open page would do. `static/live.js` asks.

Who may ask is remembered for a while: on Datasette 1.0 that costs some milliseconds a store. What a visitor
can learn meanwhile, whose permission was taken away, is that something has changed; the page is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from datasette.utils.asgi import Response

from state_ledger.plugins import compat, json_answer
from state_ledger.plugins.views import page

if TYPE_CHECKING:
    from datasette.app import Datasette

T = TypeVar("T")

REMEMBERED_S, MOST_REMEMBERED = 20.0, 1000
"""Seconds for which a permission is not asked for again, and how many are remembered."""


async def live_json(request: Any, datasette: Datasette) -> Response:
    named = compat.database_in_address(request) or ""
    name = await granted(datasette, request, named, lambda: page.open_store(datasette, request))
    return tell(request, page.versions(datasette, [name]))


async def granted(datasette: Datasette, request: Any, what: str, ask: Callable[[], Awaitable[T]]) -> T:
    """What a visitor may see of `what`, asked for again after REMEMBERED_S; a refusal is not remembered."""
    known: dict[tuple[str, str], tuple[float, Any]] | None = getattr(datasette, "_state_ledger_granted", None)
    if known is None:
        known = datasette._state_ledger_granted = {}
    key, now = (json.dumps(request.actor, sort_keys=True, default=str), what), time.monotonic()
    held = known.get(key)
    if held is not None and held[0] > now:
        found: T = held[1]
        return found
    found = await ask()
    if len(known) >= MOST_REMEMBERED:
        known.clear()
    known[key] = (now + REMEMBERED_S, found)
    return found


def tell(request: Any, version: str) -> Response:
    """The version, or 304 to a reader who has it."""
    tag = f'"{version}"'
    if request.headers.get("if-none-match") == tag:
        return Response("", status=304, headers={"ETag": tag})
    answer = json_answer.respond({"ok": True, "version": version})
    answer.headers["ETag"] = tag
    return answer
