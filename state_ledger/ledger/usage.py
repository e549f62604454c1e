"""`ledger_usage`: every call of a store once, with its cost by basis (accounting rules 1 to 9).

Two kinds of rows make it up: stored usage rows, and per session what the session row carries beyond
its usage rows.

SQLite copies the expression of a view's column to every place that names it, so figures built on
figures would be computed many times over. The UNION ALL of the two kinds stands in the way of
that: below it stand amounts and their status, each computed once, above it the figures made of them.

Every connection parses the text of all views, so an expression that several places need is a column
of an inner query and stands there once.
"""

from __future__ import annotations

from state_ledger.ledger.columns import column, listed, literal, newest_message, seconds, some_cannot_count
from state_ledger.ledger.plausible import Bound
from state_ledger.shape import LEFTOVER_USAGE_TABLES, Shape

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
COUNTERS = ("api_call_count", *TOKENS, "reasoning_tokens")
AMOUNTS = ("estimated_cost_usd", "actual_cost_usd")
KEY = ("model", "billing_provider", "billing_base_url", "billing_mode", "task")

ROUNDING = "0.000000000001"
"""A rest below this share of the session's own figure is the rounding of a sum, not money."""

_TABLES = ("session_model_usage", *LEFTOVER_USAGE_TABLES)


def views(shape: Shape, *, profile: str, bound: Bound) -> list[tuple[str, str]]:
    """The views of usage as (name, SELECT), in the order in which they build on each other."""
    return [
        ("ledger_usage_rows", _usage_rows(shape, bound)),
        ("ledger_session_rows", _session_rows(shape)),
        ("ledger_session_rest", _session_rest(bound)),
        ("ledger_replaced_estimates", _replaced_estimates(shape)),
        ("ledger_usage", _usage(shape, profile)),
    ]


def _problem(bound: Bound | None) -> str:
    """NULL for a row that can be true, else what is wrong with it, as a phrase. Reads the counters and `tokens`."""
    names = (*COUNTERS, *AMOUNTS)
    # As SQL literals, and those as bytes: text that is not UTF-8 would fail on its way to the function.
    told = ", ".join(f"CAST(quote({name}) AS BLOB)" for name in names)
    problem = f"CASE WHEN {some_cannot_count(names)} THEN untrue({told})"
    if bound is not None:
        cost = "max(" + ", ".join(f"coalesce({name}, 0)" for name in AMOUNTS) + ")"
        problem += f" WHEN {bound.exceeded(cost, 'tokens')} THEN '{bound.reason}'"
    return f"{problem} END AS problem"


def _usage_rows(shape: Shape, bound: Bound) -> str:
    """Stored usage rows, with those that only a left-over table still holds."""
    arms = [_usage_table(shape, table, bound) for table in _TABLES if shape.has(table, "session_id")]
    if arms:
        return " UNION ALL ".join(arms)
    names = ("source_table", "session_id", *KEY, *COUNTERS, *AMOUNTS, "cost_status", "cost_source", "first_seen",
             "last_seen", "tokens", "has_actual", "problem")  # fmt: skip
    return f"SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE 0"


def _usage_table(shape: Shape, table: str, bound: Bound) -> str:
    def stored(name: str) -> str:
        return column(shape, table, name, "t")

    columns = {name: stored(name) for name in (*COUNTERS, *AMOUNTS)}
    # `model` and the rest of the key are NOT NULL where the table has them in its key; a plain column
    # keeps an index on it usable.
    shown = {
        "source_table": literal(table),
        "session_id": "t.session_id",
        **{name: column(shape, table, name, "t", absent=literal("")) for name in KEY},
        **columns,
        **{name: stored(name) for name in ("cost_status", "cost_source")},
        **{name: seconds(stored(name)) for name in ("first_seen", "last_seen")},
        "tokens": " + ".join(f"coalesce({columns[name]}, 0)" for name in TOKENS),
        "has_actual": f"coalesce({columns['actual_cost_usd']}, 0) <> 0 OR {stored('cost_status')} IS 'actual'",
    }
    select = f"SELECT *, {_problem(bound)} FROM (SELECT {listed(shown)} FROM main.{table} AS t"
    if table == _TABLES[0] or not shape.has(_TABLES[0], "session_id"):
        return f"{select})"
    # A rebuild copies its rows with task '': what the new table has already is the same call.
    same = " AND ".join(
        f"coalesce({column(shape, _TABLES[0], name, 'n')}, '') = coalesce({stored(name)}, '')" for name in KEY
    )
    return (
        f"{select} WHERE NOT EXISTS"
        f" (SELECT 1 FROM main.{_TABLES[0]} AS n WHERE n.session_id = t.session_id AND {same}))"
    )


