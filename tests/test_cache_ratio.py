"""Rule 3: the cache-read ratio is the ratio of the sums, within 0 and 1, and no data is not 0."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import questions
from tests import books

TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
ROWS = [
    ("a", "m1", 100, 900, 0),
    ("b", "m1", 10000, 0, 0),
    ("c", "m2", 5, 15409, 212),
    ("d", "m3", 0, 0, 0),
    ("e", "m4", 1000, 0, 0),
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Case 06."""
    return books.write(
        tmp_path / "state.db",
        sessions=[books.session(i, model=m, **dict(zip(TOKENS, counts, strict=True))) for i, m, *counts in ROWS],
    )


def test_ratios_per_model(store: Path) -> None:
    rows = questions.ask(books.open_books(store), "cache_ratio_per_model").records()
    found = {row["model"]: (row["cache_read_tokens"], row["prompt_tokens"], row["cache_read_ratio"]) for row in rows}
    assert found == {
        "m1": (900, 11000, pytest.approx(0.0818, abs=5e-5)),
        "m2": (15409, 15626, pytest.approx(0.9861, abs=5e-5)),
        "m4": (0, 1000, 0.0),
    }  # a session without a single token has no usage


def test_ratio_of_everything(store: Path) -> None:
    rows = questions.ask(books.open_books(store), "cache_ratio_per_source").records()
    assert [(row["cache_read_tokens"], row["prompt_tokens"]) for row in rows] == [(16309, 27626)]
    assert rows[0]["cache_read_ratio"] == pytest.approx(0.5903, abs=5e-5)


def test_nothing_prompted_is_no_data(tmp_path: Path) -> None:
    path = books.write(tmp_path / "state.db", sessions=[books.session("s", model="m3", output_tokens=4)])
    rows = questions.ask(books.open_books(path), "cache_ratio_per_model").records()
    assert [(row["model"], row["cache_read_ratio"]) for row in rows] == [("m3", None)]


def test_a_store_without_cache_columns_has_no_data(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session("s", input_tokens=500)],
        without=[("sessions", "cache_read_tokens"), ("sessions", "cache_write_tokens"), ("session_model_usage", None)],
    )
    row = questions.ask(books.open_books(path), "cache_ratio_per_model").records()[0]
    assert (row["cache_read_ratio"], row["cache_read_tokens"], row["input_tokens"]) == (None, None, 500)


def test_a_session_without_cache_figures_does_not_dilute_the_others(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("old", model="m", input_tokens=1000, cache_read_tokens=None, cache_write_tokens=None),
            books.session("new", model="m", input_tokens=100, cache_read_tokens=300, cache_write_tokens=0),
        ],
    )
    row = questions.ask(books.open_books(path), "cost_per_model").records()[0]
    assert (row["input_tokens"], row["cache_read_ratio"]) == (1100, 0.75)


@given(st.lists(st.tuples(*[st.integers(0, 10**9)] * 3), min_size=1, max_size=6))
def test_the_ratio_is_within_0_and_1_and_that_of_the_sums(rows: list[tuple[int, int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = books.write(
            Path(folder) / "state.db",
            sessions=[books.session(str(n)) for n in range(len(rows))],
            usage=[books.call(str(n), **dict(zip(TOKENS, counts, strict=True))) for n, counts in enumerate(rows)],
        )
        connection = books.open_books(path)
        ratio = questions.ask(connection, "cache_ratio_per_model").records()[0]["cache_read_ratio"]
        connection.close()
    prompt = sum(map(sum, rows))
    assert ratio == (pytest.approx(sum(row[1] for row in rows) / prompt) if prompt else None)
    assert ratio is None or 0 <= ratio <= 1
