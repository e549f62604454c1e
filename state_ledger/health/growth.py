"""How fast a store grows, from the times of its messages, and when it will be how big."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from state_ledger import storage
from state_ledger.sqlite import Connection

WEEK_S = 7 * 86400
WEEKS = 12
"""Weeks that are told one by one; the last four of them make the pace."""
PACE_WEEKS = 4
MARKS = {"1 GB": 10**9, "5 GB": 5 * 10**9, "10 GB": 10 * 10**9}


@dataclass(frozen=True)
class Growth:
    """weeks: (when a week began, epoch seconds; messages in it), the oldest first, the last ends now.

    bytes: pages in use times their size. bytes_per_message: all of these, indexes included, by messages.
    bytes_per_week: at the pace of the last four weeks. reached: for 1, 5 and 10 GB when it gets there,
    epoch seconds; None where it is that big already, or does not grow.
    """

    weeks: tuple[tuple[float, int], ...]
    bytes: int
    bytes_per_message: float
    bytes_per_week: float
    reached: Mapping[str, float | None]


def measure(connection: Connection, now: float | None = None) -> Growth:
    """Walks the index of messages by session and time once; no message is read."""
    now = time.time() if now is None else now
    begin = now - WEEKS * WEEK_S
    counted = dict(
        connection.execute(
            "SELECT CAST((timestamp - :begin) / :week AS INTEGER), count(*) FROM ledger_message_times"
            " WHERE timestamp >= :begin AND timestamp < :now GROUP BY 1",
            {"begin": begin, "week": WEEK_S, "now": now},
        ).fetchall()
    )
    messages = connection.execute("SELECT count(*) FROM main.messages").fetchone()[0]
    found = storage.pages(connection)
    used = (found.total - found.free) * found.size
    weeks = tuple((begin + week * WEEK_S, int(counted.get(week, 0))) for week in range(WEEKS))
    each = used / messages if messages else 0.0
    pace = each * sum(number for _begin, number in weeks[-PACE_WEEKS:]) / PACE_WEEKS
    reached = {
        name: now + (mark - used) / pace * WEEK_S if used < mark and pace > 0 else None for name, mark in MARKS.items()
    }
    return Growth(weeks, used, each, pace, reached)
