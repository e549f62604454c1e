"""Recorded calls: counters, routes, rows per model and task, and the ledger that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger.session_db import SessionDB
from tests.books import open_books

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
COUNTERS = (*TOKENS, "api_call_count")
ROUTE = ("model", "billing_provider", "billing_base_url", "billing_mode")


def stored(db: SessionDB, *names: str, session: str = "s") -> tuple[Any, ...]:
    row = db.get_session(session)
    assert row is not None
    return tuple(row[name] for name in names)


def usage(db: SessionDB) -> list[dict[str, Any]]:
    return [dict(row) for row in db._conn.execute("SELECT * FROM session_model_usage ORDER BY rowid")]


def test_counters_add_up_and_the_session_is_made(db: SessionDB) -> None:
    db.update_token_counts("s", 10, 2, model="m", cache_read_tokens=5, estimated_cost_usd=0.5, api_call_count=1)
    db.update_token_counts(
        "s", 1, 1, cache_write_tokens=3, reasoning_tokens=1, estimated_cost_usd=0.25, api_call_count=1
    )
    assert stored(db, "source", *COUNTERS, "estimated_cost_usd") == ("unknown", 11, 3, 5, 3, 1, 2, 0.75)
    assert stored(db, "actual_cost_usd", "model") == (None, "m")


def test_an_estimate_becomes_zero_and_an_actual_cost_stays_unknown_until_given(db: SessionDB) -> None:
    db.update_token_counts("s", 1)
    assert stored(db, "estimated_cost_usd", "actual_cost_usd") == (0.0, None)
    db.update_token_counts("s", actual_cost_usd=1.5)
    db.update_token_counts("s", actual_cost_usd=1.0)
    assert stored(db, "estimated_cost_usd", "actual_cost_usd") == (0.0, 2.5)


def test_absolute_numbers_replace_and_make_no_usage_row(db: SessionDB) -> None:
    db.update_token_counts("s", 10, model="m", estimated_cost_usd=1.0, actual_cost_usd=2.0, api_call_count=3)
    rows = usage(db)
    db.update_token_counts("s", 4, 1, api_call_count=1, absolute=True)
    assert stored(db, *COUNTERS, "estimated_cost_usd", "actual_cost_usd") == (4, 1, 0, 0, 0, 1, 0.0, 2.0)
    db.update_token_counts("s", actual_cost_usd=0.5, absolute=True)
    assert stored(db, "actual_cost_usd") == (0.5,)
    assert usage(db) == rows


def test_status_source_and_price_version_are_overwritten_when_given(db: SessionDB) -> None:
    names = ("cost_status", "cost_source", "pricing_version")
    db.update_token_counts("s", 1, cost_status="estimated", cost_source="a", pricing_version="1")
    db.update_token_counts("s", 1, cost_status="unknown")
    assert stored(db, *names) == ("unknown", "a", "1")
    assert [(row["cost_status"], row["cost_source"]) for row in usage(db)] == [("unknown", "a")]


def test_a_route_fills_what_is_unknown_only_with_usage(db: SessionDB) -> None:
    db.create_session("s", "cli", model="m")
    db.update_token_counts("s", billing_provider="p", billing_base_url="u")
    assert stored(db, *ROUTE) == ("m", None, None, None)
    db.update_token_counts("s", 1, billing_provider="p", api_call_count=1)
    db.update_token_counts("s", 1, model="other", billing_provider="q", billing_mode="x", api_call_count=1)
    assert stored(db, *ROUTE) == ("m", "p", None, "x")


@pytest.mark.parametrize("absolute", [False, True])
def test_the_first_accounted_route_replaces_the_requested_one_whole(db: SessionDB, absolute: bool) -> None:
    db.create_session("s", "cli", model="asked")
    db.update_session_billing_route("s", provider="asked", base_url="u", billing_mode="x")
    call = {"model": "got", "billing_provider": "p", "api_call_count": 1, "absolute": absolute}
    db.update_token_counts("s", 1, **{**call, "billing_provider": None})  # half a route is none
    db._conn.execute("UPDATE sessions SET api_call_count = 0")
    assert stored(db, *ROUTE) == ("asked", "asked", "u", "x")
    db.update_token_counts("s", 1, **call)
    assert stored(db, *ROUTE) == ("got", "p", None, None)
    db.update_token_counts("s", 1, **{**call, "model": "later"})
    assert stored(db, *ROUTE) == ("got", "p", None, None)


def test_calls_are_kept_by_route_and_take_from_the_session_what_they_lack(db: SessionDB) -> None:
    db.create_session("s", "cli")
    db.update_token_counts("s", 1, model="a", billing_provider="p", billing_mode="x", api_call_count=1)
    db.update_token_counts("s", 2, api_call_count=1)
    db.update_token_counts("s", 4, model="b", billing_provider="q", api_call_count=1)
    rows = [
        (*(row[name] for name in ROUTE), row["task"], row["input_tokens"], row["api_call_count"]) for row in usage(db)
    ]
    assert rows == [("a", "p", "", "x", "", 3, 2), ("b", "q", "", "x", "", 4, 1)]
    db.update_token_counts("t", 1)
    assert [row["model"] for row in usage(db)][-1] == "unknown"


def test_a_usage_row_remembers_when_it_was_first_and_last_seen(db: SessionDB) -> None:
    db.update_token_counts("s", 1, model="a")
    first = usage(db)[0]
    db.update_token_counts("s", 1, model="a")
    again = usage(db)[0]
    assert again["first_seen"] == first["first_seen"] == first["last_seen"] <= again["last_seen"]


def test_an_actual_cost_alone_makes_no_usage_row_but_counts_as_usage(db: SessionDB) -> None:
    db.create_session("s", "cli", model="m")
    db.update_token_counts("s", actual_cost_usd=1.0, billing_provider="p")
    assert usage(db) == [] and stored(db, "billing_provider", "actual_cost_usd") == ("p", 1.0)


def test_helper_calls_stand_beside_the_session_and_borrow_nothing(db: SessionDB) -> None:
    db.create_session("s", "cli", model="m")
    before = db.get_session("s")
    db.record_auxiliary_usage("s", "vision", model="v", billing_provider="p", input_tokens=3, estimated_cost_usd=0.5)
    db.record_auxiliary_usage("s", "vision", model="v", billing_provider="p", output_tokens=2)
    db.record_auxiliary_usage("s", "compression")
    db.record_auxiliary_usage("", "vision", input_tokens=1)
    db.record_auxiliary_usage("s", "", input_tokens=1)
    assert db.get_session("s") == before
    names = (*ROUTE, "task", "input_tokens", "output_tokens", "api_call_count", "estimated_cost_usd", "cost_status")
    assert [tuple(row[name] for name in names) for row in usage(db)] == [
        ("v", "p", "", "", "vision", 3, 2, 2, 0.5, None),
        ("unknown", "", "", "", "compression", 0, 0, 1, 0.0, None),
    ]
    db.record_auxiliary_usage("new", "vision")
    assert stored(db, "source", "input_tokens", session="new") == ("unknown", 0)


COUNT = st.integers(0, 10_000)
DOLLARS = st.none() | st.integers(0, 400).map(lambda n: n / 4096)  # exact in sums, and too little to be implausible
NAME = st.none() | st.sampled_from(["", "a", "b"])
CALL = st.fixed_dictionaries(
    {**dict.fromkeys(COUNTERS, COUNT), "estimated_cost_usd": DOLLARS},
    optional={
        **dict.fromkeys(ROUTE, NAME),
        "cost_status": st.sampled_from(["estimated", "unknown"]),
        "cost_source": NAME,
    },
)
HELPER = st.fixed_dictionaries(
    {**dict.fromkeys(TOKENS, COUNT), "estimated_cost_usd": DOLLARS, "task": st.sampled_from(["vision", "compression"])},
    optional={"model": NAME, "billing_provider": NAME},
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from("st"), CALL), max_size=8),
    st.lists(st.tuples(st.sampled_from("st"), HELPER), max_size=4),
)
def test_usage_rows_of_the_conversation_add_up_to_the_session_and_all_to_the_ledger(
    db: SessionDB, calls: list[tuple[str, dict[str, Any]]], helpers: list[tuple[str, dict[str, Any]]]
) -> None:
    db._conn.execute("DELETE FROM sessions")
    for session_id, call in calls:
        db.update_token_counts(session_id, **call)
    for session_id, call in helpers:
        db.record_auxiliary_usage(session_id, **call)
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in (*COUNTERS, "estimated_cost_usd"))
    for session_id in {session_id for session_id, _ in (*calls, *helpers)}:
        rows = db._conn.execute(
            f"SELECT {sums} FROM session_model_usage WHERE session_id = ? AND task = ''", (session_id,)
        ).fetchone()
        row = stored(db, *COUNTERS, "estimated_cost_usd", session=session_id)
        assert tuple(rows) == tuple(value or 0 for value in row)

    books = open_books(Path(db.db_path))
    names = (*COUNTERS, "coalesce(actual_usd, 0) + coalesce(estimated_usd, 0)")
    total = books.execute(f"SELECT {', '.join(f'coalesce(sum({n}), 0)' for n in names)} FROM ledger_usage").fetchone()
    books.close()
    recorded = [call for _, call in calls] + [{**call, "api_call_count": 1} for _, call in helpers]
    assert tuple(total)[:-1] == tuple(sum(call[name] for call in recorded) for name in COUNTERS)
    assert total[-1] == sum(call["estimated_cost_usd"] or 0 for call in recorded)
