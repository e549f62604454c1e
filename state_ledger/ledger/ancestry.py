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


def members(connection: Connection, session_ids: Iterable[str]) -> dict[str, Member]:
    """Where these sessions stand, by id; without those that the store does not have.

    The connection has the semantic layer. Costs look-ups by key for the sessions and their ancestors.
    """
    wanted = list(dict.fromkeys(session_ids))
    rows = [tuple(row) for row in connection.execute(_ANCESTORS, (json.dumps(wanted),))]
    names = {row[0]: str(row[4]) for row in rows}
    found = {}
    for place in arrange(Link(row[0], row[1], row[2], bool(row[3])) for row in rows):
        found[place.row] = place
    kinds = {row[0]: str(row[2]) for row in rows}
    by_name = {name: row for row, name in names.items()}
    return {
        name: Member(name, names[found[row].conversation], kinds[row], found[row].segment)
        for name in wanted
        if (row := by_name.get(name)) is not None
    }
