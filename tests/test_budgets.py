"""Budgets: how they are read, figures worked out by hand, days of a zone, and everywhere they show."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.budgets.budget import FILTERS, PERIODS, Budget, WrongBudget, as_budgets, distinct, parse_budget
from state_ledger.budgets.spending import Spending, forecast, period_of, read_spendings
from state_ledger.cli import main, output
from state_ledger.errors import SettingsError
from state_ledger.health import status
from state_ledger.settings import Settings, read_file
from tests import books
from tests.page_checks import check

HEALTH, METRICS = "/-/ledger/health.json", "/-/ledger/metrics"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def epoch(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def spent(path: Path, budgets: list[Budget], zone: str, now: float) -> list[Spending]:
    with closing(books.open_books(path)) as connection:

        def answer(name: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
            return questions.ask(connection, name, asked).records()

        return read_spendings(answer, budgets, path, zone, now=now)


def used(session: str, cost: float | None, tokens: int = 10_000, **columns: Any) -> books.Row:
    known = {"estimated_cost_usd": cost, "cost_status": "estimated", "cost_source": "list"}
    unknown = {"estimated_cost_usd": 0.0, "cost_status": "unknown", "cost_source": "none"}
    return books.call(session, columns.pop("model", "m"), api_call_count=2, input_tokens=tokens,
                      **(unknown if cost is None else known), **columns)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """March 2026: $1 late on the last evening of February, $2 on the 1st, $3 on Sunday the 29th, one run of a job."""
    sessions = [
        books.session("feb", started_at=epoch("2026-02-28 23:30")),
        books.session("first", started_at=epoch("2026-03-01 00:30"), source="desk"),
        books.session("sunday", started_at=epoch("2026-03-29 12:00"), profile_name="work"),
        books.session("cron_tidy_20260330_050000", started_at=epoch("2026-03-30 05:00"), source="cron"),
        books.session("below", started_at=epoch("2026-03-30 05:01"), source="subagent",
                      parent_session_id="cron_tidy_20260330_050000",
                      model_config='{"_delegate_from": "cron_tidy_20260330_050000"}'),
        books.session("unpriced", started_at=epoch("2026-03-30 06:00"), model="house"),
        books.session("long", started_at=epoch("2026-03-30 12:00")),
    ]  # fmt: skip
    usage = [
        used("feb", 1.0), used("first", 2.0), used("sunday", 3.0), used("cron_tidy_20260330_050000", 0.5),
        used("below", 0.25), used("unpriced", None, model="house"), used("long", 4.0),
    ]  # fmt: skip
    messages = [
        # Three messages on the 30th and one on the 31st: a quarter of the 4 dollars falls on the 31st.
        *(books.message("long", epoch("2026-03-30 12:00") + n) for n in range(3)),
        books.message("long", epoch("2026-03-31 12:00")),
    ]
    path = tmp_path_factory.mktemp("budgets") / "state.db"
    return books.write(path, sessions=sessions, usage=usage, messages=messages)


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with $8 and two calls without a price, of just now."""
    now = datetime.now().timestamp()
    path = tmp_path_factory.mktemp("today") / "state.db"
    return books.write(
        path,
        sessions=[books.session("s", started_at=now), books.session("cron_tidy", started_at=now, source="cron")],
        usage=[used("s", 8.0), used("cron_tidy", None, model="house")],
    )


# reading


def test_a_budget_as_text_and_as_settings_is_the_same() -> None:
    for text, mapping in (
        ("50/month", {"per": "month", "usd": 50}),
        ("$2.50 / Day, source=cron", {"per": "day", "usd": 2.5, "source": "cron"}),
        ("2000 tokens/week,model=m,name=Reading", {"per": "week", "tokens": 2000, "model": "m", "name": "Reading"}),
        ("1/day,cron_job=tidy,store=work,profile=p",
         {"per": "day", "usd": 1, "cron_job": "tidy", "store": "work", "profile": "p"}),
    ):  # fmt: skip
        assert (parse_budget(text),) == as_budgets([mapping]) == as_budgets(text)
        assert as_budgets([parse_budget(text).mapping()]) == (parse_budget(text),)


@pytest.mark.parametrize(
    "text",
    ["", "50", "/month", "50/year", "-5/day", "0/day", "50/month,", "50/month,shop=x", "50/month,source=",
     "nan/day", "1e3/day", "50/month;source=cli", "\x00"],
)  # fmt: skip
def test_a_text_that_is_no_budget_is_refused_with_what_would_be(text: str) -> None:
    with pytest.raises(WrongBudget):
        parse_budget(text)
    refused = run("budget", "state.db", "--budget", text)
    assert refused.exit_code == output.USAGE and "Traceback" not in refused.output


