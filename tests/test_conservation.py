"""Rule 8: the ledger adds up, whatever is in the store and however it is grouped."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger.ledger.apportion import ALL_TIME, DAY_RULES
from state_ledger.sqlite import Connection
from tests import books, plain_reading

FIGURES = ("api_call_count", *plain_reading.COUNTERS[1:], "cost_usd", "processed_tokens", "unknown_calls")
GROUPS = ("canonical_model", "source", "task", "profile", "basis", "attribution", "session_id", "billing_provider")
IDS = tuple("abcdefgh")
NAMES = st.sampled_from(("alpha", "Vendor/Alpha-20260101", "beta", "bêta 모델", ""))
STATUSES = st.sampled_from((None, "", "estimated", "included", "unknown", "actual"))
SOURCES = st.sampled_from((None, "", "none", "provider_models_api"))
BAD = st.sampled_from((-1, "much", "12 apples", float("inf"), b"\x00\xff"))
COUNTS = st.one_of(st.integers(0, 50_000), st.none(), st.integers(0, 3))
MONEY = st.one_of(st.floats(0, 20, allow_nan=False), st.none(), st.just(0.0), st.just(0.3))
MOMENTS = st.one_of(
    st.floats(1.7e9, 1.8e9), st.integers(1_767_000_000, 1_770_000_000), st.none(), st.just("noon"),
    st.integers(1_767_000_000_000, 1_768_000_000_000), st.just(-5.0), st.just(float("inf")),
)  # fmt: skip


def _sometimes_bad(values: Any) -> Any:
    return st.integers(0, 40).flatmap(lambda roll: BAD if roll == 0 else values)


def _figures() -> dict[str, Any]:
    counters = {name: _sometimes_bad(COUNTS) for name in plain_reading.COUNTERS}
    return {**counters, **{name: _sometimes_bad(MONEY) for name in plain_reading.AMOUNTS}}


SESSIONS = st.fixed_dictionaries(
    {
        "source": st.sampled_from(("cli", "cron", "subagent", "tool", "téléphone")),
        "started_at": MOMENTS.filter(lambda value: value is not None),
        "parent_session_id": st.sampled_from((None, "", "gone", *IDS)),
        "end_reason": st.sampled_from((None, "compression", "branched", "idle")),
        "ended_at": MOMENTS,
        "model": st.one_of(st.none(), NAMES),
        "model_config": st.sampled_from((None, "{", '{"_delegate_from": "a"}', '{"_branched_from": "b"}', "[1]")),
        "profile_name": st.sampled_from((None, "", "work")),
        "cost_status": STATUSES,
        "cost_source": SOURCES,
        **_figures(),
    }
)
USAGE = st.fixed_dictionaries(
    {
        "session_id": st.sampled_from((*IDS, "orphan")),
        "model": NAMES,
        "billing_provider": st.sampled_from(("", "vendor")),
        "task": st.sampled_from(("", "", "", "title_generation")),
        "cost_status": STATUSES,
        "cost_source": SOURCES,
        "first_seen": MOMENTS,
        "last_seen": MOMENTS,
        **_figures(),
    }
)
MESSAGES = st.tuples(st.sampled_from((*IDS, "orphan")), MOMENTS)
LEFT_OUT = st.sets(
    st.sampled_from(
        (
            ("session_model_usage", None), ("session_model_usage", "task"), ("session_model_usage", "cost_status"),
            ("sessions", "cache_read_tokens"), ("sessions", "api_call_count"), ("sessions", "estimated_cost_usd"),
            ("sessions", "actual_cost_usd"), ("sessions", "cost_status"), ("sessions", "cost_source"),
            ("sessions", "profile_name"), ("sessions", "model_config"), ("sessions", "parent_session_id"),
            ("sessions", "ended_at"), ("sessions", "end_reason"), ("messages", "active"),
        )
    ),
    max_size=4,
)  # fmt: skip
STORES = st.fixed_dictionaries(
    {
        "sessions": st.dictionaries(st.sampled_from(IDS), SESSIONS, max_size=8),
        "usage": st.lists(USAGE, max_size=8),
        "messages": st.lists(MESSAGES, max_size=12),
        "without": LEFT_OUT,
    }
)


def _write(folder: str, store: dict[str, Any]) -> Path:
    return books.write(
        Path(folder) / "state.db",
        sessions=[{"id": name, **row} for name, row in store["sessions"].items()],
        usage=store["usage"],
        messages=[books.message(name, moment) for name, moment in store["messages"]],
        without=store["without"],
    )


def _same(left: float | None, right: float | None) -> bool:
    return math.isclose(left or 0.0, right or 0.0, rel_tol=1e-9, abs_tol=1e-12)


def _sums(connection: Connection, of: str, group: str | None = None, where: str = "1") -> dict[str, float]:
    """The sum over all groups of the groups' sums."""
    figures = ", ".join(f"sum({name}) AS {name}" for name in FIGURES)
    grouped = f"SELECT {figures} FROM {of} WHERE {where} GROUP BY {group or '1=1'}"
    total = f"SELECT {', '.join(f'sum({name})' for name in FIGURES)} FROM ({grouped})"
    return dict(zip(FIGURES, connection.execute(total).fetchone(), strict=True))


