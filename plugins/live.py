"""Whether a store has changed, for pages that renew themselves: `/<store>/-/live.json`.

A page that is looked at asks every two seconds with the version that it shows. The answer is 304 while
nothing changes: it costs the check of permissions and some microseconds (`watch`), runs no question and
holds none of Datasette's threads, which a stream for each open page would do. `static/live.js` asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from datasette.utils.asgi import Response

from state_ledger.plugins import json_answer, page

if TYPE_CHECKING:
    from datasette.app import Datasette


@hookimpl
def register_routes() -> list[tuple[str, Any]]:
    return [(r"/(?P<database>[^/.]+)/-/live\.json$", live_json)]


async def live_json(request: Any, datasette: Datasette) -> Response:
    name = await page.open_store(datasette, request)
    return tell(request, page.versions(datasette, [name]))


def tell(request: Any, version: str) -> Response:
    """The version, or 304 to a reader who has it."""
    tag = f'"{version}"'
    if request.headers.get("if-none-match") == tag:
        return Response("", status=304, headers={"ETag": tag})
    answer = json_answer.respond({"ok": True, "version": version})
    answer.headers["ETag"] = tag
    return answer
