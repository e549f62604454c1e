"""What is exported: a session, a conversation, a piece of work, a source, a search, or everything."""

from __future__ import annotations

from dataclasses import dataclass

from state_ledger.errors import StateLedgerError
from state_ledger.portability.source import Source

KINDS = ("session", "conversation", "work", "source", "search", "all")
"""What a page or a command can name."""

SESSIONS = "sessions"
"""A list of sessions that a program chose."""


class NothingToExport(StateLedgerError):
    """There is nothing in the scope; the sentence says what was looked for."""


@dataclass(frozen=True)
class Scope:
    """kind: one of KINDS, or SESSIONS. value: a session's id (of any session of a conversation or work), a source,
    a query, or how the sessions were chosen."""

    kind: str
    value: str = ""

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, SESSIONS):
            raise ValueError(f"A scope is one of {', '.join(KINDS)}, not {self.kind}.")

    def __str__(self) -> str:
        return "all sessions" if self.kind == "all" else f"{self.kind} {self.value}"


def session_ids(source: Source, scope: Scope) -> list[str]:
    """The sessions of a scope that is not a search, parents before their children.

    Raises NothingToExport if there is none.
    """
    found = [str(row[0]) for row in source.rows(*_statement(source, scope))]
    if not found:
        raise NothingToExport(_nothing(scope))
    return found


def _statement(source: Source, scope: Scope) -> tuple[str, tuple[str, ...]]:
    if scope.kind == "session":
        return "SELECT id FROM main.sessions WHERE id = ?", (scope.value,)
    if scope.kind in ("conversation", "work"):
        whole = f"{scope.kind}_id"
        return (
            "WITH places AS MATERIALIZED (SELECT * FROM ledger_lineage)"
            f" SELECT session_id FROM places WHERE {whole} = (SELECT {whole} FROM places WHERE session_id = ?)"
            " ORDER BY depth, conversation_id, segment",
            (scope.value,),
        )
    where = "WHERE source = ?" if scope.kind == "source" else ""
    # Messages and calls of sessions that are gone are still messages and calls.
    gone = "".join(
        f" UNION ALL SELECT * FROM (SELECT DISTINCT session_id AS id, 9e99 AS started_at, 0 FROM main.{table} AS t"
        " WHERE NOT EXISTS (SELECT 1 FROM main.sessions AS s WHERE s.id = t.session_id))"
        for table in ("messages", "session_model_usage")
        if scope.kind == "all" and source.shape.has(table)
    )
    return (
        "SELECT id FROM (SELECT id, started_at, rowid AS place FROM main.sessions"
        f" {where}{gone}) GROUP BY id ORDER BY min(started_at), min(place), id",
        (scope.value,) if where else (),
    )


def _nothing(scope: Scope) -> str:
    if scope.kind == "all":
        return "There is nothing to export: the store has no sessions."
    if scope.kind == "source":
        return f"There is nothing to export: no session has the source {scope.value!r}."
    return f"There is nothing to export: no session has the id {scope.value!r}."
