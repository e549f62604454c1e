"""A search from the request to what a reader is shown."""

from __future__ import annotations

from state_ledger.search import hits, query, shapes
from state_ledger.search.engine import Search
from state_ledger.search.plan import Companion
from state_ledger.search.request import BEST, Answer, Count, Request
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection


def find(
    connection: Connection,
    request: Request,
    *,
    shape: Shape | None = None,
    companion: Companion | None = None,
    budget_s: float | None = None,
) -> Answer:
    """The messages that hold what was typed, with snippets; no text is an error.

    connection: any that can read the store. shape: of its file, read if it is not given. companion: of
    the store, see `state_ledger.companion.open_for_search`; the answer is the same without. budget_s:
    how long to look for what no index knows, in seconds; None for as long as it takes.
    Raises sqlite3.DatabaseError if the messages themselves cannot be read.
    """
    parsed = query.parse(request.q, edges_in_any_case=request.edges_in_any_case)
    hint = " ".join(parsed.hints) or None
    if not parsed:
        return Answer([], None, hint=hint)
    if request.limit == 0 or request.sources == ():
        return Answer([], "index", hint=hint)
    shape = shapes.of(connection) if shape is None else shape
    found = Search(connection, request, parsed, shape=shape, companion=companion, budget_s=budget_s).hits()
    rows = hits.read(connection, shape, found.ids, parsed.wanted, inside=found.inside)
    return Answer(
        rows,
        found.route,
        complete=found.complete,
        next_before=None if request.sort == BEST else found.after,
        notices=found.notices,
        hint=hint,
    )


def count(
    connection: Connection,
    request: Request,
    *,
    shape: Shape | None = None,
    companion: Companion | None = None,
    most: int = 1000,
    budget_s: float | None = None,
) -> Count:
    """How many messages match, counted up to `most`; paging and order do not matter."""
    parsed = query.parse(request.q, edges_in_any_case=request.edges_in_any_case)
    if not parsed or request.sources == ():
        return Count(0)
    shape = shapes.of(connection) if shape is None else shape
    search = Search(connection, request, parsed, shape=shape, companion=companion, budget_s=budget_s)
    number, more = search.count(most)
    return Count(number, more)