@pytest.mark.parametrize(
    ("lines", "key", "line"),
    [
        (["- {per: month, usd: 5}", "- {per: year, usd: 5}"], "budgets.2.per", 5),
        (["- per: month", "  usd: none"], "budgets.1.usd", 5),
        (["- {per: day, usd: 1, tokens: 5}"], "budgets.1", 4),
        (["- {per: day, usd: 1}", "- 3"], "budgets.2", 5),
        (["- {per: day, usd: 1}", "- {per: day, usd: 2}"], "budgets.2.name", 5),
        (["- {per: day, usd: 1, sauce: cli}"], "budgets.1.sauce", 4),
        (["- {per: day, usd: 1, source: [cli]}"], "budgets.1.source", 4),
    ],
)  # fmt: skip
def test_a_wrong_budget_is_named_with_its_line(tmp_path: Path, lines: list[str], key: str, line: int) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("\n".join(["plugins:", "  state-ledger:", "    budgets:", *(f"      {each}" for each in lines)]))
    with pytest.raises(SettingsError) as raised:
        read_file(file)
    assert (raised.value.key, raised.value.line) == (key, line)
    refused = run("budget", "state.db", "--metadata", file)
    assert refused.exit_code == output.USAGE and f"line {line}" in refused.output


def test_two_budgets_of_one_name_differ_or_are_one() -> None:
    one = parse_budget("5/day")
    assert distinct([one, parse_budget("5/day")]) == (one,)
    with pytest.raises(WrongBudget):
        distinct([one, parse_budget("6/day")])
    assert len(distinct([one, parse_budget("6/day,name=more")])) == 2


def test_a_budget_is_for_every_store_or_for_the_one_it_names(tmp_path: Path) -> None:
    path = tmp_path / "profiles" / "work" / "state.db"
    assert parse_budget("5/day").is_for(path)
    for name in ("work", "Work", str(path)):
        assert Budget("day", 5.0, store=name).is_for(path), name
    assert not Budget("day", 5.0, store="home").is_for(path)


# figures


def test_the_sums_of_a_month_a_week_and_a_day(store: Path) -> None:
    now = epoch("2026-03-31 12:00")
    budgets = as_budgets(["20/month", "20/week", "20/day", "100000 tokens/month"])
    month, week, day, tokens = spent(store, list(budgets), "UTC", now)
    assert (month.since, month.until, month.used) == ("2026-03-01", "2026-03-31", 9.75)
    assert (week.since, week.until, week.used) == ("2026-03-30", "2026-04-05", 4.75)
    assert (day.since, day.until, day.used) == ("2026-03-31", "2026-03-31", 1.0)
    assert tokens.used == 60_000 and tokens.share == 0.6
    assert (month.unknown_calls, month.at_least, day.at_least, tokens.at_least) == (2, True, False, False)
    assert month.estimated == 9.75 and month.actual == 0.0
    # 30.5 of 31 days are over.
    assert month.forecast == pytest.approx(9.75 * 31 / 30.5)
    assert "at least $9.75 of $20.00 (48.8 %)" in month.sentence and "2 calls of unknown cost" in month.sentence


def test_parts_of_a_store(store: Path) -> None:
    texts = ["9/month,source=desk", "9/month,profile=work", "9/month,model=HOUSE", "9/month,cron_job=tidy",
             "9/month,cron_job=other"]  # fmt: skip
    found = spent(store, [parse_budget(text) for text in texts], "UTC", epoch("2026-03-31 12:00"))
    assert [each.used for each in found] == [2.0, 3.0, 0.0, 0.75, 0.0]
    assert [each.at_least for each in found] == [False, False, True, False, False]


def test_days_are_those_of_the_zone(store: Path) -> None:
    # The last evening of February in UTC is the first of March in Berlin; the first is still February in Honolulu.
    for zone, expected in (("UTC", 9.75), ("Europe/Berlin", 10.75), ("Pacific/Honolulu", 7.75)):
        (month,) = spent(store, [parse_budget("20/month")], zone, epoch("2026-03-31 12:00"))
        assert month.used == expected, zone


def test_a_day_of_23_hours_has_its_pace(store: Path) -> None:
    # Berlin's 29 March 2026 began at 23:00 UTC of the 28th and lasts 23 hours; at 14:30 local 13.5 of them are over.
    (day,) = spent(store, [parse_budget("20/day")], "Europe/Berlin", epoch("2026-03-29 14:30", "Europe/Berlin"))
    assert day.used == 3.0 and day.forecast == pytest.approx(3.0 * 23 / 13.5)
    autumn = epoch("2026-10-25 00:00", "Europe/Berlin")
    assert forecast(5.0, "day", autumn, autumn + 25 * 3600, autumn + 12.5 * 3600) == pytest.approx(10.0)