def _session_rows(shape: Shape) -> str:
    """The counters of each session row, with what is wrong with them.

    The bound on cost is applied to the rest of a session, where the tokens are that carry it.
    """
    shown = {"session_id": "s.id", **{name: column(shape, "sessions", name, "s") for name in (*COUNTERS, *AMOUNTS)}}
    return f"SELECT *, {_problem(None)} FROM (SELECT {listed(shown)} FROM main.sessions AS s)"


def _session_rest(bound: Bound) -> str:
    """What each session row carries beyond its own `task = ''` usage rows; may be negative.

    One row per session whose counters can be true. `own_…` are the session row's figures; `free_rows`
    counts usage rows without an actual cost of their own. `more_estimated` and `more_actual` say
    whether the rest of an amount is money; `problem` why the rest cannot be true.
    """
    names = (*COUNTERS, *AMOUNTS)
    rest = ", ".join(f"s.{name} - coalesce(sum(u.{name}), 0) AS {name}" for name in names)
    own = ", ".join(f"s.{name} AS own_{name}" for name in names)
    sums = (
        "SELECT s.session_id, count(u.session_id) AS usage_rows,"
        f" coalesce(sum(NOT u.has_actual), 0) AS free_rows, {rest}, {own}"
        " FROM ledger_session_rows AS s LEFT JOIN ledger_usage_rows AS u"
        " ON u.session_id = s.session_id AND u.task = '' AND u.problem IS NULL"
        " WHERE s.problem IS NULL GROUP BY s.session_id"
    )
    more_estimated = f"estimated_cost_usd > {ROUNDING} * own_estimated_cost_usd"
    more = " OR ".join([*(f"{name} > 0" for name in COUNTERS[:5]), more_estimated])
    # An actual cost without calls, tokens or estimates to go with it: see _replaced_estimates.
    more_actual = f"actual_cost_usd > {ROUNDING} * own_actual_cost_usd AND (free_rows = 0 OR {more})"
    tokens = " + ".join(f"max(coalesce({name}, 0), 0)" for name in TOKENS)
    claimed = (
        "max(CASE WHEN more_estimated THEN estimated_cost_usd ELSE 0 END,"
        " CASE WHEN more_actual THEN actual_cost_usd ELSE 0 END)"
    )
    return (
        f"SELECT *, CASE WHEN {bound.exceeded(claimed, 'tokens')} THEN '{bound.reason}' END AS problem FROM (SELECT *,"
        f" {more_estimated} AS more_estimated, {more_actual} AS more_actual, {tokens} AS tokens FROM ({sums}))"
    )


def _replaced_estimates(shape: Shape) -> str:
    """Sessions whose actual cost is money for calls that their usage rows already hold (rules 5, 7).

    Where the rows hold all calls, tokens and estimates of the session, its actual cost cannot be
    added: every call would count twice. It replaces the estimates of the rows without an actual cost
    of their own, in proportion to the estimates, else to the tokens, else equally.
    """
    if not shape.has("sessions", "actual_cost_usd"):
        return (
            "SELECT NULL AS session_id, NULL AS actual_cost_usd, NULL AS estimates, NULL AS tokens,"
            " NULL AS usage_rows WHERE 0"
        )
    figures, covered = _replaced("s", "u")
    return (
        f"SELECT s.session_id, {listed(figures)} FROM {_with_own_rows('s', 'u')} GROUP BY s.session_id HAVING {covered}"
    )


