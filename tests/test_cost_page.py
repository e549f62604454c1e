"""The cost page: groupings that add up, bars that lead to sessions, parameters that explain themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from state_ledger.connection import open_for_reading
from state_ledger.pages.asking import Ask
from state_ledger.pages.cost import GROUPS, read_cost
from state_ledger.pages.cost_rows import row_link
from state_ledger.pages.links import Links
from state_ledger.pages.period import Period, chosen, presets
from state_ledger.plugins.stores import registry
from state_ledger.settings import Settings
from tests.page_checks import check, exact_amount

ADDING_UP = [key for key in GROUPS if key != "cron_job"]


@pytest.mark.parametrize("period", ["30d", "90d", "all"])
async def test_every_grouping_has_the_same_total(
    period: str, make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    datasette = await make_datasette(demo_store)
    totals = {}
    for key in ADDING_UP:
        answer = await datasette.client.get(f"/demo/-/cost?period={period}&group={key}")
        assert answer.status_code == 200
        check(answer.text)
        totals[key] = exact_amount(answer.text)
    assert totals["model"] > 0
    assert totals == {key: pytest.approx(totals["model"], rel=1e-9) for key in ADDING_UP}


@pytest.mark.parametrize("limit", ["1", "3"])
@pytest.mark.parametrize("group", ["model", "work", "conversation"])
async def test_the_total_is_of_all_rows_however_few_are_shown(
    group: str, limit: str, make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    client = (await make_datasette(demo_store)).client
    whole = exact_amount((await client.get("/demo/-/cost?period=90d")).text)
    cut = await client.get(f"/demo/-/cost?period=90d&group={group}&limit={limit}")
    assert exact_amount(cut.text) == pytest.approx(whole, rel=1e-9)
    assert f"cut at {limit}" in cut.text and "Total of these rows" in cut.text


@pytest.mark.parametrize("group", ["model", "day", "source", "task", "profile"])
async def test_each_row_leads_to_sessions_that_add_up_to_it(
    group: str, make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    datasette = await make_datasette(demo_store)
    settings = registry(datasette).settings
    period = Period("2026-10-01", "2026-11-15", "")
    with open_for_reading(demo_store) as connection:
        cost = read_cost(Ask(connection, settings), GROUPS[group], period, {"tz": "Asia/Seoul"})
    same = {key: value for key, value in cost.asked.items() if key != "limit"}
    wanted: dict[str, float] = {}
    for row in cost.rows:
        href = row_link(GROUPS[group], row, Links("/demo"), same)
        wanted[href] = wanted.get(href, 0.0) + (row["cost_usd"] or 0.0)
    assert len(wanted) >= 1 and "" not in wanted
    shown = (await datasette.client.get(
        f"/demo/-/cost?since=2026-10-01&until=2026-11-15&tz=Asia/Seoul&group={group}"
    )).text  # fmt: skip
    linked = set(check(shown).hrefs("/cost_sessions?"))
    for href, amount in list(wanted.items())[:8]:
        assert href in linked
        rows = (await datasette.client.get(href.replace("?", ".json?") + "&_shape=objects")).json()["rows"]
        assert sum(row["cost_usd"] or 0 for row in rows) == pytest.approx(amount, abs=1e-9)


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ("tz=Nope", "There is no time zone named"),
        ("since=xx", "write a day as YYYY-MM-DD"),
        ("until=2026-02-30", "write a day as YYYY-MM-DD"),
        ("day_rule=zz", "choose one of activity, started, last_seen"),
        ("limit=-1", "the smallest value is 1"),
        ("limit=many", "write a whole number"),
        ("group=colour", "choose one of model, day"),
        ("period=7w", "choose one of 7d, 30d"),
        ("since=2026-11-02&until=2026-11-01", "it is after the last day, 2026-11-01"),
    ],
)
async def test_a_bad_parameter_is_explained_and_the_others_are_kept(
    parameter: str, said: str, make_datasette: Callable[..., Any], demo_store: Path
) -> None:
    client = (await make_datasette(demo_store)).client
    answer = await client.get(f"/demo/-/cost?source=telegram&{parameter}")
    assert answer.status_code == 400
    page = check(answer.text)
    assert said in page.text and "cannot be used" in page.text
    assert "telegram" in [field.get("value") for field in page.all("input")]
    assert all("source=telegram" in href for href in page.hrefs("group=source"))
    name, _, value = parameter.partition("&")[0].partition("=")
    assert not [href for href in page.hrefs("/-/cost?") if f"{name}={value}" in href]


async def test_the_json_it_links_is_what_it_shows(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    client = (await make_datasette(demo_store)).client
    html = (await client.get("/demo/-/cost?period=90d&group=model&source=cli&day_rule=started")).text
    page = check(html)
    (query,) = page.hrefs("/cost_per_model?")
    (json_form,) = page.hrefs("/cost_per_model.json?")
    (csv_form,) = page.hrefs("/cost_per_model.csv?")
    assert "source=cli" in query and "day_rule=started" in query
    answer = (await client.get(json_form)).json()
    assert sum(row["cost_usd"] or 0 for row in answer["rows"]) == pytest.approx(exact_amount(html), abs=1e-9)
    csv = (await client.get(csv_form)).text
    assert csv.count("\n") == len(answer["rows"]) + 1
    assert (await client.get(query)).status_code == 200


async def test_basis_zone_and_day_rule_are_named(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    client = (await make_datasette(demo_store)).client
    seoul = check((await client.get("/demo/-/cost?tz=Asia/Seoul")).text).text
    assert "days in Asia/Seoul; day rule: activity (an estimate" in seoul
    started = check((await client.get("/demo/-/cost?day_rule=started")).text).text
    assert "day rule: started (all usage on the day the session began)" in started
    ever = check((await client.get("/demo/-/cost?period=all")).text).text
    assert "no day rule applies" in ever


async def test_unknown_is_a_word(make_datasette: Callable[..., Any], shared_store: Callable[[str], Path]) -> None:
    client = (await make_datasette(shared_store("small-1.db"))).client
    text = check((await client.get("/small-1/-/cost?period=all")).text).text
    assert "unknown" in text and "$0.00" not in text and "uncounted" in text


async def test_raw_spellings_of_a_model_are_shown(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    client = (await make_datasette(demo_store)).client
    text = check((await client.get("/demo/-/cost?period=all")).text).text
    assert "anthropic/claude-sonnet-4-5, " in text or ", anthropic/claude-sonnet-4-5" in text


async def test_out_of_time_offers_a_shorter_period(make_datasette: Callable[..., Any], demo_store: Path) -> None:
    datasette = await make_datasette(demo_store)
    registry(datasette).settings = Settings(query_time_limit_ms=0)
    answer = await datasette.client.get("/demo/-/cost?period=90d&group=task")
    assert answer.status_code == 503
    page = check(answer.text)
    assert "Choose a shorter period" in page.text
    assert [href for href in page.hrefs("period=7d") if "group=task" in href]


def test_presets_are_whole_calendar_days() -> None:
    known = {period.key: period for period in presets(date(2026, 3, 5))}
    assert known["7d"].days == [f"2026-0{d}" for d in ("2-27", "2-28", "3-01", "3-02", "3-03", "3-04", "3-05")]
    assert (known["last-month"].since, known["last-month"].until) == ("2026-02-01", "2026-02-28")
    assert (known["this-month"].since, known["this-month"].until) == ("2026-03-01", "2026-03-05")
    assert known["all"].parameters == {}


def test_dates_that_equal_a_preset_are_that_preset() -> None:
    now = date(2026, 3, 5)
    assert chosen({"since": "2026-02-27", "until": "2026-03-05"}, now).key == "7d"
    assert chosen({"since": "2026-02-27"}, now).label == "since 27 Feb 2026"
    assert chosen({}, now).key == "30d"
