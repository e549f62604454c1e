"""Which sessions of several stores are one conversation and one piece of work (accounting rules 11 to 14).

What kind of child a session is, is what its own store says. Links lead to the copy that counts, so that
a conversation whose parts stand in different copies of a store stays one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from state_ledger.lineage import Link, Place, arrange
from state_ledger.sqlite import Connection


def settle(books: Connection, visible: Collection[int]) -> None:
    """Writes `lineage` anew: every session that counts in the visible stores, in its place."""
    listed = ", ".join(map(str, sorted(visible))) or "NULL"
    rows = books.execute(
        "SELECT s.key, s.store, s.id, coalesce(s.instead, s.key), f.parent_session_id, f.kind, f.end_reason,"
        " f.ended_at, f.last_active, f.started_at"
        f" FROM facts AS f JOIN session AS s ON s.key = f.session WHERE s.store IN ({listed}) ORDER BY s.key"
    ).fetchall()
    books.execute("DELETE FROM lineage")
    books.executemany(
        "INSERT INTO lineage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (p.row, p.link, kind, p.conversation, p.work, p.tip, p.segment, p.depth, p.trouble)
            for p, kind in arranged(rows)
        ),
    )


def arranged(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Place, str]]:
    """Where every session that counts stands, by its key, and what kind of child it is.

    rows: key, store, id, key of the copy that counts, id of the parent, kind, end reason, ended, last active, started.
    """
    here = {(store, session_id): counts for _key, store, session_id, counts, *_ in rows}
    anywhere = {session_id: counts for _key, _store, session_id, counts, *_ in rows}
    claims: dict[int, list[tuple[Any, int]]] = defaultdict(list)
    links: dict[int, Link] = {}
    for key, store, session_id, counts, parent_id, kind, end_reason, ended_at, last_active, started_at in rows:
        if key != counts:
            continue
        parent = here.get((store, parent_id), anywhere.get(parent_id)) if parent_id not in (None, "") else None
        links[key] = Link(key, parent, kind, parent is None and parent_id not in (None, ""))
        if kind == "continuation" and parent is not None:
            ended = 2 if end_reason == "compression" else 1 if ended_at is None else 0
            claims[parent].append(((ended, last_active or 0, started_at or 0, str(session_id)), key))
    # One store names one continuation of a session; two stores may name one each.
    for rivals in claims.values():
        for _claim, key in sorted(rivals)[:-1]:
            links[key] = Link(key, links[key].parent, "other", links[key].dangling)
    return ((place, links[place.row].kind) for place in arrange(links.values()))
