"""The accounting rules read once more, in plain Python over the raw rows, without any of our SQL.

What the semantic layer says must equal this. It is written from the rules, slowly and openly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from state_ledger.sqlite import sqlite3

BUCKETS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
COUNTERS = ("api_call_count", *BUCKETS, "reasoning_tokens")
AMOUNTS = ("estimated_cost_usd", "actual_cost_usd")
LARGEST = 9e15


@dataclass
class Totals:
    """Sums over every call of a store: by counter, in dollars by basis, and the calls without dollars."""

    counters: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0.0))
    dollars: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    tokens: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def cost(self) -> float:
        return sum(self.dollars.values())


def read(path: Path, bound: float = 1.0) -> Totals:
    """The totals of a store."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    sessions = _rows(connection, "sessions")
    usage = [row for row in _rows(connection, "session_model_usage") if _can_be_true(row, bound)]
    connection.close()
    main = defaultdict(list)
    for row in usage:
        if row.get("task", "") == "":
            main[row["session_id"]].append(row)
    totals = Totals()
    given_way: set[int] = set()
    for session in sessions:
        if _is_sound(session):
            _add_session(totals, session, main[session["id"]], given_way, bound)
    for row in usage:
        if id(row) not in given_way:
            _add(totals, row, row.get("estimated_cost_usd"), _own_actual(row), row)
    return totals


def _rows(connection: Any, table: str) -> list[dict[str, Any]]:
    try:
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
    except sqlite3.OperationalError:
        return []


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value <= LARGEST)


def _is_sound(row: Mapping[str, Any]) -> bool:
    return all(_is_number(row.get(name)) for name in (*COUNTERS, *AMOUNTS))


def _processed(row: Mapping[str, Any]) -> float:
    return sum(row.get(name) or 0 for name in BUCKETS)


def _implausible(cost: float, tokens: float, bound: float) -> bool:
    # Below 5 dollars a rate says little: fees per call, images.
    return tokens > 0 and cost >= 5 and cost > bound * tokens / 1000


def _can_be_true(row: Mapping[str, Any], bound: float) -> bool:
    cost = max((row.get(name) or 0 for name in AMOUNTS), default=0) if _is_sound(row) else 0
    return _is_sound(row) and not _implausible(cost, _processed(row), bound)


def _own_actual(row: Mapping[str, Any]) -> float | None:
    """Usage rows hold 0 where nothing was recorded: a 0 is an actual cost only if its status says so."""
    actual = row.get("actual_cost_usd")
    return actual if actual or row.get("cost_status") == "actual" else None


def _add_session(
    totals: Totals, session: Mapping[str, Any], rows: list[Any], given_way: set[int], bound: float
) -> None:
    rest: dict[str, Any] = {}
    for name in (*COUNTERS, *AMOUNTS):
        own = session.get(name)
        if own is None:
            rest[name] = None
            continue
        left = own - sum(row.get(name) or 0 for row in rows)
        rest[name] = left if left > (1e-12 * own if name in AMOUNTS else 0) else 0
    free = [row for row in rows if _own_actual(row) is None]
    other_rest = any(rest[name] for name in ("api_call_count", *BUCKETS, "estimated_cost_usd"))
    if rest["actual_cost_usd"] and free and not other_rest:
        # Money for the very calls that the rows hold: their estimates give way to it.
        weights = [row.get("estimated_cost_usd") or 0 for row in free]
        weights = weights if sum(weights) else [_processed(row) for row in free]
        weights = weights if sum(weights) else [1] * len(free)
        for row, weight in zip(free, weights, strict=True):
            given_way.add(id(row))
            _add(totals, row, None, rest["actual_cost_usd"] * weight / sum(weights), row)
        rest["actual_cost_usd"] = 0
    if not any(rest.values()):
        return
    actual = rest["actual_cost_usd"] or None
    if actual is None and session.get("actual_cost_usd") == 0 and session.get("cost_status") == "actual":
        actual = 0.0
    cost = max(rest["estimated_cost_usd"] or 0, rest["actual_cost_usd"] or 0)
    if not _implausible(cost, _processed(rest), bound):
        _add(totals, rest, rest["estimated_cost_usd"], actual, session)


def _add(
    totals: Totals, row: Mapping[str, Any], estimate: float | None, actual: float | None, stated: Mapping[str, Any]
) -> None:
    status, source = stated.get("cost_status"), stated.get("cost_source")
    if actual is not None:
        basis, dollars = "actual", actual
    elif estimate:
        basis, dollars = "estimated", estimate
    elif status == "included":
        basis, dollars = "included", 0.0
    elif estimate is None or status == "unknown" or source in (None, "", "none"):
        basis, dollars = "unknown", 0.0
    else:
        basis, dollars = "estimated", 0.0
    totals.dollars[basis] += dollars
    totals.tokens[basis] += _processed(row)
    for name in COUNTERS:
        totals.counters[name] += row.get(name) or 0
