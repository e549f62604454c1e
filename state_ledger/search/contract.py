"""`SessionDB.search_messages`: the contract's method over the same search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from state_ledger.search import marks
from state_ledger.search.answering import find
from state_ledger.search.request import BEST, NEWEST, OLDEST, Request, names

if TYPE_CHECKING:
    from state_ledger.writing.writer import Writer


def search_messages(
    writer: Writer,
    query: str,
    source_filter: Sequence[str] | None = None,
    exclude_sources: Sequence[str] | None = None,
    role_filter: Sequence[str] | None = None,
    limit: int = 20,
    offset: int = 0,
    sort: str | None = None,
    include_inactive: bool = False,
) -> list[dict[str, Any]]:
    """Messages that match, best first, with a snippet and their neighbours. Reads only.

    query: words (all must occur), "phrases", AND, OR and NOT in capitals, parentheses, `prefix*`; all
    else is literal text, and no text is an error. source_filter: only sessions of these sources ([]:
    none); exclude_sources: none of these; role_filter: only these roles ([]: all). limit: -1 for all.
    sort: `newest` or `oldest`, anything else by rank, of which the newest 2,000 matches have one.
    include_inactive: also messages taken back.

    Each row has, in this order: id, session_id, role, snippet (matches between `>>>` and `<<<`),
    timestamp (Unix seconds), tool_name, source, model, session_started, context (up to three
    `{"role", "content"}`: before, the message, after; 200 characters each).
    Raises StoreBusyError if the store stays locked, sqlite3.DatabaseError if it is damaged.
    """
    if not isinstance(query, str):
        return []
    order = sort.lower() if isinstance(sort, str) else ""
    request = Request(
        query,
        sources=None if source_filter is None else names(source_filter),
        exclude_sources=names(exclude_sources),
        roles=names(role_filter),
        sort=order if order in (NEWEST, OLDEST) else BEST,
        limit=limit,
        offset=max(offset, 0),
        inactive=include_inactive,
        edges_in_any_case=True,
    )
    answer = writer.reading(lambda connection: find(connection, request, shape=writer.shape))
    return [
        {
            "id": hit.id,
            "session_id": hit.session_id,
            "role": hit.role,
            "snippet": marks.plain(hit.snippet),
            "timestamp": hit.timestamp,
            "tool_name": hit.tool_name,
            "source": hit.source,
            "model": hit.model,
            "session_started": hit.session_started,
            "context": hit.context,
        }
        for hit in answer.hits
    ]