def _replaced(session: str, row: str) -> tuple[dict[str, str], str]:
    """What the actual cost of a session replaces, as sums over its own usage rows, and the condition that it does."""
    figures = {
        "actual_cost_usd": f"{session}.actual_cost_usd - sum(coalesce({row}.actual_cost_usd, 0))",
        "estimates": f"sum(CASE WHEN {row}.has_actual THEN 0 ELSE coalesce({row}.estimated_cost_usd, 0) END)",
        "tokens": f"sum(CASE WHEN {row}.has_actual THEN 0 ELSE {row}.tokens END)",
        "usage_rows": f"sum(NOT {row}.has_actual)",
    }
    covered = [f"coalesce({session}.{name}, 0) <= sum(coalesce({row}.{name}, 0))" for name in COUNTERS[:5]]
    almost_all = f"(1 - {ROUNDING})"
    return figures, " AND ".join(
        [
            f"{figures['usage_rows']} > 0",
            *covered,
            f"coalesce({session}.estimated_cost_usd, 0) * {almost_all} <= sum(coalesce({row}.estimated_cost_usd, 0))",
            f"{session}.actual_cost_usd * {almost_all} > sum(coalesce({row}.actual_cost_usd, 0))",
        ]
    )


def _with_own_rows(session: str, row: str) -> str:
    """FROM and WHERE of the sessions that have an actual cost, with the usage rows that are their own."""
    return (
        f"ledger_session_rows AS {session} CROSS JOIN ledger_usage_rows AS {row}"
        f" ON {row}.session_id = {session}.session_id AND {row}.task = '' AND {row}.problem IS NULL"
        f" WHERE {session}.actual_cost_usd > 0 AND {session}.problem IS NULL"
    )


def _share_of_actual(usage: str) -> str:
    """SQL: what of its session's actual cost replaces the estimate of a usage row; NULL where it replaces none.

    Asked of each row by itself, which few need: a join would add up all sessions where one is wanted.
    """
    figures, covered = _replaced("n", "o")
    share = (
        f"({figures['actual_cost_usd']}) * CASE"
        f" WHEN {figures['estimates']} > 0 THEN coalesce({usage}.estimated_cost_usd, 0) / {figures['estimates']}"
        f" WHEN {figures['tokens']} > 0 THEN 1.0 * {usage}.tokens / {figures['tokens']}"
        f" ELSE 1.0 / {figures['usage_rows']} END"
    )
    return (
        f"SELECT CASE WHEN {covered} THEN {share} END FROM {_with_own_rows('n', 'o')}"
        f" AND n.session_id = {usage}.session_id"
    )


def _usage(shape: Shape, profile: str) -> str:
    """Basis and derived figures (rules 1, 2 and 6) over the two kinds of rows."""
    figures = {
        "profile": f"coalesce(nullif(profile_name, ''), {literal(profile)})",
        "canonical_model": "canonical_model(CAST(model AS BLOB))",
        "partial": "cost_status IS 'unknown' AND coalesce(actual, stored_estimate_usd, 0) <> 0",
        # NULL where tokens were used and no call was counted: a session from before calls were.
        "api_call_count": "CASE WHEN calls > 0 OR processed_tokens = 0 THEN calls END",
        "prompt_tokens": "input_tokens + cache_read_tokens + cache_write_tokens",
        "fresh_tokens": "coalesce(input_tokens, 0) + coalesce(output_tokens, 0)",
        "cost_usd": "CASE basis WHEN 'actual' THEN actual WHEN 'estimated' THEN stored_estimate_usd"
        " WHEN 'included' THEN 0.0 END",
        "actual_usd": "actual",
        "estimated_usd": "CASE basis WHEN 'estimated' THEN stored_estimate_usd END",
        "included_calls": "CASE basis WHEN 'included' THEN coalesce(calls, 0) ELSE 0 END",
        "unknown_calls": "CASE basis WHEN 'unknown' THEN coalesce(calls, 0) ELSE 0 END",
        "unknown_tokens": "CASE basis WHEN 'unknown' THEN processed_tokens ELSE 0 END",
        "first_seen": "coalesce(first_seen, started_at)",
        "last_seen": "coalesce(last_seen, started_at)",
    }
    kept = ("session_id", "source", "model", *KEY[1:], "attribution", "legacy", *COUNTERS[1:], "processed_tokens",
            "stored_estimate_usd", "cost_status", "cost_source", "started_at", "basis")  # fmt: skip
    # An amount of 0 is a subscription, a measured zero (it has a real source), or unknown.
    basis = (
        "CASE WHEN actual IS NOT NULL THEN 'actual' WHEN stored_estimate_usd <> 0 THEN 'estimated'"
        " WHEN cost_status = 'included' THEN 'included' WHEN stored_estimate_usd IS NOT NULL"
        " AND cost_status IS NOT 'unknown' AND cost_source NOT IN ('none', '') THEN 'estimated' ELSE 'unknown' END"
    )
    arms = f"{_stored_rows(shape)} UNION ALL {_rest_rows(shape)}"
    return (
        f"SELECT {', '.join(kept)}, {listed(figures)}"
        f" FROM (SELECT *, {seconds('began')} AS started_at, {basis} AS basis FROM ({arms}))"
    )


