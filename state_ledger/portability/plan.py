"""Which messages an export will hold, known before its first byte, so that a cut file can be told from a whole one.

Accounting rule 15: live and compacted messages, each logical message (same session, role, content and
time) once and under its first id; messages that were taken back only where they are asked for.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from state_ledger.portability.scope import NothingToExport, Scope, session_ids
from state_ledger.portability.source import Source

LIVE, COMPACTED, TAKEN_BACK = "live", "compacted", "taken back"

_SESSIONS_AT_ONCE = 200
_MESSAGES_AT_ONCE = 500


@dataclass
class Part:
    """One session of an export.

    ids: of its messages, rising. states: of the messages whose copies say more than they do themselves.
    usage: its rows of calls.
    """

    session_id: str
    ids: array[int] = field(default_factory=lambda: array("q"))
    states: dict[int, str] = field(default_factory=dict)
    usage: int = 0


@dataclass
class Plan:
    """parts: the sessions in order. taken_back: messages left out because they were taken back.
    copies: rows left out because another row is the same message."""

    parts: list[Part]
    taken_back: int = 0
    copies: int = 0

    @property
    def messages(self) -> int:
        return sum(len(part.ids) for part in self.parts)

    @property
    def usage(self) -> int:
        return sum(part.usage for part in self.parts)


def of_every_row(source: Source, sessions: Sequence[str]) -> Plan:
    """All rows of these sessions as they are stored: taken back, repeated or not."""
    plan = Plan([Part(session_id) for session_id in sessions])
    for start in range(0, len(plan.parts), _SESSIONS_AT_ONCE):
        parts = plan.parts[start : start + _SESSIONS_AT_ONCE]
        by_id = {part.session_id: part for part in parts}
        wanted = (json.dumps(list(by_id)),)
        for session_id, number in source.each(
            "SELECT session_id, id FROM main.messages WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY id",
            wanted,
        ):
            by_id[session_id].ids.append(number)
        _count_usage(source, by_id, wanted)
    return plan


def make(
    source: Source, scope: Scope, *, with_taken_back: bool = False, among: Collection[int] | None = None
) -> Plan:
    """Looks up what a scope holds now.

    among: message ids to which the export is limited, for a search; only sessions that have one are in it.
    Raises NothingToExport.
    """
    if among is None:
        plan = Plan([Part(session_id) for session_id in session_ids(source, scope)])
    else:
        plan = Plan([Part(session_id) for session_id in _sessions_of(source, among)])
        if not plan.parts:
            raise NothingToExport(f"There is nothing to export: no message was found for {scope.value!r}.")
    for start in range(0, len(plan.parts), _SESSIONS_AT_ONCE):
        _fill(source, plan, plan.parts[start : start + _SESSIONS_AT_ONCE], with_taken_back, among)
    return plan


def _fill(
    source: Source, plan: Plan, parts: list[Part], with_taken_back: bool, among: Collection[int] | None
) -> None:
    by_id = {part.session_id: part for part in parts}
    wanted = (json.dumps(list(by_id)),)
    inactive = _inactive(source, wanted)
    times = source.each(
        "SELECT session_id, timestamp, id FROM main.messages"
        " WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY session_id, timestamp, id",
        wanted,
    )
    same_time = _SameTime()
    for session_id, timestamp, number in times:
        by_id[session_id].ids.append(number)
        same_time.add((session_id, timestamp), number)
    copies = _copies(source, same_time)
    states = _states(copies, inactive)
    wanted_ids = None if among is None else {copies.get(number, number) for number in among}
    for part in parts:
        _settle(plan, part, inactive, copies, states, with_taken_back, wanted_ids)
    _count_usage(source, by_id, wanted)


def _count_usage(source: Source, parts: Mapping[str, Part], wanted: tuple[str]) -> None:
    if not source.columns["session_model_usage"]:
        return
    for session_id, number in source.rows(
        "SELECT session_id, count(*) FROM main.session_model_usage"
        " WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id",
        wanted,
    ):
        parts[session_id].usage = number


def _states(copies: Mapping[int, int], inactive: Mapping[int, str]) -> dict[int, str]:
    """The states of messages that have copies: a message is live if one of its rows is."""
    best: dict[int, str] = {}
    for number, first in copies.items():
        for each in (number, first):
            state = inactive.get(each, LIVE)
            if first not in best or _RANK[state] < _RANK[best[first]]:
                best[first] = state
    return best


def _settle(
    plan: Plan,
    part: Part,
    inactive: Mapping[int, str],
    copies: Mapping[int, int],
    states: Mapping[int, str],
    with_taken_back: bool,
    wanted: Collection[int] | None,
) -> None:
    """Leaves in a part what is exported of it."""
    kept = array("q")
    for number in sorted(part.ids):
        own = inactive.get(number, LIVE)
        if wanted is not None and copies.get(number, number) not in wanted:
            continue
        if number in copies:
            plan.copies += 1
            continue
        state = states.get(number, own)
        if state == TAKEN_BACK and not with_taken_back:
            plan.taken_back += 1
            continue
        kept.append(number)
        if state != own:
            part.states[number] = state
    part.ids = kept


_RANK = {LIVE: 0, COMPACTED: 1, TAKEN_BACK: 2}


def _inactive(source: Source, wanted: tuple[str]) -> dict[int, str]:
    """The messages that are not live, with their state."""
    if not source.shape.has("messages", "active"):
        return {}
    compacted = "compacted" if source.shape.has("messages", "compacted") else "0"
    rows = source.each(
        f"SELECT id, {compacted} FROM main.messages WHERE active = 0"
        " AND session_id IN (SELECT value FROM json_each(?))",
        wanted,
    )
    return {number: COMPACTED if flag else TAKEN_BACK for number, flag in rows}


class _SameTime:
    """Messages of one session and time, in the order in which they come; in arrays, for there may be many.

    ids: of those that share their time with another one. groups: which of them belong together.
    """

    def __init__(self) -> None:
        self.ids = array("q")
        self.groups = array("q")
        self._at: object = None
        self._first: int | None = None
        self._group = 0

    def add(self, at: object, number: int) -> None:
        if at != self._at:
            self._at, self._first = at, number
            self._group += 1
            return
        if self._first is not None:
            self.ids.append(self._first)
            self.groups.append(self._group)
            self._first = None
        self.ids.append(number)
        self.groups.append(self._group)


def _copies(source: Source, same_time: _SameTime) -> dict[int, int]:
    """Rows that repeat an earlier row, by id, with the id of the first one."""
    found: dict[int, int] = {}
    first: dict[tuple[int, bytes], int] = {}
    ids, groups = same_time.ids, same_time.groups
    for start in range(0, len(ids), _MESSAGES_AT_ONCE):
        chunk = ids[start : start + _MESSAGES_AT_ONCE]
        group = dict(zip(chunk, groups[start : start + _MESSAGES_AT_ONCE], strict=True))
        # Only the group that the last chunk ended in can go on.
        first = {key: number for key, number in first.items() if key[0] == groups[start]}
        rows = source.each(
            "SELECT id, role, typeof(content), CAST(content AS BLOB) FROM main.messages"
            " WHERE id IN (SELECT value FROM json_each(?)) ORDER BY timestamp, id",
            (json.dumps(list(chunk)),),
        )
        for number, role, kind, content in rows:
            said = b"%r\0%b" % ((role, kind), content or b"")
            key = group[number], hashlib.blake2b(said, digest_size=16).digest()
            if first.setdefault(key, number) != number:
                found[number] = first[key]
    return found


def _sessions_of(source: Source, among: Collection[int]) -> list[str]:
    rows = source.rows(
        "SELECT m.session_id, min(s.started_at) FROM main.messages AS m LEFT JOIN main.sessions AS s"
        " ON s.id = m.session_id WHERE m.id IN (SELECT value FROM json_each(?)) GROUP BY 1 ORDER BY 2, 1",
        (json.dumps(sorted(among)),),
    )
    return [str(row[0]) for row in rows]
