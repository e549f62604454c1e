"""Canned queries through Datasette: found, described, the same JSON on both lines."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path
from typing import Any

import pytest

from state_ledger import questions
from tests import books

NAMES = sorted(questions.load())


@pytest.fixture
def named_store(tmp_path: Path, demo_store: Path) -> Path:
    """A store whose file name says nothing."""
    return Path(shutil.copy(demo_store, tmp_path / "whatever.db"))


async def test_every_query_answers_a_bare_url_in_every_format(named_store: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(named_store)
    for name in NAMES:
        for extension in ("", ".json", ".csv"):
            answer = await datasette.client.get(f"/whatever/{name}{extension}")
            assert answer.status_code == 200, f"{name}{extension}: {answer.text[:300]}"


async def test_json_objects_are_the_answer_of_the_core(named_store: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(named_store)
    connection = books.open_books(named_store)
    for name in NAMES:
        body = (await datasette.client.get(f"/whatever/{name}.json?_shape=objects&tz=UTC")).json()
        wanted = {"tz": "UTC"} if "tz" in body["parameters"] else {}
        result = questions.ask(connection, name, wanted)
        assert body["ok"] is True and body["columns"] == result.columns
        assert body["rows"] == result.records(), name
        assert body["truncated"] is result.truncated
        assert set(body) == {"ok", "question", "title", "parameters", "units", "columns", "rows", "truncated"}


async def test_csv_has_the_same_rows(named_store: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(named_store)
    text = (await datasette.client.get("/whatever/cost_per_model.csv")).text
    rows = list(csv.DictReader(io.StringIO(text)))
    expected = questions.ask(books.open_books(named_store), "cost_per_model").records()
    assert [row["model"] for row in rows] == [row["model"] for row in expected]
    assert [float(r["cost_usd"]) if r["cost_usd"] else None for r in rows] == [r["cost_usd"] for r in expected]


@pytest.mark.parametrize("extension", ["", ".json", ".csv"])
async def test_a_wrong_parameter_is_a_sentence_in_every_format(
    named_store: Path, make_datasette: Any, extension: str
) -> None:
    datasette = await make_datasette(named_store)
    for query, says in (("tz=Nope", "Nope"), ("since=2026-13-01", "YYYY-MM-DD"), ("limit=-1", "smallest value is 1")):
        answer = await datasette.client.get(f"/whatever/cost_per_day{extension}?{query}")
        assert answer.status_code == 400
        assert says in answer.text


@pytest.mark.parametrize("extension", ["", ".json", ".json?_shape=objects", ".csv"])
async def test_of_a_parameter_that_is_given_twice_the_first_counts(
    named_store: Path, make_datasette: Any, extension: str
) -> None:
    datasette = await make_datasette(named_store)
    address = f"/whatever/recent_sessions{extension}{'&' if '?' in extension else '?'}"
    refused = await datasette.client.get(f"{address}limit=many&limit=2")
    assert refused.status_code == 400 and "many" in refused.text
    for values in ("limit=2&limit=many", "limit=&limit=many"):
        assert (await datasette.client.get(f"{address}{values}")).status_code == 200, values


async def test_the_page_describes_parameters_columns_and_units(named_store: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(named_store)
    page = (await datasette.client.get("/whatever/cost_per_day")).text
    for text in ("Cost per day", "Time zone of the days", "activity, started, last_seen", "(dollars)", "cost_usd"):
        assert text in page


async def test_parameters_reach_the_query(named_store: Path, make_datasette: Any) -> None:
    datasette = await make_datasette(named_store)
    body = (await datasette.client.get("/whatever/recent_sessions.json?_shape=objects&source=telegram&limit=3")).json()
    assert len(body["rows"]) == 3 and body["truncated"]
    assert {row["source"] for row in body["rows"]} == {"telegram"}


async def test_queries_are_registered_for_each_store_and_for_nothing_else(
    tmp_path: Path, named_store: Path, small_store: Any, make_datasette: Any
) -> None:
    from state_ledger.sqlite import sqlite3

    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE t (a)").connection.close()
    datasette = await make_datasette([named_store, small_store("old.db"), other])
    for name, status in (("whatever", 200), ("old", 200), ("other", 404)):
        assert (await datasette.client.get(f"/{name}/cost_per_model.json?_shape=objects")).status_code == status


async def test_no_query_can_be_asked_without_permission(named_store: Path, make_datasette: Any) -> None:
    deny = {"databases": {"whatever": {"allow": False}}}
    from state_ledger.plugins import compat

    datasette = await make_datasette(named_store, **{"config" if compat.IS_1 else "metadata": deny})
    for path in (
        "cost_per_model.json?_shape=objects",
        "cost_per_model",
        "-/ask/cost_per_model.json",
        "cost_per_model.csv",
    ):
        answer = await datasette.client.get(f"/whatever/{path}")
        assert answer.status_code in (403, 404), path
        assert "cost_usd" not in answer.text


async def test_answers_are_json_whatever_is_stored(tmp_path: Path, make_datasette: Any) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("s", input_tokens=float("inf"), title=b"\x00\xff", estimated_cost_usd=float("inf")),
            books.session("t", output_tokens="x", started_at=float("inf")),
        ],
    )
    datasette = await make_datasette(path)
    for name in NAMES:
        answer = await datasette.client.get(f"/state/{name}.json?_shape=objects")
        assert answer.status_code == 200, f"{name}: {answer.text}"
        assert "Infinity" not in answer.text and answer.json()["ok"]