def test_there_is_no_forecast_before_the_pace_says_something() -> None:
    hour = 3600.0
    assert forecast(1.0, "day", 0, 24 * hour, 5.9 * hour) is None
    assert forecast(1.0, "day", 0, 24 * hour, 6 * hour) == pytest.approx(4.0)
    for per, days in (("week", 7), ("month", 30)):
        assert forecast(1.0, per, 0, days * 24 * hour, 23.9 * hour) is None
        assert forecast(1.0, per, 0, days * 24 * hour, 24 * hour) == pytest.approx(days)
    assert forecast(3.0, "day", 0, 24 * hour, 24 * hour) == 3.0


@given(st.dates(min_value=datetime(1990, 1, 1).date(), max_value=datetime(2090, 1, 1).date()), st.sampled_from(PERIODS))
def test_every_day_is_in_exactly_one_period(day: Any, per: str) -> None:
    first, last = period_of(per, day)
    assert first <= day.isoformat() <= last
    for edge in (first, last):
        assert period_of(per, datetime.fromisoformat(edge).date()) == (first, last)
    following = datetime.fromisoformat(last).date() + timedelta(days=1)
    assert period_of(per, following)[0] == following.isoformat()


def test_marks_are_at_80_and_100_percent() -> None:
    def of(amount: float) -> str:
        budget = Budget("day", 100.0)
        return Spending(budget, "UTC", "2026-03-01", "2026-03-01", amount, 0, 0, 0, 0, None).mark

    assert [of(value) for value in (0, 79.99, 80, 99.99, 100, 250)] == [
        "within", "within", "near", "near", "over", "over"]  # fmt: skip


SPENT = st.lists(
    st.tuples(
        st.sampled_from(("cli", "cron", "desk")), st.sampled_from(("m", "n")), st.sampled_from(("", "work")),
        st.one_of(st.none(), st.integers(0, 400)), st.integers(0, 20 * 86400),
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=25)
@given(SPENT, st.sampled_from(("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Auckland")))
def test_budgets_of_all_parts_are_the_ledger(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, str, str, int | None, int]], zone: str
) -> None:
    """Sessions from 20 to 40 March, over the change of clocks and the end of the month."""
    begin = epoch("2026-03-20 00:00")
    path = books.write(
        tmp_path_factory.mktemp("parts") / "state.db",
        sessions=[books.session(str(n), source=source, model=model, profile_name=profile, started_at=begin + at)
                  for n, (source, model, profile, _, at) in enumerate(made)],
        usage=[used(str(n), cents and cents / 100, model=model) for n, (_, model, _, cents, _) in enumerate(made)],
        messages=[books.message(str(n), begin + at + step) for n, (*_, at) in enumerate(made) for step in (0, 86400)],
    )  # fmt: skip
    parts = {"source": ("cli", "cron", "desk"), "model": ("m", "n"), "profile": ("default", "work")}
    filters: list[dict[str, str]] = [{}, *({key: value} for key, values in parts.items() for value in values)]
    assert set(parts) < set(FILTERS)
    total = {"usd": 0.0, "tokens": 0.0}
    # Both months together have all of it: the sums over them are the ledger's.
    for month in (3, 4):
        budgets = [Budget("month", 1.0, unit, filters=each) for unit in total for each in filters]
        found = spent(path, budgets, zone, epoch(f"2026-{month:02d}-15 12:00", zone))
        for unit in total:
            (whole,) = (one for one in found if one.budget.unit == unit and not one.budget.filters)
            total[unit] += whole.used
            for key in parts:
                each = [one for one in found if one.budget.unit == unit and key in one.budget.filters]
                assert math.fsum(one.used for one in each) == pytest.approx(whole.used, abs=1e-9), key
                assert math.fsum(one.unknown_calls for one in each) == pytest.approx(whole.unknown_calls, abs=1e-9)
    with closing(books.open_books(path)) as connection:
        cost, tokens = connection.execute("SELECT sum(cost_usd), sum(processed_tokens) FROM ledger_usage").fetchone()
    assert total == {"usd": pytest.approx(cost or 0.0), "tokens": pytest.approx(tokens or 0)}


# where it shows


