"""Version 20: sessions from before usage was kept per model get one usage row each.

Source: store-format, 3.3. The row carries all models of the session under the one it recorded, and
`first_seen` is the session's start to the last digit, by which such rows can be told. A session that
has usage rows already is left alone: its own would count the same calls again.
"""

from __future__ import annotations

from sqlite_utils import Database

from state_ledger.migrate.migration_set import MIGRATIONS

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


@MIGRATIONS(name="v20_usage_rows")
def seed_usage(db: Database) -> None:
    """Adds a row to `session_model_usage` per session that used tokens."""
    used = " + ".join(f"coalesce({name}, 0)" for name in _TOKENS)
    counted = ("api_call_count", *_TOKENS, "estimated_cost_usd", "actual_cost_usd")
    billing = ("billing_provider", "billing_base_url", "billing_mode")
    db.conn.execute(
        f"""INSERT OR IGNORE INTO session_model_usage(
            session_id, model, {", ".join(billing)}, {", ".join(counted)},
            cost_status, cost_source, first_seen, last_seen)
        SELECT id, coalesce(model, 'unknown'), {", ".join(f"coalesce({name}, '')" for name in billing)},
            {", ".join(f"coalesce({name}, 0)" for name in counted)},
            cost_status, cost_source, started_at, coalesce(ended_at, started_at)
        FROM sessions AS s WHERE {used} > 0
        AND NOT EXISTS (SELECT 1 FROM session_model_usage AS u WHERE u.session_id = s.id AND u.task = '')"""
    )
