"""Every question gives on each engine the rows that it gives on SQLite, whatever its parameters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from state_ledger import questions
from state_ledger.questions import Question
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection
from tests import books, fleet
from tests.conftest import STRESS

SETTINGS = Settings(zone="Asia/Kathmandu")
ASKED = [each for each in questions.load().values() if each.name != "search"]
NOW = "1796022000"


@pytest.fixture(scope="module")
def alone(demo_store: Path) -> Iterator[Connection]:
    with closing(books.open_books(demo_store)) as connection:
        yield connection


@pytest.fixture(scope="module")
def lake(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fleet.lake_of(tmp_path_factory.mktemp("lake"), {("here", "default"): demo_store}, SETTINGS)


@pytest.fixture(scope="module", params=fleet.ENGINES)
def warehouse(request: pytest.FixtureRequest, lake: Path) -> Iterator[Any]:
    with closing(fleet.loaded(fleet.engine(request.param), lake, SETTINGS)) as found:
        yield found


@pytest.fixture(scope="module")
def typical(alone: Connection) -> Mapping[str, Sequence[str]]:
    """Values of each parameter by name, taken from what the store holds."""

    def some(sql: str) -> str:
        return str(alone.execute(sql).fetchone()[0])

    day = "SELECT local_day({}(started_at), 'UTC') FROM ledger_session_facts"
    busy = "SELECT session_id FROM ledger_usage GROUP BY session_id ORDER BY sum(cost_usd) DESC LIMIT 1"
    # A delegate in a conversation of several segments has ancestors, a conversation and a work that differ.
    nested = "SELECT session_id FROM ledger_lineage ORDER BY depth DESC, segment DESC, session_id LIMIT 1"
    return {
        "since": [some(day.format("avg"))],
        "until": [some("SELECT local_day(avg(started_at) + 2e6, 'UTC') FROM ledger_session_facts")],
        "tz": ["America/New_York", "Australia/Lord_Howe"],
        "day_rule": ["started", "last_seen"],
        "source": ["cli", "telegram", "nowhere"],
        "model": ["Anthropic/Claude-Sonnet-4-5", "no-such-model"],
        "profile": ["default", "nobody"],
        "session": [some(busy), some(nested), "no-such-session"],
        "conversation": [some(nested)],
        "work": [some("SELECT work_id FROM ledger_lineage WHERE depth > 0 ORDER BY 1 LIMIT 1")],
        "day": [some(f"SELECT local_day(max(first_seen), 'UTC') FROM ledger_usage WHERE session_id = ({busy})")],
        "limit": ["3"],
        "now": [NOW],
        "q": ["Plan", "no such title"],
        "before": [some("SELECT session_id FROM ledger_session_facts ORDER BY started_at LIMIT 1 OFFSET 100")],
        "task": ["main", "title_generation"],
        "basis": ["estimated", "unknown"],
        "provider": ["openrouter"],
        "cron_job": [some("SELECT max(cron_job) FROM ledger_session_facts")],
        "as_model": ["gpt-5"],
        "as_provider": ["openai"],
        "after": ["40"],
        "taken_back": ["with"],
        "by": ["day", "month", "source", "provider", "profile"],
        "prices": ["day"],
        "older_than_days": ["0", "10"],
        "idle_days": ["1"],
        "min_prompt_tokens": ["1000"],
        "min_compared": ["2"],
        "min_repeats": ["2"],
        "times": ["3"],
        "from_cents": ["0"],
    }


def cases(question: Question, typical: Mapping[str, Sequence[str]], engine: str) -> Iterator[dict[str, str]]:
    """Values for the parameters of a question: all of them, none, what matches nothing; each by itself, and pairs."""
    names = [each.name for each in question.parameters]
    always = {"now": NOW} if "now" in names else {}
    yield always | {name: typical[name][0] for name in names if name not in _EXCLUSIVE}
    if not STRESS:  # a cross-section, of which the slower engine gets the part that reads most of the SQL
        if engine == "duckdb":
            yield always
            yield from (always | {name: typical[name][-1]} for name in ("by", "session") if name in names)
        return
    yield always
    for name in names:
        for value in typical[name]:
            yield always | {name: value}
    for one, other in itertools.combinations(names, 2):
        yield always | {one: typical[one][0], other: typical[other][-1]}


_EXCLUSIVE = {"conversation", "work", "day"}
"""Which each say what a question is about: of several the first counts."""


@pytest.mark.parametrize("question", ASKED, ids=lambda each: each.name)
def test_an_engine_answers_as_the_store_itself(
    question: Question, warehouse: Any, alone: Connection, typical: Mapping[str, Sequence[str]]
) -> None:
    for parameters in cases(question, typical, warehouse.name):
        expected = _of_the_store(alone, question.name, tuple(parameters.items()))
        told = questions.ask(warehouse, question.name, parameters, settings=SETTINGS)
        width = len(expected.columns)
        assert told.columns[:width] == expected.columns, parameters
        assert set(told.columns[width:]) <= {"store", "host"}
        assert told.truncated == expected.truncated and told.parameters == expected.parameters
        rows = [row[:width] for row in told.rows]
        assert fleet.same_rows(rows, expected.rows), (parameters, _first_difference(rows, expected.rows))


@cache
def _of_the_store(store: Connection, name: str, parameters: tuple[tuple[str, str], ...]) -> questions.Result:
    return questions.ask(store, name, dict(parameters), settings=SETTINGS)


def _first_difference(told: Sequence[Any], expected: Sequence[Any]) -> Any:
    pairs = itertools.zip_longest(told, expected)
    return next((pair for pair in pairs if None in pair or not fleet.same_rows([pair[0]], [pair[1]])), None)
