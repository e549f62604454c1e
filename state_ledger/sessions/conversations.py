"""Conversations in a live store: a session, what it continues and what continues it.

Source: session-db, section 5; accounting rules 11 to 14. What may continue a session, and which of
several children does, is decided by `state_ledger.ledger.sessions` alone. Parent links may loop,
miss their parent or be thousands deep: a walk visits each session once and has no other bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from state_ledger.ledger.columns import column, json_marker
from state_ledger.ledger.retention import continuations
from state_ledger.ledger.sessions import claim_terms, may_continue
from state_ledger.sessions import get_session, select_columns
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection
from state_ledger.writing.writer import Writer

_BATCH = 500
"""Ids in one statement; SQLite older than 3.32 takes 999 parameters."""


def get_compression_tip(writer: Writer, session_id: str) -> str:
    """The last segment of the conversation, the session itself if nothing continues it.

    Of several children that could continue a session, one that was compressed itself comes before a
    live one before any other; then the newest message, start and id decide.
    """
    return (_later_segments(writer, session_id) or [session_id])[-1]


def compression_tips(writer: Writer, session_ids: Sequence[str]) -> dict[str, str]:
    """`get_compression_tip` of many sessions, by session; without those that nothing continues."""
    tips: dict[str, str] = {}
    seen = {session_id: {session_id} for session_id in session_ids}
    walking = {session_id: session_id for session_id in session_ids}
    while walking:
        following = _next_segments(writer, list(dict.fromkeys(walking.values())))
        walking = {first: following[at] for first, at in walking.items() if at in following}
        walking = {first: at for first, at in walking.items() if at not in seen[first]}
        for first, at in walking.items():
            seen[first].add(at)
        tips |= walking
    return tips


def get_compression_lineage(writer: Writer, session_id: str) -> list[str]:
    """The segments of the conversation from first to last, by id; `[]` for an unknown session.

    A branch or a delegate begins a conversation of its own.
    """
    with writer.lock:
        if writer.value("SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
            return []
        earlier = list(reversed(earlier_segments(writer, session_id)))
        known = {*earlier, session_id}
        later = [segment for segment in _later_segments(writer, session_id) if segment not in known]
    return [*earlier, session_id, *later]


def earlier_segments(writer: Writer, session_id: str) -> list[str]:
    """The sessions that this one continues, nearest first."""
    sql = (
        "SELECT p.id FROM sessions AS s JOIN sessions AS p ON p.id = s.parent_session_id"
        f" WHERE s.id = ? AND p.rowid <> s.rowid AND {may_continue(writer.shape, 's')}"
    )
    return _walk(writer, sql, session_id)


def _later_segments(writer: Writer, session_id: str) -> list[str]:
    return _walk(writer, f"{_next_segment_sql(writer.shape)} = ?", session_id)


def _next_segments(writer: Writer, session_ids: Sequence[str]) -> dict[str, str]:
    """What continues each of these sessions, by session; without those that nothing continues."""
    sql = _next_segment_sql(writer.shape, "p.id AS before, ")
    found = {}
    for start in range(0, len(session_ids), _BATCH):
        batch = session_ids[start : start + _BATCH]
        for row in writer.rows(f"{sql} IN ({', '.join('?' * len(batch))})", batch):
            if row["after"] is not None:
                found[row["before"]] = row["after"]
    return found


def _next_segment_sql(shape: Shape, columns: str = "") -> str:
    """SELECT of `after`, what continues a session; ends where the session's id is to be compared."""
    order = ", ".join(f"{term} DESC" for term in claim_terms(shape, "c"))
    return (
        f"SELECT {columns}(SELECT c.id FROM sessions AS c WHERE c.parent_session_id = p.id AND c.rowid <> p.rowid"
        f" AND {may_continue(shape, 'c')} ORDER BY {order} LIMIT 1) AS after FROM sessions AS p WHERE p.id"
    )


def get_conversation_root(writer: Writer, session_id: str) -> str:
    """The top of the chain of parents, whatever kind the links are; the session itself without any."""
    sql = "SELECT p.id FROM sessions AS s JOIN sessions AS p ON p.id = s.parent_session_id WHERE s.id = ?"
    return (_walk(writer, sql, session_id) or [session_id])[-1]


