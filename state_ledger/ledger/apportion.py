"""`ledger_time`: usage spread over 15-minute buckets under each day rule (accounting rules 20 and 21)."""

from __future__ import annotations

from state_ledger.ledger.columns import bounds_of_messages, bucket, messages_of, seconds
from state_ledger.shape import Shape

DAY_RULES = ("activity", "started", "last_seen")
"""`activity`: in proportion to the session's messages, an estimate, since a store keeps lifetime
counters and not calls; `started`: all on the day the session began; `last_seen`: all on the day of
the last call."""

ALL_TIME = "all_time"
"""The `day_rule` of rows that are not placed in time: whole counters, for questions without a period."""

WHOLE = ("session_id", "source", "profile", "model", "canonical_model", "billing_provider", "billing_base_url",
         "billing_mode", "task", "attribution", "legacy", "basis", "partial",
         "cost_status", "cost_source")  # fmt: skip
SPREAD = ("api_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
          "reasoning_tokens", "prompt_tokens", "fresh_tokens", "processed_tokens", "cost_usd", "actual_usd",
          "estimated_usd", "stored_estimate_usd", "included_calls", "unknown_calls", "unknown_tokens")  # fmt: skip

USED = (*WHOLE, *SPREAD, "started_at", "first_seen", "last_seen")
"""What of `ledger_usage` the days need."""


def views(shape: Shape) -> list[tuple[str, str]]:
    """The view of usage in time as (name, SELECT)."""
    rules = " UNION ALL ".join([_by_activity(), *map(_at_once, DAY_RULES[1:]), _not_placed()])
    spread = ", ".join(f"{name} * share AS {name}" for name in SPREAD)
    edges = "day_rule, bucket, first_bucket, last_bucket, share"
    # Read once, whatever the rule: each arm that named the view would be compiled and read anew.
    used = f"WITH usage AS MATERIALIZED (SELECT {', '.join(USED)} FROM ledger_usage)"
    return [("ledger_time", f"{used} SELECT {', '.join(WHOLE)}, {edges}, {spread} FROM ({rules})")]


def _by_activity() -> str:
    """One row per usage row and bucket in which its session has messages.

    The histogram of a session is read through the index on messages(session_id, timestamp), once and
    for that session alone: a period that is bounded by `first_bucket` and `last_bucket` never reads
    the messages of sessions outside it, hence sessions first and usage after.
    """
    first, last = bounds_of_messages("s.id")
    at = f"CASE WHEN h.key <> '' THEN CAST(h.key AS INTEGER) ELSE {bucket(moment(DAY_RULES[0]))} END"
    placed = (
        f"SELECT u.*, 'activity' AS day_rule, {at} AS bucket,"
        # A session without messages falls on its last call, which lies between these two bounds.
        f" {first} AS first_bucket, {last} AS last_bucket, h.value AS share"
        f" FROM main.sessions AS s CROSS JOIN json_each({histogram('s.id')}) AS h"
        " CROSS JOIN usage AS u ON u.session_id = s.id"
    )
    orphans = (
        f"SELECT u.*, 'activity', {at}, {at}, {at}, h.value FROM usage AS u"
        f" CROSS JOIN json_each({histogram('u.session_id')}) AS h WHERE u.attribution = 'orphan'"
        # Found by the indexes alone, so that a store without orphans does not read its usage twice.
        " AND u.session_id IN (SELECT o.session_id FROM ledger_usage_rows AS o"
        " WHERE NOT EXISTS (SELECT 1 FROM main.sessions AS s WHERE s.id = o.session_id))"
    )
    return f"{placed} UNION ALL {orphans}"


def histogram(session: str) -> str:
    """SQL for JSON: the share of a session's messages by bucket; one share of 1 without a bucket if it has none."""
    return (
        f"coalesce(nullif((SELECT json_group_object(b, part) FROM (SELECT {bucket(seconds('m.timestamp'))} AS b,"
        f" count(*) * 1.0 / sum(count(*)) OVER () AS part {messages_of(session)} GROUP BY 1)), '{{}}'), '{{\"\":1.0}}')"
    )


def moment(day_rule: str) -> str:
    """SQL over a usage row `u`: when it is placed under a rule; for `activity`, in a session without messages."""
    started = day_rule == "started"
    order = ("started_at", "first_seen", "last_seen") if started else ("last_seen", "started_at", "first_seen")
    return f"coalesce({', '.join(f'u.{name}' for name in order)})"


def _at_once(day_rule: str) -> str:
    at = bucket(moment(day_rule))
    return f"SELECT u.*, '{day_rule}', {at}, {at}, {at}, 1 FROM usage AS u"


def _not_placed() -> str:
    return f"SELECT u.*, '{ALL_TIME}', NULL, NULL, NULL, 1 FROM usage AS u"
