"""Archiving what is named or selected: a mark on all segments of a conversation; nothing is deleted."""

from __future__ import annotations

import json
from collections.abc import Sequence

from state_ledger.errors import StateLedgerError
from state_ledger.retention.plan import Criteria, make_plan
from state_ledger.sessions.conversations import family_sql
from state_ledger.sqlite import Connection
from state_ledger.writing.writer import Writer


class UnknownSessionError(StateLedgerError):
    """A session that was named is not in the store; nothing was done."""


def named(connection: Connection, session_ids: Sequence[str]) -> list[str]:
    """The named sessions, each once. Raises UnknownSessionError if one is not in the store."""
    wanted = list(dict.fromkeys(session_ids))
    rows = connection.execute(
        "SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(wanted),)
    )
    known = {row[0] for row in rows.fetchall()}
    unknown = [id for id in wanted if id not in known]
    if unknown:
        raise UnknownSessionError(f"There is no session {', '.join(unknown)}. Nothing was done.")
    return wanted


def selected(connection: Connection, criteria: Criteria, *, undo: bool = False) -> list[str]:
    """What a prune with these criteria would delete; undo: every archived session that the filters select."""
    plan = make_plan(connection, criteria, sizes=dict)
    if not undo:
        return list(plan.delete)
    stays = [id for left in plan.left if left.reason not in ("too_recent", "no_time") for id in left.ids]
    return [*plan.delete, *stays]


def mark(writer: Writer, session_ids: Sequence[str], *, archived: bool) -> int:
    """Sets or takes away the mark on these sessions and all segments of their conversations, in one transaction.

    Returns how many sessions changed.
    """

    def work(connection: Connection) -> int:
        family = family_sql(writer.shape)
        return sum(
            connection.execute(
                f"UPDATE sessions SET archived = ? WHERE id IN ({family}) AND coalesce(archived, 0) <> ?",
                (int(archived), id, int(archived)),
            ).rowcount
            for id in session_ids
        )

    return writer.write(work)


__all__ = ["UnknownSessionError", "mark", "named", "selected"]
