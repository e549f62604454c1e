"""The messages that a search finds, as the limit of an export."""

from __future__ import annotations

from state_ledger.portability.scope import NothingToExport, Scope
from state_ledger.search import Request, find
from state_ledger.sqlite import Connection

_AT_ONCE = 1000


def among(connection: Connection, scope: Scope, *, with_taken_back: bool = False) -> set[int] | None:
    """The ids of all messages that a search finds; None for a scope that is no search.

    Raises NothingToExport for a query with nothing to look for, and what `search.find` raises.
    """
    if scope.kind != "search":
        return None
    found: set[int] = set()
    before: int | None = None
    while True:
        answer = find(
            connection, Request(scope.value, limit=_AT_ONCE, before=before, inactive=with_taken_back)
        )
        if answer.route is None:
            raise NothingToExport(f"There is nothing to export: {answer.hint or 'the query has nothing to look for.'}")
        found.update(hit.id for hit in answer.hits)
        before = answer.next_before
        if before is None:
            return found
