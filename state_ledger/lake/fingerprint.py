"""What tells that the sessions of a month have changed since they were read, without reading what was said.

Of each session: its row, its usage rows, its place among other sessions, and of its messages how many there are,
how many of them are live and the last id and time. Text that was changed in place does not show; Hermes Agent
changes none, what does is a person's own SQL, after which `--full` reads everything again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from state_ledger.lake.names import month_of
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection, quoted

SessionId = bytes | str | int | float | None
"""As it is stored: nearly always the bytes of a text, which need not be UTF-8."""

_UNREAD = frozenset({"system_prompt", "model_config"})
"""Long columns of sessions of which nothing is pushed but the kind of a session, which is compared by itself."""

Rows = list[tuple[Any, ...]]

_MODULUS = 1 << 128


class Sessions(NamedTuple):
    """The sessions of a store as they are now, by period: a month, or a year that is kept in one.

    Ids that only messages or usage rows have stand in the period `unknown`. stored: those that have a row.
    messages: how many each has. related: rows that change by what happens to other sessions, by table and session.
    digests: by period; those of two periods add up to that of both together.
    """

    periods: Mapping[str, Sequence[SessionId]]
    stored: frozenset[SessionId]
    messages: Mapping[SessionId, int]
    related: Mapping[str, Mapping[SessionId, Rows]]
    digests: Mapping[str, str]


def take(
    connection: Connection, shape: Shape, period_of: Callable[[str], str], related: Mapping[str, Rows]
) -> Sessions:
    """The fingerprint of a store; texts of the connection come as bytes. Raises sqlite3.DatabaseError.

    period_of: which period a month is in. related: rows of tables, the session first.
    """
    marks: dict[SessionId, Any] = defaultdict(hashlib.blake2b)
    periods: dict[SessionId, str] = {}
    listed = ", ".join(f"s.{quoted(name)}" for name in sorted(shape.tables["sessions"]) if name not in _UNREAD)
    started = dict(map(tuple, connection.execute("SELECT session_id, started_at FROM ledger_session_facts")))
    for session, *row in connection.execute(f"SELECT s.id, {listed} FROM main.sessions AS s"):
        marks[session].update(repr(row).encode())
        periods[session] = period_of(month_of(started.get(session)))
    stored = frozenset(periods)
    for session, *row in connection.execute("SELECT session_id, * FROM ledger_usage_rows ORDER BY session_id"):
        marks[session].update(repr(row).encode())
    live = "sum(m.active IS NULL OR m.active <> 0)" if shape.has("messages", "active") else "0"
    counted = (
        f"SELECT m.session_id, count(*), {live}, max(m.id), max(m.timestamp) FROM main.messages AS m"
        " GROUP BY m.session_id"
    )
    messages = {}
    for session, count, *rest in connection.execute(counted):
        messages[session] = count
        marks[session].update(repr((count, *rest)).encode())
    grouped: dict[str, dict[SessionId, Rows]] = {}
    for table, rows in related.items():
        grouped[table] = defaultdict(list)
        for row in rows:
            grouped[table][row[0]].append(row)
            marks[row[0]].update(repr(row).encode())
    found: dict[str, list[SessionId]] = defaultdict(list)
    sums: dict[str, int] = defaultdict(int)
    for session, mark in marks.items():
        period = periods.get(session, period_of(month_of(None)))
        mark.update(repr(session).encode())
        found[period].append(session)
        sums[period] += int.from_bytes(mark.digest()[:16], "big")
    # In an order of their own, so that the same sessions make the same files.
    ordered = {period: sorted(sessions, key=repr) for period, sessions in found.items()}
    return Sessions(ordered, stored, messages, grouped, {period: _hex(number) for period, number in sums.items()})


def added(digests: Sequence[str]) -> str:
    """The digest of several periods as one; '' where one of them is not known."""
    return "" if "" in digests else _hex(sum(int(digest, 16) for digest in digests))


def _hex(number: int) -> str:
    return f"{number % _MODULUS:032x}"
