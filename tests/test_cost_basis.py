"""Rules 5 to 7: what a stored amount means, and every call once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from state_ledger import questions
from tests import books

REAL, NONE = "provider_models_api", "none"


@pytest.mark.parametrize(
    ("estimate", "actual", "status", "source", "basis", "cost", "partial"),
    [
        (0.5, 0.0, "estimated", REAL, "estimated", 0.5, 0),
        (0.5, 0.0, None, None, "estimated", 0.5, 0),  # without status and source, not 0
        (0.0, 0.0, None, None, "unknown", None, 0),  # without status and source, 0
        (0.5, 0.0, "unknown", NONE, "estimated", 0.5, 1),  # an amount counts whatever the status says
        (0.5, 0.4, "estimated", REAL, "actual", 0.4, 0),
        (0.5, 0.4, "unknown", NONE, "actual", 0.4, 1),
        (0.5, 0.0, "actual", REAL, "actual", 0.0, 0),  # an actual 0 counts only with this status
        (0.0, 0.0, "included", NONE, "included", 0.0, 0),
        (0.0, 0.0, "unknown", REAL, "unknown", None, 0),
        (0.0, 0.0, "estimated", NONE, "unknown", None, 0),  # no real source
        (0.0, 0.0, "estimated", "", "unknown", None, 0),
        (0.0, 0.0, "estimated", REAL, "estimated", 0.0, 0),  # a measured zero
        (0.0, 0.0, None, REAL, "estimated", 0.0, 0),
        (None, None, None, None, "unknown", None, 0),
        (None, None, "estimated", REAL, "unknown", None, 0),  # nothing was ever measured
        (None, None, "included", None, "included", 0.0, 0),
    ],
)
def test_what_an_amount_means(
    tmp_path: Path, estimate: Any, actual: Any, status: Any, source: Any, basis: str, cost: Any, partial: int
) -> None:
    row = {"estimated_cost_usd": estimate, "actual_cost_usd": actual, "cost_status": status, "cost_source": source}
    figures = {"input_tokens": 1000, "api_call_count": 2}
    for place in ("usage", "session"):
        path = tmp_path / f"{place}.db"
        if place == "usage":
            books.write(path, sessions=[books.session("s")], usage=[books.call("s", **row, **figures)])
        else:
            books.write(path, sessions=[books.session("s", **row, **figures)])
        found = (
            books.open_books(path)
            .execute("SELECT basis, cost_usd, partial, api_call_count, included_calls, unknown_calls FROM ledger_usage")
            .fetchall()
        )
        assert found == [(basis, cost, partial, 2, 2 * (basis == "included"), 2 * (basis == "unknown"))], place


def test_cost_per_model_after_a_switch_and_with_helper_calls(tmp_path: Path) -> None:
    """Case 05: per model 0.75, 3.00 and 0.06; never a pair of model and provider that did not occur."""
    prov_a, prov_b = {"billing_provider": "prov-a"}, {"billing_provider": "prov-b"}
    status = {"cost_status": "estimated"}
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("s", model="alpha-small", **prov_a, input_tokens=1000, output_tokens=100,
                          cache_read_tokens=4000, estimated_cost_usd=3.5, api_call_count=7, **status),
            books.session("old", model="alpha-small", **prov_a, input_tokens=200, output_tokens=20,
                          estimated_cost_usd=0.25, **status),
        ],
        usage=[
            books.call("s", "alpha-small", **prov_a, api_call_count=4, input_tokens=400, output_tokens=40,
                       cache_read_tokens=1600, estimated_cost_usd=0.5, **status),
            books.call("s", "beta-large", **prov_b, api_call_count=3, input_tokens=600, output_tokens=60,
                       cache_read_tokens=2400, estimated_cost_usd=3.0, **status),
            books.call("s", "gamma-mini", **prov_a, task="title_generation", api_call_count=1, input_tokens=70,
                       output_tokens=7, estimated_cost_usd=0.01, **status),
            books.call("s", "gamma-mini", **prov_a, task="compression", api_call_count=1, input_tokens=500,
                       output_tokens=50, estimated_cost_usd=0.05, **status),
        ],
    )  # fmt: skip
    connection = books.open_books(path)
    rows = {row["model"]: row for row in questions.ask(connection, "cost_per_model").records()}
    assert {model: round(row["cost_usd"], 9) for model, row in rows.items()} == {
        "alpha-small": 0.75, "beta-large": 3.0, "gamma-mini": 0.06,
    }  # fmt: skip
    assert [(r["api_call_count"], r["input_tokens"], r["output_tokens"], r["cache_read_tokens"]) for r in
            (rows["alpha-small"], rows["beta-large"], rows["gamma-mini"])] == [
        (4, 600, 60, 1600), (3, 600, 60, 2400), (2, 570, 57, 0)]  # fmt: skip
    pairs = connection.execute("SELECT DISTINCT model, billing_provider FROM ledger_usage").fetchall()
    assert ("alpha-small", "prov-b") not in pairs
    tasks = {row["task"]: row["cost_usd"] for row in questions.ask(connection, "cost_per_task").records()}
    assert tasks["main conversation"] == pytest.approx(3.75)
    assert tasks["title_generation"] + tasks["compression"] == pytest.approx(0.06)
    old = connection.execute("SELECT attribution, legacy, api_call_count FROM ledger_usage WHERE session_id = 'old'")
    assert old.fetchall() == [("session", 1, None)]  # how many calls it made was not counted


def test_an_actual_cost_of_a_part_replaces_only_that_part(tmp_path: Path) -> None:
    """Rule 7: 0.90 replaces the first model's estimate of 1.00; the second's 2.00 stays."""
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session("s", estimated_cost_usd=3.0, actual_cost_usd=0.9, input_tokens=20, output_tokens=10)],
        usage=[
            books.call("s", "a", estimated_cost_usd=1.0, actual_cost_usd=0.9, input_tokens=10, output_tokens=5_000),
            books.call("s", "b", estimated_cost_usd=2.0, input_tokens=10, output_tokens=5_000),
        ],
    )
    rows = books.open_books(path).execute("SELECT model, basis, cost_usd FROM ledger_usage ORDER BY model").fetchall()
    assert rows == [("a", "actual", 0.9), ("b", "estimated", 2.0)]


def test_an_actual_cost_for_calls_that_are_already_counted_is_not_added_to_them(tmp_path: Path) -> None:
    """A session's actual cost of 2.00 for calls estimated at 1.00 and 3.00: 2.00 in all, not 6.00."""
    figures = {"input_tokens": 6_000, "api_call_count": 1}
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("s", estimated_cost_usd=4.0, actual_cost_usd=2.0, input_tokens=12_000, api_call_count=2)
        ],
        usage=[
            books.call("s", "a", estimated_cost_usd=1.0, **figures),
            books.call("s", "b", estimated_cost_usd=3.0, **figures),
        ],
    )
    connection = books.open_books(path)
    rows = connection.execute(
        "SELECT model, basis, cost_usd, api_call_count FROM ledger_usage ORDER BY model"
    ).fetchall()
    assert rows == [("a", "actual", 0.5, 1), ("b", "actual", 1.5, 1)]
    kinds = connection.execute("SELECT kind, session_value, usage_value FROM ledger_discrepancies").fetchall()
    assert ("actual cost replaces estimates", 2.0, 4.0) in kinds


