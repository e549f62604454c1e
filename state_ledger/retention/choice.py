"""Which of the selected sessions a clean-up takes, and which stay for what reason.

Source: session-db, section 10; accounting rules 22 and 23; cases 12 and 13. The contract's prune and
the plan of the command line decide here, so that they cannot differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from state_ledger.ledger.columns import column
from state_ledger.ledger.retention import continuations, held_lock
from state_ledger.retention.selection import Selection, last_active
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, Row

REASONS = {
    "too_recent": "active too recently",
    "no_time": "without a time that can be read",
    "never_ended": "never ended",
    "locked": "locked, most often by a compression that is under way",
    "pinned": "pinned",
    "in_use": "part of a conversation still in use",
    "archived": "archived",
}
"""Why a session that the other filters select stays, in words for the user; the first that holds counts."""

_BATCH = 500


@dataclass(frozen=True)
class Protection:
    """What is spared although it ended long ago.

    pinned, archived: whether such sessions are. in_use: whether earlier segments of a conversation
    that is still in use are; without that they go, and the next segment loses its parent.
    now: epoch seconds; compression locks that run out later are in force.
    """

    now: float
    pinned: bool = True
    archived: bool = False
    in_use: bool = True


@dataclass(frozen=True)
class Choice:
    """rows: of the sessions to take, oldest start first. stay: rows of the others, by their reason.

    A row has id, source, title, model, started_at, ended_at, message_count, archived, last_active,
    is_pinned, is_locked.
    """

    rows: list[Row] = field(default_factory=list)
    stay: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The sessions to take."""
        return [row["id"] for row in self.rows]


def choose(
    connection: Connection,
    selection: Selection,
    protection: Protection,
    *,
    among: Sequence[str] | None = None,
    old_only: bool = False,
) -> Choice:
    """Decides over every selected session, or over those of them that `among` names.

    old_only: leaves sessions out that are too recent, which saves their rows. Run it in one read
    transaction or with the write lock: it takes more than one statement.
    """
    condition, parameters = selection.aged if old_only else (selection.condition, selection.parameters)
    if among is not None:
        condition, parameters = f"s.id IN (SELECT value FROM json_each(?)) AND {condition}", (
            json.dumps(list(among)), *parameters,
        )  # fmt: skip
    found = connection.execute(_facts(selection.shape, condition), (protection.now, *parameters)).fetchall()
    used: set[str] = set()
    if found and protection.in_use:
        used = _in_use(connection, selection, protection, None if among is None else [row["id"] for row in found])
    choice = Choice([], {reason: [] for reason in REASONS})
    for row in found:
        reason = _reason(row, selection.idle_since, protection, used)
        if reason is None:
            choice.rows.append(row)
        else:
            choice.stay[reason].append(row)
    return choice


def _reason(row: Row, idle_since: float | None, protection: Protection, used: set[str]) -> str | None:
    if idle_since is not None:
        if row["last_active"] is None:
            return "no_time"
        if row["last_active"] >= idle_since:
            return "too_recent"
    if row["ended_at"] is None:
        return "never_ended"
    if row["is_locked"]:
        return "locked"
    if row["is_pinned"] and protection.pinned:
        return "pinned"
    if row["id"] in used:
        return "in_use"
    if row["archived"] and protection.archived:
        return "archived"
    return None


def _facts(shape: Shape, condition: str) -> str:
    """SELECT of the rows of sessions `s`; its first parameter is the moment by which locks are judged."""

    def named(name: str) -> str:
        return f"{column(shape, 'sessions', name, 's')} AS {name}"

    return (
        f"SELECT s.id, s.source, {named('title')}, {named('model')}, s.started_at, s.ended_at,"
        f" {named('message_count')}, coalesce({column(shape, 'sessions', 'archived', 's')}, 0) AS archived,"
        f" {last_active(shape)} AS last_active, {_pinned(shape)} AS is_pinned, {held_lock(shape, 's.id')} AS is_locked"
        f" FROM sessions AS s WHERE {condition} ORDER BY s.started_at, s.id"
    )


def _pinned(shape: Shape) -> str:
    return f"coalesce({column(shape, 'sessions', 'pinned', 's')}, 0) <> 0"


def _in_use(
    connection: Connection, selection: Selection, protection: Protection, among: Sequence[str] | None
) -> set[str]:
    """Sessions that a session in use continues, at any depth.

    In use is what has not ended, is not old enough, is pinned or locked.
    """
    shape, since = selection.shape, selection.idle_since
    late = "0" if since is None else f"coalesce({last_active(shape)} >= ?, 1)"
    pinned = _pinned(shape) if protection.pinned else "0"
    sql = (
        "SELECT c.session_id, c.continues_session_id,"
        f" s.ended_at IS NULL OR {late} OR {pinned} OR {held_lock(shape, 's.id')}"
        f" FROM ({continuations(shape)}) AS c JOIN sessions AS s ON s.id = c.session_id"
    )
    parameters = (protection.now,) if since is None else (since, protection.now)
    if among is None:
        links = connection.execute(sql, parameters).fetchall()
    else:
        links = _below(connection, sql, parameters, among)
    return earlier({row[0]: row[1] for row in links}, (row[0] for row in links if row[2]))


def _below(connection: Connection, sql: str, parameters: tuple[float, ...], start: Sequence[str]) -> list[Row]:
    """The links of everything that continues these sessions, at any depth."""
    links: dict[str, Row] = {}
    waiting = list(start)
    while waiting:
        batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
        marks = ", ".join("?" * len(batch))
        for row in connection.execute(f"{sql} WHERE c.continues_session_id IN ({marks})", (*parameters, *batch)):
            if row[0] not in links:
                links[row[0]] = row
                waiting.append(row[0])
    return list(links.values())


def earlier(continues: Mapping[str, str], sessions: Iterable[str]) -> set[str]:
    """What these sessions continue, at any depth; links may loop."""
    found: set[str] = set()
    for session in sessions:
        before = continues.get(session)
        while before is not None and before not in found:
            found.add(before)
            before = continues.get(before)
    return found
