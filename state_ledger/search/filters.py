"""Which messages may be found, as SQL over `m` (messages) and `s` (sessions)."""

from __future__ import annotations

from typing import Any

from state_ledger.search.request import Request
from state_ledger.shape import Shape

Condition = tuple[str, list[Any]]
"""SQL that is true or false, never NULL, and its parameters."""


def condition(request: Request, shape: Shape) -> Condition:
    """Source, role, model, time and visibility; not `before`, which is a matter of paging."""
    conditions, parameters = ["1"], list[Any]()
    if not request.inactive and shape.has("messages", "active"):
        # NULL is live: some files got the column without a default.
        visible = "coalesce(m.active, 1) = 1"
        if shape.has("messages", "compacted"):
            visible = f"({visible} OR coalesce(m.compacted, 0) = 1)"
        conditions.append(visible)
    for among, column, negation in (
        (request.sources, "s.source", ""),
        (request.exclude_sources or None, "coalesce(s.source, '')", "NOT "),
        (request.roles or None, "m.role", ""),
        (request.models or None, "s.model" if shape.has("sessions", "model") else "NULL", ""),
    ):
        if among is not None:
            conditions.append(f"{column} {negation}IN ({', '.join('?' * len(among))})")
            parameters += among
    for moment, comparison in ((request.since, ">="), (request.until, "<")):
        if moment is not None:
            conditions.append(f"m.timestamp {comparison} ?")
            parameters.append(moment)
    return " AND ".join(conditions), parameters
