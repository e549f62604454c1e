"""Sweeping: ending sessions that nobody ended, and taking that back.

Source: accounting rule 23. A session that a crash or a closed terminal left open is never pruned. What
is swept ends at its last activity and not now, so that no figure moves to another day, and with a
reason of its own, so that the sweep can be told from other ends and undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from state_ledger.ledger.columns import column
from state_ledger.ledger.retention import held_lock
from state_ledger.ledger.sessions import claim_terms, may_continue
from state_ledger.retention.selection import DAY_S, last_active
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection
from state_ledger.writing.writer import Writer

SWEPT = "swept"
"""The end reason; no other program gives it (store-format, section 5.2)."""

REASONS = {
    "locked": "locked, most often by a compression that is under way",
    "rival": "in a conversation that another session would seem to continue then",
}
"""Why an open session that is idle long enough is not swept."""

_BATCH = 500


@dataclass(frozen=True)
class Idle:
    """An open session: its id, source, title, since when it has been idle (epoch seconds) and, if it is not
    to be swept, why (a key of REASONS)."""

    session_id: str
    source: str
    title: str | None
    idle_since: float
    kept: str | None


@dataclass(frozen=True)
class SweepPlan:
    """sweep: sessions to end. kept: idle ones that stay open. recent: open sessions that are not idle enough."""

    sweep: tuple[Idle, ...]
    kept: tuple[Idle, ...]
    recent: int


def plan_sweep(
    connection: Connection,
    idle_days: float,
    source: str | None = None,
    *,
    now: float | None = None,
    shape: Shape | None = None,
) -> SweepPlan:
    """The open sessions without activity for some days, the longest idle first. Reads only."""
    shape = Shape.read(connection) if shape is None else shape
    found = connection.execute(*_idle(shape, idle_days, source, time.time() if now is None else now)).fetchall()
    old = [Idle(row[0], str(row[1]), row[2], row[3], row[4]) for row in found if row[5]]
    return SweepPlan(
        tuple(idle for idle in old if idle.kept is None),
        tuple(idle for idle in old if idle.kept is not None),
        len(found) - len(old),
    )


def sweep(
    writer: Writer,
    plan: SweepPlan,
    idle_days: float,
    *,
    now: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Ends the sessions of a plan that are still open, idle and free; returns their ids.

    Raises StoreBusyError, StoreFullError; what was ended until then stays so.
    """
    ids = [idle.session_id for idle in plan.sweep]
    moment = time.time() if now is None else now
    ended: list[str] = []
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        ended += writer.write(partial(_end, shape=writer.shape, ids=batch, idle_days=idle_days, now=moment))
        if progress is not None:
            progress(min(start + _BATCH, len(ids)), len(ids))
    return ended


def swept_sessions(connection: Connection, source: str | None = None, *, shape: Shape | None = None) -> list[str]:
    """The sessions that a sweep ended, by id."""
    shape = Shape.read(connection) if shape is None else shape
    if not shape.has("sessions", "end_reason"):
        return []
    where, parameters = ("AND source = ?", (SWEPT, source)) if source else ("", (SWEPT,))
    rows = connection.execute(f"SELECT id FROM sessions WHERE end_reason = ? {where} ORDER BY id", parameters)
    return [row[0] for row in rows.fetchall()]


def reopen(writer: Writer, session_ids: Sequence[str]) -> int:
    """Takes the end of swept sessions back, as `reopen_session` does; returns how many were reopened.

    One that has another end reason by now is left as it is.
    """

    def work(connection: Connection) -> int:
        return sum(
            connection.execute(
                "UPDATE sessions SET ended_at = NULL, end_reason = NULL WHERE id = ? AND end_reason = ?", (id, SWEPT)
            ).rowcount
            for id in session_ids
        )

    return writer.write(work)


def _idle(shape: Shape, idle_days: float, source: str | None, now: float) -> tuple[str, tuple[Any, ...]]:
    """SELECT of open sessions `s` with why they are kept (column 4) and whether they are idle enough (5)."""
    idle = last_active(shape)
    where, parameters = ("AND s.source = ?", (source,)) if source else ("", ())
    return (
        f"SELECT s.id, s.source, {column(shape, 'sessions', 'title', 's')}, {idle}, {_kept(shape)},"
        f" coalesce({idle} < ?, 0) FROM sessions AS s WHERE s.ended_at IS NULL {where} ORDER BY 4, 1",
        (now, now - idle_days * DAY_S, *parameters),
    )


def _kept(shape: Shape) -> str:
    """Why an open session `s` is not to be swept, NULL where nothing speaks against it. One parameter: now."""
    return f"CASE WHEN {held_lock(shape, 's.id')} THEN 'locked' WHEN {_rival(shape)} THEN 'rival' END"


def _rival(shape: Shape) -> str:
    """Whether `s` continues its parent now, and another child would if `s` were ended (accounting rule 11).

    Of several children a live one comes before those that ended.
    """
    if not shape.has("sessions", "parent_session_id"):
        return "0"

    def above(first: tuple[str, ...], second: tuple[str, ...]) -> str:
        return f"({', '.join(first)}) > ({', '.join(second)})"

    own, others = claim_terms(shape, "s"), claim_terms(shape, "o")
    ended = ("0", *own[1:])
    siblings = (
        "SELECT 1 FROM sessions AS o, sessions AS p WHERE p.id = s.parent_session_id AND p.id <> s.id"
        f" AND o.parent_session_id = p.id AND o.id <> s.id AND {may_continue(shape, 'o')}"
    )
    continues = f"EXISTS (SELECT 1 FROM sessions AS p WHERE p.id = s.parent_session_id AND {may_continue(shape, 's')})"
    return (
        f"({continues} AND NOT EXISTS ({siblings} AND {above(others, own)})"
        f" AND EXISTS ({siblings} AND {above(others, ended)}))"
    )


def _end(connection: Connection, shape: Shape, ids: Sequence[str], idle_days: float, now: float) -> list[str]:
    """Ends those of some sessions that may still be swept, within the caller's transaction."""
    wanted = set(ids)
    select, parameters = _idle(shape, idle_days, None, now)
    ending = [row for row in connection.execute(select, parameters).fetchall() if row[0] in wanted and row[5]]
    ended = []
    for row in ending:
        # Ending one can make another the only one left to continue a conversation: each is judged anew.
        kept = connection.execute(f"SELECT {_kept(shape)} FROM sessions AS s WHERE s.id = ?", (now, row[0])).fetchone()
        if kept is None or kept[0] is not None:
            continue
        connection.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL",
            (row[3], SWEPT, row[0]),
        )
        ended.append(row[0])
    return ended
