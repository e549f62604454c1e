"""Every call of a store once, in dollars: SQL over the raw tables, and a small store whose sum is known by hand.

Written from the rules of docs/accounting.md and not from the views of the ledger, so that a mistake in the
one is none in the other.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from state_ledger.session_db import SessionDB
from state_ledger.sqlite import read_only_uri, sqlite3

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
COUNTED = ("api_call_count", *TOKENS)
MONEY = ("estimated_cost_usd", "actual_cost_usd")

DAY = 86_400.0
FIRST = 1_793_000_000.0
"""When the first session of the known store begins, in epoch seconds: October 2026."""


def _sound(alias: str) -> str:
    """A row whose numbers can be true: no text, nothing negative, nothing endless."""
    return " AND ".join(
        f"({alias}.{name} IS NULL OR (typeof({alias}.{name}) IN ('integer', 'real')"
        f" AND {alias}.{name} >= 0 AND {alias}.{name} <= 9e15))"
        for name in (*COUNTED, "reasoning_tokens", *MONEY)
    )


def _plausible(cost: str, tokens: str) -> str:
    """Not over a dollar per thousand tokens, which is asked from five dollars on."""
    return f"NOT ({tokens} > 0 AND {cost} >= 5 AND {cost} > {tokens} / 1000.0)"


_USED = " + ".join(f"coalesce({name}, 0)" for name in TOKENS)
_LEFT = " + ".join(f"max({name}, 0)" for name in TOKENS)
_BEYOND = ", ".join(
    f"coalesce(s.{name}, 0) - coalesce((SELECT sum(u.{name}) FROM used AS u"
    f" WHERE u.session_id = s.id AND u.task = ''), 0) AS {name}"
    for name in (*COUNTED, *MONEY)
)
_MORE = " OR ".join([*(f"{name} > 0" for name in COUNTED), "estimated_cost_usd > 1e-12 * own_estimate"])

SQL = f"""
WITH used AS MATERIALIZED (
  SELECT t.*, coalesce(actual_cost_usd, 0) <> 0 OR cost_status IS 'actual' AS is_actual
  FROM session_model_usage AS t
  WHERE {_sound("t")} AND {_plausible(f"max({', '.join(f'coalesce({name}, 0)' for name in MONEY)})", f"({_USED})")}
),
beyond AS MATERIALIZED (
  SELECT s.id, s.estimated_cost_usd AS own_estimate, s.actual_cost_usd AS own_actual,
         (SELECT count(*) FROM used AS u WHERE u.session_id = s.id AND u.task = '' AND NOT u.is_actual) AS free,
         {_BEYOND}
  FROM sessions AS s WHERE {_sound("s")}
),
-- An actual cost for calls that usage rows hold already: it takes the place of their estimates.
settled AS MATERIALIZED (
  SELECT id, actual_cost_usd AS dollars FROM beyond
  WHERE free > 0 AND actual_cost_usd > 1e-12 * own_actual AND NOT ({_MORE})
),
rest AS (
  SELECT CASE WHEN estimated_cost_usd > 1e-12 * own_estimate THEN estimated_cost_usd ELSE 0 END AS estimate,
         CASE WHEN actual_cost_usd > 1e-12 * own_actual THEN actual_cost_usd ELSE 0 END AS actual,
         {_LEFT} AS tokens
  FROM beyond WHERE id NOT IN (SELECT id FROM settled)
)
SELECT
  (SELECT coalesce(sum(CASE WHEN is_actual THEN coalesce(actual_cost_usd, 0)
                            ELSE coalesce(estimated_cost_usd, 0) END), 0)
   FROM used AS u
   WHERE NOT (u.task = '' AND NOT u.is_actual AND u.session_id IN (SELECT id FROM settled)))
  + (SELECT coalesce(sum(dollars), 0) FROM settled)
  + (SELECT coalesce(sum(CASE WHEN actual > 0 THEN actual ELSE estimate END), 0)
     FROM rest WHERE {_plausible("max(estimate, actual)", "tokens")})
