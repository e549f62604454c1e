"""What is not in the total and why: rows set aside, and figures of a store that disagree (rules 5, 8, 9)."""

from __future__ import annotations

from state_ledger.ledger.columns import LAST_MILLISECOND, LAST_SECOND, column
from state_ledger.ledger.usage import AMOUNTS, COUNTERS, ROUNDING
from state_ledger.shape import Shape

CUMULATIVE_UNTIL = 1774483200
"""2026-03-26 UTC: until then gateway sessions added running totals on every message."""

CACHE_IN_INPUT_UNTIL = 1773705600
"""2026-03-17 UTC: until then cached tokens were counted in `input_tokens` and cache figures stayed 0."""

GATEWAYS = ("telegram", "discord", "whatsapp", "slack", "signal", "matrix", "mattermost", "email", "sms")


def views(shape: Shape) -> list[tuple[str, str]]:
    """The audit views as (name, SELECT)."""
    return [
        ("ledger_set_aside", _set_aside()),
        ("ledger_discrepancies", " UNION ALL ".join(_discrepancies(shape))),
    ]


def _set_aside() -> str:
    """Rows that cannot be true, with the reason; they are in no sum.

    Columns: source_table, session_id, model, task, reason, claimed_usd (what the row claims).
    """
    claimed = "max(coalesce(estimated_cost_usd, 0), coalesce(actual_cost_usd, 0))"
    of_sessions = f"SELECT 'sessions', session_id, NULL, NULL, problem, {claimed} FROM"
    return (
        f"SELECT source_table, session_id, model, task, problem AS reason, {claimed} AS claimed_usd"
        " FROM ledger_usage_rows WHERE problem IS NOT NULL"
        f" UNION ALL {of_sessions} ledger_session_rows WHERE problem IS NOT NULL"
        f" UNION ALL {of_sessions} ledger_session_rest WHERE problem IS NOT NULL"
    )


def _discrepancies(shape: Shape) -> list[str]:
    """Figures that disagree or are known to have been miscounted; reported, never corrected silently.

    Columns: kind, session_id, figure (a column's name or NULL), session_value, usage_value, difference.
    """
    # Column by column in one pass over the sessions: [rest, what the session row carries].
    pairs = ", ".join(f"'{name}', json_array({name}, own_{name})" for name in (*COUNTERS, *AMOUNTS))
    rest, own = "json_extract(value, '$[0]')", "json_extract(value, '$[1]')"
    arms = [
        "SELECT 'usage rows exceed the session' AS kind, session_id, key AS figure,"
        f" {own} AS session_value, {own} - {rest} AS usage_value, {rest} AS difference"
        f" FROM ledger_session_rest, json_each(json_object({pairs}))"
        f" WHERE {rest} < -{ROUNDING} * ({own} - {rest})"
    ]
    arms.append(
        "SELECT CASE WHEN u.attribution = 'orphan' THEN 'usage row without a session' ELSE 'cost without tokens' END,"
        " u.session_id, 'cost_usd', NULL, u.cost_usd, u.cost_usd FROM ledger_usage AS u"
        " WHERE u.attribution = 'orphan' OR u.processed_tokens = 0 AND u.cost_usd > 0"
    )
    arms.append(
        "SELECT 'actual cost replaces estimates', r.session_id, 'actual_cost_usd', r.actual_cost_usd, r.estimates,"
        " r.actual_cost_usd - r.estimates FROM ledger_replaced_estimates AS r"
    )
    for table in shape.leftover_usage_tables:
        arms.append(
            f"SELECT 'left-over table {table}', u.session_id, 'processed_tokens', NULL,"
            " coalesce(u.input_tokens, 0) + coalesce(u.output_tokens, 0), NULL"
            f" FROM ledger_usage_rows AS u WHERE u.source_table = '{table}'"
        )
    arms += _old_periods(shape)
    for table, name in (("sessions", "started_at"), ("sessions", "ended_at")):
        if shape.has(table, name):
            milliseconds = f"s.{name} BETWEEN {LAST_SECOND} AND {LAST_MILLISECOND}"
            arms.append(
                f"SELECT CASE WHEN {milliseconds} THEN 'time in milliseconds' ELSE 'time that cannot be read' END,"
                f" s.id, '{name}', CASE WHEN {milliseconds} THEN s.{name} END, NULL, NULL FROM main.{table} AS s"
                f" WHERE s.{name} NOT BETWEEN 1 AND {LAST_SECOND}"
            )
    return arms


def _old_periods(shape: Shape) -> list[str]:
    """Periods in which the program is known to have miscounted (its published history)."""
    arms = []
    gateways = ", ".join(f"'{name}'" for name in GATEWAYS)
    cost = column(shape, "sessions", "estimated_cost_usd", "s")
    arms.append(
        f"SELECT 'gateway session from before 2026-03-26: counted too often', s.id, 'input_tokens',"
        f" {column(shape, 'sessions', 'input_tokens', 's')}, NULL, {cost} FROM main.sessions AS s"
        f" WHERE s.source IN ({gateways}) AND s.started_at BETWEEN 1 AND {CUMULATIVE_UNTIL}"
    )
    if shape.has("sessions", "cache_read_tokens"):
        arms.append(
            "SELECT 'session from before 2026-03-17: cached tokens counted as input', s.id, 'cache_read_tokens',"
            f" s.cache_read_tokens, NULL, {cost} FROM main.sessions AS s"
            f" WHERE s.started_at BETWEEN 1 AND {CACHE_IN_INPUT_UNTIL} AND coalesce(s.cache_read_tokens, 0) = 0"
            f" AND {column(shape, 'sessions', 'input_tokens', 's')} > 0"
        )
    return arms