def test_a_session_that_was_priced_before_it_was_resumed_keeps_both_parts(tmp_path: Path) -> None:
    """An imported part with an actual cost and a resumed part with an estimate add up."""
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("s", estimated_cost_usd=4.0, actual_cost_usd=2.8, input_tokens=9_000, api_call_count=4)
        ],
        usage=[books.call("s", estimated_cost_usd=1.0, input_tokens=3_000, api_call_count=1)],
    )
    rows = (
        books.open_books(path)
        .execute("SELECT attribution, basis, cost_usd, input_tokens FROM ledger_usage ORDER BY attribution")
        .fetchall()
    )
    assert rows == [("session", "actual", 2.8, 6000), ("usage", "estimated", 1.0, 3000)]


def test_a_negative_rest_is_reported_and_not_added(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session("s", input_tokens=50, estimated_cost_usd=0.01)],
        usage=[books.call("s", input_tokens=80, estimated_cost_usd=0.02)],
    )
    connection = books.open_books(path)
    assert connection.execute("SELECT count(*), sum(input_tokens), sum(cost_usd) FROM ledger_usage").fetchone() == (
        1,
        80,
        0.02,
    )
    found = connection.execute("SELECT figure, difference FROM ledger_discrepancies ORDER BY figure").fetchall()
    assert found == [("estimated_cost_usd", pytest.approx(-0.01)), ("input_tokens", -30)]


def test_reasoning_is_a_part_of_output(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", sessions=[books.session("s")],
                       usage=[books.call("s", input_tokens=5, output_tokens=300, reasoning_tokens=200,
                                         cache_read_tokens=100, cache_write_tokens=20)])  # fmt: skip
    row = (
        books.open_books(path)
        .execute(
            "SELECT input_tokens, prompt_tokens, fresh_tokens, processed_tokens, reasoning_tokens FROM ledger_usage"
        )
        .fetchone()
    )
    assert row == (5, 125, 305, 425, 200)