def _assert_same(left: dict[str, Any], right: dict[str, Any], what: str) -> None:
    wrong = {name: (left[name], right[name]) for name in left if not _same(left[name], right[name])}
    assert not wrong, f"{what}: {wrong}"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(store=STORES)
def test_every_grouping_sums_to_the_same_total_and_to_a_plain_reading(store: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = _write(folder, store)
        connection = books.open_books(path)
        total = _sums(connection, "ledger_usage")
        for group in GROUPS:
            _assert_same(_sums(connection, "ledger_usage", group), total, f"by {group}")
        for rule in (*DAY_RULES, ALL_TIME):
            for group in ("local_day(bucket, 'America/New_York')", "session_id", "canonical_model"):
                _assert_same(_sums(connection, "ledger_time", group, f"day_rule = '{rule}'"), total, f"{rule} {group}")
        joined = "(SELECT u.*, l.* FROM ledger_usage AS u LEFT JOIN ledger_lineage AS l ON l.session_id = u.session_id)"
        for group in ("conversation_id", "work_id"):
            _assert_same(_sums(connection, joined, group), total, f"by {group}")
        plain = plain_reading.read(path)
        for name in plain_reading.COUNTERS:
            assert _same(total[name], plain.counters[name]), f"{name}: {total[name]} != {plain.counters[name]}"
        assert _same(total["cost_usd"], plain.cost)
        for basis, dollars, tokens in connection.execute(
            "SELECT basis, sum(cost_usd), sum(processed_tokens) FROM ledger_usage GROUP BY basis"
        ):
            assert _same(dollars, plain.dollars[basis]), basis
            assert _same(tokens, plain.tokens[basis]), basis
        connection.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(store=STORES)
def test_the_audit_explains_the_difference_to_the_naive_sum(store: dict[str, Any]) -> None:
    from state_ledger import questions

    with tempfile.TemporaryDirectory() as folder:
        connection = books.open_books(_write(folder, store))
        audit = questions.ask(connection, "ledger_audit").records()
        connection.close()
    by = {
        name: [row["cost_usd"] or 0.0 for row in audit if row["section"] == name]
        for name in ("total", "naive", "cause")
    }
    explained = sum(by["naive"]) + sum(by["cause"])
    assert math.isclose(explained, sum(by["total"]), rel_tol=1e-9, abs_tol=1e-9), audit


def test_work_and_conversation_views_hold_every_session_once(demo_store: Path) -> None:
    connection = books.open_books(demo_store)
    sessions = connection.execute("SELECT count(*) FROM sessions").fetchone()[0]
    assert connection.execute("SELECT sum(segments) FROM ledger_conversations").fetchone()[0] == sessions
    assert connection.execute("SELECT sum(sessions) FROM ledger_work").fetchone()[0] == sessions
    attributed = "SELECT sum(cost_usd) FROM ledger_usage WHERE attribution <> 'orphan'"
    total = connection.execute(attributed).fetchone()[0]
    for view in ("ledger_conversations", "ledger_work", "ledger_sessions"):
        assert connection.execute(f"SELECT sum(cost_usd) FROM {view}").fetchone()[0] == pytest.approx(total, rel=1e-9)


def test_the_demo_store_agrees_with_a_plain_reading(demo_store: Path) -> None:
    plain = plain_reading.read(demo_store)
    connection = books.open_books(demo_store)
    cost, tokens = connection.execute("SELECT sum(cost_usd), sum(processed_tokens) FROM ledger_usage").fetchone()
    assert cost == pytest.approx(plain.cost, rel=1e-9)
    assert tokens == sum(plain.tokens.values())
    assert cost > 1