def test_check_exits_with_1_when_a_budget_is_used_up(today: Path) -> None:
    for amount, code in (("8.01", 0), ("8", 1), ("5", 1)):
        assert run("budget", today, "--budget", f"{amount}/month", "--check").exit_code == code
        assert run("budget", today, "--budget", f"{amount}/month").exit_code == output.DONE
    assert run("budget", today).exit_code == output.USAGE
    assert run("budget", today, "--budget", "5/day,store=elsewhere", "--check").exit_code == output.USAGE
    assert run("budget", today.parent / "none.db", "--budget", "5/day").exit_code == output.NOT_WELL


def test_json_and_table_say_what_is_not_known(today: Path) -> None:
    body = json.loads(run("budget", today, "--budget", "10/month,name=All", "--json").stdout)
    assert len(body) == 1 and body[0]["path"] == str(today)
    wanted = {"budget": "All", "used": 8.0, "amount": 10.0, "share": 0.8, "mark": "near", "at_least": True,
              "unknown_calls": 2}  # fmt: skip
    assert {key: body[0][key] for key in wanted} == wanted
    table = run("budget", today, "--budget", "10/month,name=All").stdout
    assert "at least $8.00" in table and "2 calls of unknown cost not counted" in table and "80.0 %" in table


def test_settings_of_a_file_and_of_the_command_line_go_together(today: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("plugins: {state-ledger: {zone: Asia/Tokyo, budgets: [{per: month, usd: 5, name: File}]}}")
    body = json.loads(run("budget", today, "-m", file, "--budget", "9/week", "--json").stdout)
    assert [(each["budget"], each["zone"]) for each in body] == [("File", "Asia/Tokyo"), ("all per week", "Asia/Tokyo")]
    file.write_text("[")
    assert run("budget", today, "-m", file).exit_code == output.USAGE


def test_status_names_a_budget_that_is_used_up(today: Path) -> None:
    over = run("status", today, "--budget", "5/month,name=All")
    assert over.exit_code == output.NOT_WELL
    assert "warning: The budget All is used up: at least $8.00 of $5.00 (160.0 %)" in over.stdout
    assert over.stdout.count("budget All") == 1
    within = run("status", today, "--budget", "5000/month,name=All")
    assert within.stdout.count("The budget All is within bounds") == 1
    told = status.read(today, Settings(budgets=(Budget("month", 5.0),))).record()
    assert [each["used"] for each in told["budgets"]] == [8.0]


async def test_pages_health_and_metrics_show_the_marks(today: Path, make_datasette: Callable[..., Any]) -> None:
    budgets = [{"per": "month", "usd": 5, "name": "<All> & \"more\""}, {"per": "month", "usd": 9, "source": "cli"},
               {"per": "week", "tokens": 10**9}, {"per": "day", "usd": 1, "store": "elsewhere"}]  # fmt: skip
    mine = {"plugins": {"state-ledger": {"budgets": budgets, "metrics": True}}}
    datasette = await make_datasette(today, metadata=mine)
    home = check((await datasette.client.get("/state")).text)
    for words in ("Budgets", '<All> & "more"', "at least $8.00 of $5.00 (160.0 %)", "100 % reached",
                  "$8.00 of $9.00 (88.9 %)", "80 % reached", "Budget used up", "Budget nearly used up",
                  "2 calls of unknown cost not counted"):  # fmt: skip
        assert words in home.text, words
    assert "elsewhere" not in home.text

    body = (await datasette.client.get(HEALTH)).json()
    kinds = {each["kind"]: each["severity"] for each in body["stores"]["state"]["findings"]}
    assert kinds['budget:<All> & "more"'] == "warning" and kinds["budget:source cli per month"] == "note"
    assert (await datasette.client.get(HEALTH)).status_code == 200
    assert (await datasette.client.get(HEALTH + "?fail=warning")).status_code == 503

    text = (await datasette.client.get(METRICS)).text
    labels = 'store="state",budget="source cli per month",per="month",unit="usd"'
    assert f"state_ledger_budget_amount{{{labels}}} 9" in text and f"state_ledger_budget_used{{{labels}}} 8" in text
    assert 'budget="<All> & \\"more\\""' in text


async def test_without_budgets_nothing_is_said_of_them(today: Path, make_datasette: Callable[..., Any]) -> None:
    datasette = await make_datasette(today, metadata={"plugins": {"state-ledger": {"metrics": True}}})
    assert 'id="budgets"' not in (await datasette.client.get("/state")).text
    assert "budget" not in (await datasette.client.get(HEALTH)).text + (await datasette.client.get(METRICS)).text


async def test_serve_hands_its_budgets_to_the_pages(
    today: Path, make_datasette: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_LEDGER_BUDGETS", "5/month,name=One\n9/month,source=cli")
    datasette = await make_datasette(today)
    text = check((await datasette.client.get("/state")).text).text
    assert "One" in text and "source cli per month" in text