def test_rows_left_by_an_interrupted_rebuild_count_once(tmp_path: Path) -> None:
    """The old table still has a call that the new one lacks: 140 in all, not 100 and not 240."""
    path = books.write(tmp_path / "state.db", sessions=[books.session("s1"), books.session("s2")],
                       usage=[books.call("s1", input_tokens=100)])  # fmt: skip
    from state_ledger.sqlite import sqlite3

    writer = sqlite3.connect(path)
    writer.execute("CREATE TABLE session_model_usage_v21 AS SELECT * FROM session_model_usage")
    writer.execute("INSERT INTO session_model_usage_v21 (session_id, model, input_tokens) VALUES ('s2', 'm', 40)")
    writer.commit()
    writer.close()
    connection = books.open_books(path)
    assert connection.execute("SELECT sum(input_tokens) FROM ledger_usage").fetchone() == (140,)
    kinds = {kind for (kind,) in connection.execute("SELECT kind FROM ledger_discrepancies")}
    assert "left-over table session_model_usage_v21" in kinds


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"input_tokens": "many"}, "input_tokens is text"),
        ({"output_tokens": -3}, "output_tokens is negative"),
        ({"estimated_cost_usd": float("inf")}, "estimated_cost_usd is not a finite number"),
        ({"cache_read_tokens": b"\x01"}, "cache_read_tokens is binary data"),
        ({"input_tokens": 11_000, "estimated_cost_usd": 550.0}, "cost above 1 dollars per 1,000 tokens"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["usage", "session"])
def test_rows_that_cannot_be_true_are_set_aside_and_listed(tmp_path: Path, row: Any, reason: str, place: str) -> None:
    sound = books.session("sound", input_tokens=7, estimated_cost_usd=0.001)
    if place == "usage":
        books.write(tmp_path / "state.db", sessions=[sound, books.session("s")], usage=[books.call("s", **row)])
    else:
        books.write(tmp_path / "state.db", sessions=[sound, books.session("s", **row)])
    connection = books.open_books(tmp_path / "state.db")
    assert connection.execute("SELECT session_id, input_tokens FROM ledger_usage").fetchall() == [("sound", 7)]
    assert connection.execute("SELECT session_id, reason FROM ledger_set_aside").fetchall() == [("s", reason)]


def test_the_bound_on_cost_per_token_is_a_setting(tmp_path: Path) -> None:
    from state_ledger.settings import Settings

    path = books.write(tmp_path / "state.db", sessions=[books.session("s", input_tokens=4000, estimated_cost_usd=8.0)])
    strict, loose = Settings(), Settings(max_cost_per_1000_tokens=3.0)
    patient = Settings(implausible_from_usd=10.0)
    assert books.open_books(path, settings=strict).execute("SELECT count(*) FROM ledger_usage").fetchone() == (0,)
    assert books.open_books(path, settings=loose).execute("SELECT sum(cost_usd) FROM ledger_usage").fetchone() == (8.0,)
    assert books.open_books(path, settings=patient).execute("SELECT sum(cost_usd) FROM ledger_usage").fetchone() == (
        8.0,
    )


def test_an_orphan_usage_row_counts_and_is_named(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", usage=[books.call("gone", input_tokens=10, estimated_cost_usd=0.001)])
    connection = books.open_books(path)
    assert connection.execute("SELECT attribution, cost_usd FROM ledger_usage").fetchall() == [("orphan", 0.001)]
    assert connection.execute("SELECT kind FROM ledger_discrepancies").fetchall() == [("usage row without a session",)]


def test_one_model_under_several_spellings_is_one_line(tmp_path: Path) -> None:
    spellings = ("anthropic/claude-sonnet-4-5", "Claude-Sonnet-4-5-20250929", "claude-sonnet-4-5@2025-09-29")
    path = books.write(tmp_path / "state.db", sessions=[books.session("s")],
                       usage=[books.call("s", name, input_tokens=1) for name in spellings])  # fmt: skip
    rows = questions.ask(books.open_books(path), "cost_per_model").records()
    assert [(row["model"], row["input_tokens"]) for row in rows] == [("claude-sonnet-4-5", 3)]
    assert set(rows[0]["models_as_stored"].split(",")) == set(spellings)
    filtered = questions.ask(books.open_books(path), "cost_per_model", {"model": "CLAUDE-sonnet-4-5"})
    assert len(filtered.rows) == 1


def test_a_small_amount_is_kept_whatever_its_rate(tmp_path: Path) -> None:
    """A dollar for fifty tokens is odd, and possible: fees per call, tools, images."""
    path = books.write(tmp_path / "state.db", sessions=[books.session("s", input_tokens=50, estimated_cost_usd=1.0)])
    assert books.open_books(path).execute("SELECT sum(cost_usd) FROM ledger_usage").fetchone() == (1.0,)
