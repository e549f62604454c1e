"""Searching in SQL: `ledger_search(...)`, by which the canned query `search` asks.

SQLite gives Python no way to make a table of a function, so its value is a JSON array, one object per
hit, for `json_each`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from state_ledger.search import vocabulary
from state_ledger.sqlite import Connection, reference

if TYPE_CHECKING:
    from state_ledger.search.request import Request

BUDGET_S = 0.6
"""Seconds that a query looks for what no index knows: it has to end within Datasette's own limit."""

MOST = 1000
"""Hits that one query gives at most."""


def install(connection: Connection) -> None:
    """Registers the function and makes what it reads words by; before a connection is guarded."""
    vocabulary.prepare(connection)
    itself = reference(connection)

    def ledger_search(
        q: Any, source: Any, exclude_source: Any, role: Any, model: Any, since: Any, until: Any,
        sort: Any, before: Any, limit: Any,
    ) -> str:  # fmt: skip
        """Text arguments may be NULL or ''; several sources, roles or models stand with commas between."""
        # Not at the top: every connection has this function, and few of them search.
        from state_ledger.search.request import NEWEST, SORTS, Request

        request = Request(
            _typed(q),
            sources=_names(source) or None,
            exclude_sources=_names(exclude_source),
            roles=_names(role),
            models=_names(model),
            since=_number(since),
            until=_number(until),
            sort=sort if sort in SORTS else NEWEST,
            before=None if _number(before) is None else int(before),
            limit=max(0, min(int(_number(limit) or 0), MOST)),
        )
        return _answer(itself(), request)

    connection.create_function("ledger_search", 10, ledger_search)


def _answer(connection: Connection, request: Request) -> str:
    from state_ledger.companion import beside
    from state_ledger.search import marks
    from state_ledger.search.answering import find

    with beside(connection) as companion:
        answer = find(connection, request, companion=companion, budget_s=BUDGET_S)
    return json.dumps(
        [
            {
                "id": hit.id,
                "session_id": hit.session_id,
                "role": hit.role,
                "snippet": marks.plain(hit.snippet),
                "timestamp": hit.timestamp if isinstance(hit.timestamp, (int, float)) else None,
                "tool_name": hit.tool_name,
                "source": hit.source,
                "model": hit.model,
                "title": hit.title,
                "matches": json.dumps(marks.places(hit.snippet)),
                "route": answer.route,
                "complete": int(answer.complete),
            }
            for hit in answer.hits
        ],
        default=_as_text,
    )


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _typed(value: Any) -> str:
    """What was typed; as a BLOB it comes whole, while text ends at a NUL."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


def _names(value: Any) -> tuple[str, ...]:
    return tuple(name for each in str(value or "").split(",") if (name := each.strip()))


def _number(value: Any) -> float | None:
    try:
        return None if value is None or value == "" else float(value)
    except (TypeError, ValueError):
        return None