"""
"""One number: dollars, actual before estimated, of all usage rows and of what session rows hold beyond them."""


def total(path: Path) -> float:
    """The dollars of a store by `SQL`."""
    with closing(sqlite3.connect(read_only_uri(path), uri=True)) as connection:
        return float(connection.execute(SQL).fetchone()[0])


PARTS: dict[str, tuple[str, float]] = {
    "plain": ("one model", 1.00),
    "switch": ("two models in one session: 2.00 and 1.00", 3.00),
    "helpers": ("2.00, and helper calls for 0.05 and 0.45", 2.50),
    "subscription": ("covered by a subscription", 0.00),
    "unknown": ("no price known", 0.00),
    "actual": ("estimated 1.50, billed 1.20", 1.20),
    "legacy": ("a session row without usage rows", 4.00),
    "partly": ("5.00, of which usage rows hold 3.50", 5.00),
    "delegator": ("1.00, and a delegate for 0.80", 1.80),
    "chain": ("two segments of a compressed conversation: 2.00 and 0.60", 2.60),
}
"""The parts of the known store: what each is, and its dollars."""

KNOWN_TOTAL = 21.10
"""The sum of PARTS, added up by hand."""


def make_known(path: Path) -> None:
    """Writes the store of PARTS."""
    with SessionDB(path) as db:
        connection = db._conn
        for number, row in enumerate(_SESSIONS):
            _insert(connection, "sessions", {**_session(number), **row})
        for row in _USAGE:
            _insert(connection, "session_model_usage", {**_CALLS, "first_seen": FIRST, "last_seen": FIRST + 60, **row})
        for number, session in enumerate(_SESSIONS):
            for role in ("user", "assistant"):
                text, at = "Which harbour is nearest?", FIRST + number * DAY + 10
                row = {"session_id": session["id"], "role": role, "content": text, "timestamp": at}
                _insert(connection, "messages", row)


def _insert(connection: Any, table: str, row: dict[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


MODEL, OTHER = "claude-sonnet-4-5", "gpt-5"
_CALLS = {
    "api_call_count": 4, "input_tokens": 90_000, "output_tokens": 6_000, "cache_read_tokens": 200_000,
    "cache_write_tokens": 20_000, "model": MODEL, "billing_provider": "anthropic", "billing_base_url": "",
    "billing_mode": "api", "task": "", "cost_status": "estimated", "cost_source": "official_docs_snapshot",
}  # fmt: skip


def _session(number: int) -> dict[str, Any]:
    at = FIRST + number * DAY
    own = {name: value for name, value in _CALLS.items() if name != "task"}
    return {**own, "source": "cli", "started_at": at, "ended_at": at + 600, "message_count": 2}


_SESSIONS: list[dict[str, Any]] = [
    {"id": "plain", "estimated_cost_usd": 1.00},
    {"id": "switch", "estimated_cost_usd": 3.00, "api_call_count": 8, "input_tokens": 180_000, "output_tokens": 12_000,
     "cache_read_tokens": 400_000, "cache_write_tokens": 40_000, "model": OTHER},
    {"id": "helpers", "estimated_cost_usd": 2.00},
    {"id": "subscription", "estimated_cost_usd": 0.0, "cost_status": "included", "billing_mode": "subscription"},
    {"id": "unknown", "estimated_cost_usd": 0.0, "cost_status": "unknown", "cost_source": "none",
     "model": "house/mystery-7b"},
    {"id": "actual", "estimated_cost_usd": 1.50, "actual_cost_usd": 1.20, "cost_status": "actual"},
    {"id": "legacy", "estimated_cost_usd": 4.00},
    {"id": "partly", "estimated_cost_usd": 5.00, "api_call_count": 6, "input_tokens": 120_000},
    {"id": "delegator", "estimated_cost_usd": 1.00},
    {"id": "delegate", "estimated_cost_usd": 0.80, "source": "subagent", "parent_session_id": "delegator",
     "model_config": '{"_delegate_from": "delegator"}'},
    {"id": "chain", "estimated_cost_usd": 2.00, "end_reason": "compression"},
    {"id": "chain-2", "estimated_cost_usd": 0.60, "parent_session_id": "chain"},
]  # fmt: skip

_USAGE: list[dict[str, Any]] = [
    {"session_id": "plain", "estimated_cost_usd": 1.00},
    {"session_id": "switch", "estimated_cost_usd": 2.00},
    {"session_id": "switch", "estimated_cost_usd": 1.00, "model": OTHER, "billing_provider": "openai"},
    {"session_id": "helpers", "estimated_cost_usd": 2.00},
    {"session_id": "helpers", "estimated_cost_usd": 0.05, "task": "title_generation"},
    {"session_id": "helpers", "estimated_cost_usd": 0.45, "task": "compression"},
    {"session_id": "subscription", "cost_status": "included", "billing_mode": "subscription"},
    {"session_id": "unknown", "cost_status": "unknown", "cost_source": "none", "model": "house/mystery-7b"},
    {"session_id": "actual", "estimated_cost_usd": 1.50, "actual_cost_usd": 1.20, "cost_status": "actual"},
    {"session_id": "partly", "estimated_cost_usd": 3.50},
    {"session_id": "delegator", "estimated_cost_usd": 1.00},
    {"session_id": "delegate", "estimated_cost_usd": 0.80},
    {"session_id": "chain", "estimated_cost_usd": 2.00},
    {"session_id": "chain-2", "estimated_cost_usd": 0.60},
]  # fmt: skip
