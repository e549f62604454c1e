"""The home of a store: its figures, what needs attention, what it never does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from state_ledger import questions
from state_ledger.connection import open_for_reading
from state_ledger.ledger.days import today
from state_ledger.pages.asking import Ask, OutOfTime
from state_ledger.pages.home import read_home
from state_ledger.pages.period import presets
from state_ledger.plugins.stores import registry
from state_ledger.settings import Settings
from state_ledger.shape import Shape
from state_ledger.sqlite import sqlite3
from tests.page_checks import check, exact_amount

STORES = ["schema-11", "schema-22", "schema-25", "small-1", "small-10", "small-19", "small-23-cjk",
          "small-30-handmade", "small-1-to-23", "small-22-to-23"]  # fmt: skip


async def test_home_is_at_the_name_of_the_store(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    answer = await datasette.client.get("/demo")
    assert answer.status_code == 200
    page = check(answer.text)
    for said in ("This month", "Last 30 days", "Needs attention", "Most expensive pieces of work"):
        assert said in page.text
    assert "day rule: activity (an estimate" in page.text
    assert f"days in {registry(datasette).settings.zone_name}" in page.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_other_forms_of_the_address_stay_datasettes_own(
    make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    client = (await make_datasette(demo_store)).client
    assert (await client.get("/demo.json")).json()["database"] == "demo"
    own_sql = await client.get("/demo?sql=select+41%2B1+as+answer", follow_redirects=True)
    assert own_sql.status_code == 200 and ">42<" in own_sql.text
    plain = await client.get("/demo/-/tables")
    assert plain.status_code == 200 and "ledger-back" in plain.text and "messages" in plain.text


@pytest.mark.parametrize("name", STORES)
async def test_home_answers_on_every_store(
    name: str, make_datasette: Callable[..., Any], shared_store: Callable[[str], Path]
) -> None:
    datasette = await make_datasette(shared_store(f"{name}.db"))
    answer = await datasette.client.get(f"/{name}")
    assert answer.status_code == 200, answer.text[-500:]
    page = check(answer.text)
    assert "A part of this page is missing" not in page.text


async def test_headline_is_the_sum_of_the_question_it_names(
    make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    datasette = await make_datasette(demo_store)
    html = (await datasette.client.get("/demo")).text
    asked = next(href for href in check(html).hrefs("cost_per_day_and_model.json"))
    rows = (await datasette.client.get(asked)).json()["rows"]
    last_30_days = html[html.index("Last 30 days") :]
    assert exact_amount(last_30_days) == pytest.approx(sum(row["cost_usd"] or 0 for row in rows), abs=1e-9)


async def test_a_day_leads_to_sessions_that_add_up_to_it(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    settings = registry(datasette).settings
    with open_for_reading(demo_store) as connection:
        home = read_home(Ask(connection, settings), Shape.read(connection))
    expected = {day: home.daily.sums(day).cost_usd for day in home.daily.days if home.daily.sums(day).rows}
    assert len(expected) > 5
    html = (await datasette.client.get("/demo")).text
    for day in sorted(expected)[:5]:
        href = next(h for h in check(html).hrefs("/cost_sessions?") if h.count(day) == 2 and "model=" not in h)
        rows = (await datasette.client.get(href.replace("?", ".json?") + "&_shape=objects")).json()["rows"]
        assert sum(row["cost_usd"] or 0 for row in rows) == pytest.approx(expected[day] or 0, abs=1e-9)


async def test_what_cannot_be_read_or_is_not_there_is_named(
    make_datasette: Callable[..., Any], shared_store: Callable[[str], Path]
) -> None:
    datasette = await make_datasette([shared_store("small-23-cjk.db"), shared_store("small-1.db")])
    assert "messages_fts_cjk cannot be read here" in check((await datasette.client.get("/small-23-cjk")).text).text
    old = check((await datasette.client.get("/small-1")).text).text
    assert "not in this store: shown as no data" in old and "estimated_cost_usd" in old
    assert "$0.00" not in old


def hostile(path: Path) -> Path:
    """A store whose names are markup (case 20)."""
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, started_at REAL, ended_at REAL, title TEXT,
          model TEXT, parent_session_id TEXT, input_tokens INTEGER, output_tokens INTEGER,
          estimated_cost_usd REAL, cost_status TEXT);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,
          timestamp REAL);
        """
    )
    bad = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>\x00\x1b"
    connection.execute(
        "INSERT INTO sessions VALUES (?, ?, strftime('%s','now'), NULL, ?, ?, NULL, 1000, 100, 0.5, 'estimated')",
        (f"id{bad}", f"s{bad}", f"t{bad}", f"m{bad}"),
    )
    connection.execute("INSERT INTO messages VALUES (1, ?, 'user', ?, strftime('%s','now'))", (f"id{bad}", bad))
    connection.commit()
    connection.close()
    return path


async def test_text_of_the_store_is_text(make_datasette: Callable[..., Any], tmp_path: Path) -> None:
    datasette = await make_datasette(hostile(tmp_path / "hostile.db"))
    for path in ("/", "/hostile", *(f"/hostile/-/cost?group={group}" for group in ("model", "day", "source",
                 "conversation", "work"))):  # fmt: skip
        answer = await datasette.client.get(path)
        assert answer.status_code == 200, path
        assert answer.text.count("<script") == len(check(answer.text).all("script")) and "<img" not in answer.text
        check(answer.text)


async def test_a_question_that_runs_out_of_time_is_named_and_the_rest_stands(
    make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    datasette = await make_datasette(demo_store)
    registry(datasette).settings = Settings(query_time_limit_ms=0)
    answer = await datasette.client.get("/demo")
    assert answer.status_code == 200
    text = check(answer.text).text
    assert "A part of this page is missing" in text and "did not answer within" in text
    assert "Cost per model" in text


def test_time_limit_is_lifted_from_the_connection_after_a_question(demo_store: Path) -> None:
    with open_for_reading(demo_store) as connection:
        with pytest.raises(OutOfTime, match="cost_per_model"):
            Ask(connection, Settings(query_time_limit_ms=0))("cost_per_model")
        assert connection.execute("SELECT count(*) FROM messages, sessions").fetchone()[0] > 0


def test_home_and_cost_never_scan_messages(demo_store: Path) -> None:
    settings = Settings()
    asked: dict[str, dict[str, str]] = {}

    class Recording(Ask):
        def __call__(self, name: str, parameters: Any = None) -> Any:
            asked[name] = dict(parameters or {})
            return super().__call__(name, parameters)

    recent = next(p for p in presets(today(settings.zone_name)) if p.key == "30d")
    with open_for_reading(demo_store) as connection:
        read_home(Recording(connection, settings), Shape.read(connection))
        for name in ("cost_per_model", "cost_per_source", "cost_per_task", "cost_per_profile"):
            asked[name] = recent.parameters
        assert len(asked) >= 10
        for name, parameters in asked.items():
            question = questions.load()[name]
            bound = {p.name: parameters.get(p.name, "") for p in question.parameters}
            plan = connection.execute(f"EXPLAIN QUERY PLAN {question.compiled(settings)}", bound).fetchall()
            scans = [row[3] for row in plan if re.match(r"SCAN (m|messages)\b", row[3])]
            assert not scans, f"{name}: {scans}"
