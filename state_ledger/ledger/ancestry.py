"""The conversations of a few sessions, without a walk over all of them.

`ledger_lineage` places every session of a store. Where a session stands is decided by its ancestors
alone, so a page that shows twenty sessions asks for those and theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from state_ledger.lineage import Link, arrange
from state_ledger.sqlite import Connection


@dataclass(frozen=True)
class Member:
    """One session and where it stands, as `ledger_lineage` has it (accounting rules 11 to 14).

    conversation_id: the first session of its conversation; segment: 1 for that one, 2 for the session
    that continues it, and so on.
    """

    session_id: str
    conversation_id: str
    kind: str
    segment: int


_ANCESTORS = (
    "WITH RECURSIVE up(row) AS ("
    "SELECT k.row FROM json_each(?) AS j CROSS JOIN ledger_session_kinds AS k ON k.session_id = j.value"
    " UNION SELECT k.parent_row FROM up CROSS JOIN ledger_session_kinds AS k ON k.row = up.row"
    " WHERE k.parent_row IS NOT NULL)"
    " SELECT k.row, k.parent_row, k.kind, k.dangling, k.session_id"
    " FROM up CROSS JOIN ledger_session_kinds AS k ON k.row = up.row"
)


def links(connection: Connection, session_ids: Iterable[str]) -> dict[str, Link]:
    """These sessions and all their ancestors with their links, by id; without those that the store does not have.

    The connection has the semantic layer. Costs look-ups by key.
    """
    rows = connection.execute(_ANCESTORS, (json.dumps(sorted(set(session_ids))),))
    return {session_id: Link(row, parent, kind, bool(dangling)) for row, parent, kind, dangling, session_id in rows}


def members(connection: Connection, session_ids: Iterable[str]) -> dict[str, Member]:
    """Where these sessions stand, by id; without those that the store does not have.

    As `links`, of which it asks for the sessions and their ancestors.
    """
    wanted = set(session_ids)
    found = links(connection, wanted)
    ids = {link.row: session_id for session_id, link in found.items()}
    return {
        session_id: Member(session_id, ids[place.conversation], found[session_id].kind, place.segment)
        for place in arrange(found.values())
        if (session_id := ids[place.row]) in wanted
    }


def beginnings(connection: Connection, session_ids: Iterable[str]) -> dict[str, str]:
    """The beginning of the first user message of these sessions, by id; without those that have none."""
    rows = connection.execute(
        "SELECT f.session_id, f.preview FROM json_each(?) AS j"
        " CROSS JOIN ledger_session_facts AS f ON f.session_id = j.value",
        (json.dumps(sorted(set(session_ids))),),
    )
    return {row[0]: row[1] for row in rows if row[1]}
