"""What the gateway and the delegation tool keep beside the sessions of a demo store."""

from __future__ import annotations

import json
from typing import Any

from state_ledger.demo.session import Session
from state_ledger.sqlite import Connection


def write(connection: Connection, planned: list[Session], end: float) -> None:
    """Writes `state_meta`, `gateway_routing`, `async_delegations` and a lock that was left behind."""
    connection.executemany(
        "INSERT INTO state_meta(key, value) VALUES (?, ?)",
        [
            ("fts_storage_version", "1"),
            ("last_auto_prune", str(end - 86400.0)),
            ("last_auto_archive", str(end)),
        ],
    )
    connection.executemany(
        "INSERT INTO gateway_routing(scope, session_key, entry_json, updated_at) VALUES (?, ?, ?, ?)",
        _routing(planned).values(),
    )
    connection.executemany(
        "INSERT INTO async_delegations(delegation_id, origin_session, parent_session_id, state,"
        " dispatched_at, completed_at, updated_at, result_json, delivery_state, delivery_attempts,"
        " delivered_at)"
        " VALUES (?, ?, ?, 'completed', ?, ?, ?, ?, 'delivered', 1, ?)",
        [_delegation(session) for session in planned if session.kind == "delegate"],
    )
    # A program that died while it compressed: whoever comes next may take the lock over.
    session = planned[-1]
    connection.execute(
        "INSERT INTO compression_locks(session_id, holder, acquired_at, expires_at) VALUES (?, 'pid=4711', ?, ?)",
        (session.id, session.until, session.until + 300.0),
    )


def _routing(planned: list[Session]) -> dict[str, tuple[Any, ...]]:
    """The newest session of every chat, by session key."""
    entries = {}
    for session in planned:
        if session.peer:
            key = session.peer.key(session.source)
            entry = {"session_id": session.id, "platform": session.source, "display_name": session.peer.name}
            entries[key] = ("", key, json.dumps(entry, ensure_ascii=False), session.until)
    return entries


def _delegation(session: Session) -> tuple[Any, ...]:
    parent = session.parent.id if session.parent else ""
    done = session.ended
    result = json.dumps({"status": "completed", "child_session_id": session.id})
    return (
        f"deleg_{session.id[-6:]}_{session.id[:15]}",
        parent,
        parent,
        session.started,
        done,
        done,
        result,
        done,
    )