def resolve_resume_session_id(writer: Writer, session_id: str) -> str:
    """The session to go on with when the user asks for this one.

    From the tip of its conversation on, the newest child that is neither branch nor delegate is
    followed; the deepest session with messages is the answer, the tip if none has any.
    """
    shape = writer.shape
    config = column(shape, "sessions", "model_config", "c")
    sql = (
        "SELECT c.id FROM sessions AS c JOIN sessions AS p ON p.id = c.parent_session_id"
        " WHERE p.id = ? AND c.rowid <> p.rowid AND c.source NOT IN ('tool', 'subagent')"
        f" AND {json_marker(config, '$._branched_from')} IS NULL"
        f" AND {json_marker(config, '$._delegate_from')} IS NULL"
        " ORDER BY c.started_at DESC, c.rowid DESC LIMIT 1"
    )
    with writer.lock:
        tip = get_compression_tip(writer, session_id)
        for candidate in reversed([tip, *_walk(writer, sql, tip)]):
            if writer.value("SELECT 1 FROM messages WHERE session_id = ? LIMIT 1", (candidate,)) is not None:
                return candidate
    return tip


def find_live_compression_child(writer: Writer, parent_session_id: str) -> dict[str, Any] | None:
    """The session that continues this one and has not ended, if there is exactly one; all its columns."""
    shape = writer.shape
    rows = writer.rows(
        f"SELECT {select_columns(shape, 'c')} FROM sessions AS p JOIN sessions AS c ON c.parent_session_id = p.id"
        f" WHERE p.id = ? AND c.rowid <> p.rowid AND c.ended_at IS NULL AND {may_continue(shape, 'c')} LIMIT 2",
        (parent_session_id,),
    )
    return dict(rows[0]) if len(rows) == 1 else None


def set_session_archived(writer: Writer, session_id: str, archived: bool) -> bool:
    """Hides a conversation from lists, all its segments, or shows it again. False if the id is unknown."""
    return _set_flag(writer, session_id, "archived", archived)


def set_session_pinned(writer: Writer, session_id: str, pinned: bool) -> bool:
    """Keeps a conversation, all its segments, from being archived when idle. False if the id is unknown."""
    return _set_flag(writer, session_id, "pinned", pinned)


def _set_flag(writer: Writer, session_id: str, name: str, value: bool) -> bool:
    def work(connection: Connection) -> bool:
        if get_session(writer, session_id) is None:
            return False
        connection.execute(
            f"UPDATE sessions SET {name} = ? WHERE id IN ({family_sql(writer.shape)})", (int(bool(value)), session_id)
        )
        return True

    return writer.write(work)


def family_sql(shape: Shape) -> str:
    """SELECT of the ids of a conversation with every fork of it; its one parameter is a session's id.

    Forks are the children that could have continued a segment and did not.
    """
    continues = may_continue(shape, "c")
    return (
        "WITH RECURSIVE up(id) AS (VALUES (?) UNION SELECT p.id FROM up"
        " CROSS JOIN sessions AS c ON c.id = up.id CROSS JOIN sessions AS p ON p.id = c.parent_session_id"
        f" WHERE {continues}),"
        " family(id) AS (SELECT id FROM up UNION SELECT c.id FROM family"
        " CROSS JOIN sessions AS p ON p.id = family.id CROSS JOIN sessions AS c ON c.parent_session_id = p.id"
        f" WHERE {continues}) SELECT id FROM family"
    )


def continued_sessions(writer: Writer) -> dict[str, str]:
    """Every session of the store that may continue another, and that other, by id."""
    return {row[0]: row[1] for row in writer.rows(continuations(writer.shape))}


def last_segments_first(continues: Mapping[str, str]) -> Iterable[str]:
    """The keys of `continues`, each before the session it continues; of a loop, one link is passed over."""
    order: list[str] = []
    seen: set[str] = set()
    for start in continues:
        chain: list[str] = []
        step: str | None = start
        while step is not None and step not in seen and step in continues:
            seen.add(step)
            chain.append(step)
            step = continues[step]
        order.extend(reversed(chain))
    return reversed(order)


def _walk(writer: Writer, sql: str, start: str) -> list[str]:
    """Follows `sql` (one id to the next) from a session to the end; the ids after the first."""
    found: list[str] = []
    seen = {start}
    with writer.lock:
        step = writer.value(sql, (start,))
        while step is not None and step not in seen:
            seen.add(step)
            found.append(step)
            step = writer.value(sql, (step,))
    return found
