"""Searching the messages of a store.

`search_messages` is the contract's method; `find` tells the route besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from state_ledger.search import snippets
from state_ledger.search.filters import Filters
from state_ledger.search.indexes import Indexes
from state_ledger.search.query import MAX_CHARACTERS, parse, sanitize_fts5_query
from state_ledger.search.routes import Hit, Search
from state_ledger.search.text import contains_cjk
from state_ledger.sqlite import Row
from state_ledger.writing.writer import Writer

__all__ = ["MAX_CHARACTERS", "Answer", "contains_cjk", "find", "sanitize_fts5_query", "search_messages"]

_AT_ONCE = 500


@dataclass(frozen=True)
class Answer:
    """What a search found.

    rows: as `search_messages` returns them. route: `index`, `mixed`, `trigram` or `scan`; None when
    there was nothing to look for. hint: a sentence for the reader when there was nothing to look for.
    """

    rows: list[dict[str, Any]]
    route: str | None
    hint: str | None = None


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

    query: words (all must occur), "phrases", AND, OR and NOT in capitals, `prefix*`; all else is
    literal text, and no text is an error. source_filter: only sessions of these sources ([]: none);
    exclude_sources: none of these; role_filter: only these roles ([]: all). limit: -1 for all. sort:
    `newest` or `oldest`, anything else by rank. include_inactive: also messages taken back.

    Each row has, in this order: id, session_id, role, snippet (matches between `>>>` and `<<<`),
    timestamp (Unix seconds), tool_name, source, model, session_started, context (up to three
    `{"role", "content"}`: before, the message, after; 200 characters each).
    Raises StoreBusyError if the store stays locked, sqlite3.DatabaseError if it is damaged.
    """
    return find(
        writer, query, source_filter, exclude_sources, role_filter, limit, offset, sort, include_inactive
    ).rows


def find(
    writer: Writer,
    query: str,
    source_filter: Sequence[str] | None = None,
    exclude_sources: Sequence[str] | None = None,
    role_filter: Sequence[str] | None = None,
    limit: int = 20,
    offset: int = 0,
    sort: str | None = None,
    include_inactive: bool = False,
) -> Answer:
    """The same as `search_messages`, with the route by which it was found."""
    parsed = parse(query)
    if not parsed:
        return Answer([], None, "Type a word to look for; punctuation alone finds nothing.")
    filters = Filters.of(source_filter, exclude_sources, role_filter, include_inactive)
    start = max(offset, 0)
    if limit == 0 or filters.sources == ():
        return Answer([], "index")
    order = sort.lower() if isinstance(sort, str) and sort.lower() in ("newest", "oldest") else "rank"
    wanted = None if limit < 0 else start + limit
    with writer.lock:
        indexes = Indexes.read(writer.connection)
    route, hits = Search(writer, parsed, filters, order, indexes).run(wanted)
    page = hits[start:]
    stored = _stored(writer, page)
    rows = [
        _row(stored[hit.id], snippets.snippet(writer, parsed, hit, stored[hit.id], indexes.words), writer)
        for hit in page
        if hit.id in stored  # else deleted a moment ago
    ]
    return Answer(rows, route)


def _stored(writer: Writer, hits: Sequence[Hit]) -> dict[int, Row]:
    """The messages of some hits with what their rows show of the session."""

    def column(name: str, table: str, alias: str) -> str:
        return f"{alias}.{name}" if writer.shape.has(table, name) else f"NULL AS {name}"

    listed = ", ".join(column(name, "messages", "m") for name in ("content", "tool_name", "tool_calls"))
    found: dict[int, Row] = {}
    for at in range(0, len(hits), _AT_ONCE):
        ids = [hit.id for hit in hits[at : at + _AT_ONCE]]
        for row in writer.rows(
            f"SELECT m.id, m.session_id, m.role, m.timestamp, {listed}, s.source,"
            f" {column('model', 'sessions', 's')}, s.started_at"
            " FROM messages m JOIN sessions s ON s.id = m.session_id"
            f" WHERE m.id IN ({', '.join('?' * len(ids))})",
            ids,
        ):
            found[row["id"]] = row
    return found


def _row(stored: Row, snippet: str, writer: Writer) -> dict[str, Any]:
    return {
        "id": stored["id"],
        "session_id": stored["session_id"],
        "role": stored["role"],
        "snippet": snippet,
        "timestamp": stored["timestamp"],
        "tool_name": stored["tool_name"],
        "source": stored["source"],
        "model": stored["model"],
        "session_started": stored["started_at"],
        "context": snippets.context(writer, stored),
    }
