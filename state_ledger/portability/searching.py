"""The messages that a search finds, as the limit of an export."""

from __future__ import annotations

from state_ledger.portability.scope import Scope
from state_ledger.sqlite import Connection


def among(connection: Connection, scope: Scope, *, with_taken_back: bool = False) -> set[int] | None:
    """The ids of all hits of a search; None for a scope that is no search."""
    if scope.kind != "search":
        return None
    raise NotImplementedError
