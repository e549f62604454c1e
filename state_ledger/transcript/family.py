"""The family of a session: its piece of work, where that came from, and what branched off from it.

`ledger_lineage` places every session of a store, which takes longer the more there are. Here only the
sessions that are joined to one are read, and placed by the same rules (accounting rules 11 to 14).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from state_ledger.ledger import ancestry
from state_ledger.lineage import Link, Place, arrange
from state_ledger.sqlite import Connection
from state_ledger.transcript.rows import among, records

MOST_SESSIONS = 1000
"""How many sessions of one family are read; `Family.cut` says when there are more."""

MOST_TITLE = 200
"""Characters of a title that are shown."""

# Children of branches and of plain links belong to other work: they are named, not followed.
_DOWN = f"""
WITH RECURSIVE down(session_id, followed) AS (
  SELECT ?, 1
  UNION
  SELECT c.session_id, k.kind IN ('continuation', 'delegate')
  FROM down
  CROSS JOIN ledger_session_links AS c ON c.parent_session_id = down.session_id
  CROSS JOIN ledger_session_kinds AS k ON k.session_id = c.session_id
  WHERE down.followed
  LIMIT {2 * MOST_SESSIONS}
)
SELECT DISTINCT session_id FROM down LIMIT {MOST_SESSIONS + 1}
"""

_LINKS = "SELECT session_id, row, parent_row, kind, dangling FROM ledger_session_kinds WHERE session_id {among}"

_FACTS = (
    "SELECT session_id, title, source, profile, model, billing_provider, started_at, ended_at, first_active,"
    " last_active, end_reason, messages, cwd, git_branch, rewind_count FROM ledger_session_facts"
    " WHERE session_id {among}"
)

_USAGE = (
    "SELECT *, cache_read_tokens * 1.0 / nullif(prompt_tokens, 0) AS cache_read_ratio FROM ledger_usage"
    " WHERE session_id {among}"
)


@dataclass(frozen=True, eq=False)
class Node:
    """One session of a family.

    parent: the session it hangs on, None where there is none in the store or where a loop was cut.
    conversation, work: ids of the first session of each. facts: its row of `ledger_session_facts`.
    usage: its rows of `ledger_usage`,
    each with its cache-read ratio.
    """

    session_id: str
    parent: str | None
    kind: str
    conversation: str
    work: str
    segment: int
    depth: int
    trouble: str | None
    facts: Mapping[str, Any]
    usage: Sequence[Mapping[str, Any]]

    @property
    def title(self) -> str:
        """The title, else the id; cut where no reader would read on."""
        named = str(self.facts.get("title") or self.session_id)
        return named if len(named) <= MOST_TITLE else f"{named[:MOST_TITLE]}…"


@dataclass(frozen=True, eq=False)
class Family:
    """The sessions around one.

    nodes: by id, parents before children: the whole work of the session, the sessions that branched
    off from it, and the one that it branched off from. cut: whether there are more than were read.
    """

    session_id: str
    nodes: Mapping[str, Node]
    cut: bool

    @property
    def own(self) -> Node:
        """The session that was asked for."""
        return self.nodes[self.session_id]

    @property
    def work(self) -> list[Node]:
        """Every session of the piece of work."""
        return [node for node in self.nodes.values() if node.work == self.own.work]

    def segments(self, conversation: str) -> list[Node]:
        """The sessions of a conversation in order."""
        chain = [node for node in self.nodes.values() if node.conversation == conversation]
        return sorted(chain, key=lambda node: (node.segment, node.session_id))

    def children(self, session_id: str) -> list[Node]:
        """The sessions that hang on one: its continuation first, the others as they began."""
        return self._by_parent.get(session_id, [])

    @cached_property
    def _by_parent(self) -> Mapping[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        order = sorted(self.nodes.values(), key=lambda n: (n.kind != "continuation", _start(n), n.session_id))
        for node in order:
            if node.parent is not None:
                found.setdefault(node.parent, []).append(node)
        return found


def read_family(connection: Connection, session_id: str) -> Family | None:
    """The family of a session; None if the store has no session of that id."""
    links = ancestry.links(connection, [session_id])
    if session_id not in links:
        return None
    ids = {link.row: name for name, link in links.items()}
    places = {ids[place.row]: place for place in arrange(links.values())}
    work = ids[places[session_id].work]
    below = [row["session_id"] for row in records(connection, _DOWN, [work])]
    cut, listed = len(below) > MOST_SESSIONS, frozenset(below)
    # Whatever was cut, the session itself and all it hangs on are there.
    more, more_ids = _links(connection, [each for each in below if each not in links])
    links, ids = {**links, **more}, {**ids, **more_ids}
    placed = {ids[place.row]: place for place in arrange(links.values())}
    root = placed[work]
    kept = {name: place for name, place in placed.items() if place.work == root.work or name in listed}
    if root.link is not None:
        kept[ids[root.link]] = placed[ids[root.link]]
    return Family(session_id, _nodes(connection, kept, ids, links), cut)


def _links(connection: Connection, session_ids: Sequence[str]) -> tuple[dict[str, Link], dict[int, str]]:
    links, ids = {}, {}
    for row in among(connection, _LINKS, session_ids):
        links[row["session_id"]] = Link(row["row"], row["parent_row"], row["kind"], bool(row["dangling"]))
        ids[row["row"]] = row["session_id"]
    return links, ids


def _nodes(
    connection: Connection, places: Mapping[str, Place], ids: Mapping[int, str], links: Mapping[str, Link]
) -> dict[str, Node]:
    names = list(places)
    facts = {row["session_id"]: row for row in among(connection, _FACTS, names)}
    usage: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for row in among(connection, _USAGE, names):
        usage[row["session_id"]].append(row)
    return {
        name: Node(
            name, ids[place.link] if place.link is not None else None, links[name].kind, ids[place.conversation],
            ids[place.work], place.segment, place.depth, place.trouble, facts[name], usage[name],
        )
        for name, place in places.items()
    }  # fmt: skip


def _start(node: Node) -> float:
    return float(node.facts["started_at"] or 0)