def _stored_rows(shape: Shape) -> str:
    """Usage rows as stored; where an actual cost of the session replaces estimates, with its share of it."""
    copied = (*KEY, *COUNTERS[1:], "cost_status", "cost_source", "first_seen", "last_seen")
    actual = "WHEN u.has_actual THEN u.actual_cost_usd"
    if shape.has("sessions", "actual_cost_usd"):
        actual += f" WHEN u.task = '' AND s.actual_cost_usd > 0 THEN ({_share_of_actual('u')})"
    return (
        f"SELECT u.session_id, s.source, {column(shape, 'sessions', 'profile_name', 's')} AS profile_name,"
        f" s.started_at AS began, {', '.join(f'u.{name}' for name in copied)},"
        " CASE WHEN s.id IS NULL THEN 'orphan' ELSE 'usage' END AS attribution, 0 AS legacy,"
        " u.estimated_cost_usd AS stored_estimate_usd, u.api_call_count AS calls,"
        f" CASE {actual} END AS actual, u.tokens AS processed_tokens"
        " FROM ledger_usage_rows AS u LEFT JOIN main.sessions AS s ON s.id = u.session_id WHERE u.problem IS NULL"
    )


def _rest_rows(shape: Shape) -> str:
    """Per session, what its row carries beyond its usage rows (rule 5); a negative rest is not added."""
    stored = {
        name: column(shape, "sessions", name, "s")
        for name in (*KEY[:4], "cost_status", "cost_source", "profile_name", "ended_at")
    }
    estimated = "CASE WHEN r.more_estimated THEN r.estimated_cost_usd WHEN r.own_estimated_cost_usd >= 0 THEN 0.0 END"
    actual = (
        "CASE WHEN r.more_actual THEN r.actual_cost_usd"
        f" WHEN r.own_actual_cost_usd = 0 AND {stored['cost_status']} = 'actual' THEN 0.0 END"
    )
    some = " OR ".join([*(f"r.{name} > 0" for name in COUNTERS), "r.more_estimated", "r.more_actual"])
    cells = ["r.session_id", "s.source", stored["profile_name"], "s.started_at"]
    cells += [f"coalesce({stored['model']}, 'unknown')", *(f"coalesce({stored[name]}, '')" for name in KEY[1:4]), "''"]
    cells += [*(f"max(r.{name}, 0)" for name in COUNTERS[1:]), stored["cost_status"], stored["cost_source"], "NULL"]
    cells += [f"coalesce({newest_message('r.session_id')}, {seconds(stored['ended_at'])})", "'session'"]
    cells += ["r.usage_rows = 0", estimated, "max(r.api_call_count, 0)", actual, "r.tokens"]
    return (
        f"SELECT {', '.join(cells)} FROM ledger_session_rest AS r JOIN main.sessions AS s ON s.id = r.session_id"
        f" WHERE ({some}) AND r.problem IS NULL"
    )
