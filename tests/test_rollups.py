"""Sums by day give what the rows they are made of give, sessions counted once, over any period and any stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.demo import make_demo
from state_ledger.settings import Settings
from state_ledger.warehouse import Warehouse, rollups
from tests import fleet
from tests.conftest import fewer

SETTINGS = Settings(zone="America/New_York")
OVER_TIME = sorted(
    each.name
    for each in (*questions.load().values(), *questions.of_stores().values())
    if "ledger_time" in each.sql and any(parameter.name == "until" for parameter in each.parameters)
)


class Both(NamedTuple):
    """The same warehouse twice: with its rollups, and as if it had none."""

    rolled: Warehouse
    plain: Warehouse


def reads_rollup(books: Warehouse, name: str, parameters: dict[str, str]) -> bool:
    question = books.questions[name]
    given = {each.name: parameters.get(each.name, "") for each in question.parameters}
    statement = books._carrier(SETTINGS).statement(question.compiled(SETTINGS), given)
    return rollups.PREFIX in statement.text


@pytest.fixture(scope="module")
def lake(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a store, of the same once more elsewhere, and of another one."""
    other = tmp_path_factory.mktemp("other") / "state.db"
    make_demo(other, sessions=100, messages_per_session=3, days=60)
    stores = {("a", "default"): demo_store, ("b", "default"): demo_store, ("b", "work"): other}
    return fleet.lake_of(tmp_path_factory.mktemp("lake"), stores, SETTINGS)


@pytest.fixture(scope="module", params=fleet.MOST_ENGINES)
def both(request: pytest.FixtureRequest, lake: Path) -> Iterator[Both]:
    dialect = fleet.engine(request.param)
    with closing(fleet.loaded(dialect, lake, SETTINGS)) as rolled:
        plain = Warehouse(dialect, SETTINGS)
        plain.state = replace(plain.state, rolled="")
        yield Both(rolled, plain)


def agree(both: Both, name: str, parameters: dict[str, str], **narrowed: Any) -> None:
    one, other = (questions.ask(books.narrowed(**narrowed), name, parameters, settings=SETTINGS) for books in both)
    assert one.columns == other.columns and one.truncated == other.truncated
    order = sorted if one.truncated else list
    assert fleet.same_rows(order(one.rows), order(other.rows)), (name, parameters, narrowed)


BY_DAY = [
    "cost_per_model",
    "cost_per_day",
    "cost_per_day_and_model",
    "cost_per_source",
    "cost_per_profile",
    "cost_per_task",
    "cost_per_store",
    "cost_per_host",
    "cache_ratio_per_day",
    "cache_ratio_per_model",
    "cache_ratio_per_source",
    "cache_ratio_per_store",
    "cache_ratio_per_host",
    "token_statistics",
    "estimated_vs_actual",
    "unpriced_usage",
    "reconcile",
]
"""What the pages over a fleet ask."""


def test_what_pages_over_a_fleet_ask_reads_sums_by_day(both: Both) -> None:
    period = {"since": "2026-09-10", "until": "2026-10-20"}
    for name in BY_DAY:
        for parameters in (period, {"since": "2026-09-10"}, {}):
            assert reads_rollup(both.rolled, name, parameters), (name, parameters)
        # Days of another zone are other days, and begin in the midst of these.
        assert not reads_rollup(both.rolled, name, {**period, "tz": "Asia/Kathmandu"})
        assert not reads_rollup(both.plain, name, period)
    agree(both, "cost_per_model", period, hosts=["b"])
    agree(both, "cost_per_host", period)


@settings(max_examples=fewer(8, 2), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(OVER_TIME),
    since=st.none() | st.dates(date(1970, 1, 2), date(9000, 1, 1)) | st.dates(date(2026, 7, 1), date(2026, 12, 31)),
    length=st.integers(0, 60),
    rule=st.sampled_from(["", "activity", "started", "last_seen"]),
    filters=st.dictionaries(st.sampled_from(["source", "profile", "model"]), st.sampled_from(
        ["cli", "telegram", "default", "gpt-5", "Anthropic/Claude-Sonnet-4-5", "none such"]), max_size=2),
    hosts=st.sampled_from([(), ("a",), ("b",), ("a", "b"), ("nobody",)]),
)  # fmt: skip
def test_any_period_rule_and_filter_gives_the_same(
    both: Both, name: str, since: date | None, length: int, rule: str, filters: dict[str, str], hosts: tuple[str, ...]
) -> None:
    period = {} if since is None else {"since": str(since), "until": str(since + timedelta(days=length))}
    agree(both, name, {**period, "day_rule": rule, **filters}, hosts=hosts)
