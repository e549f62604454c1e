"""What the pages ask of a period never reads through all messages: SQLite's own plans say so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from state_ledger import questions
from state_ledger.connection import open_for_reading
from state_ledger.pages.asking import Answer, Ask
from state_ledger.pages.card import read_card
from state_ledger.pages.cost import GROUPS, read_cost
from state_ledger.pages.home import read_home
from state_ledger.pages.period import Period
from state_ledger.pages.search import read_search
from state_ledger.pages.search_address import Asked
from state_ledger.settings import Settings
from state_ledger.shape import Shape
from state_ledger.sqlite import Connection

SETTINGS = Settings(zone="America/New_York")
DAYS = Period("2026-10-30", "2026-11-28", "Last 30 days")
"""The last 30 days of the demo store, the end of which is fixed."""

COST = {group: lambda ask, group=group: read_cost(ask, GROUPS[group], DAYS, {}) for group in GROUPS}
PAGES: Mapping[str, Callable[[Ask], object]] = {
    "home": lambda ask: read_home(ask, Shape.read(ask.connection)),
    "index": lambda ask: read_card(ask, Shape.read(ask.connection)),
    **{f"cost by {group}": read for group, read in COST.items()},
    "search": lambda ask: read_search(ask, Asked("error")),
}

MESSAGES = re.compile(r"^(SCAN|SEARCH) (?:m|o|messages)(?: |$)")
"""A step over messages: a plan names a table by its alias, and the views call messages `m` or `o`."""

BOUND = re.compile(r"^SEARCH \w+ USING .*\((?:session_id|parent_session_id|id|rowid)=\?")
"""A step that is led to the rows of one session, or to one row."""


class Recorder(Ask):
    """Answers like any Ask and keeps what it was asked."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, SETTINGS)
        self.asked: list[tuple[str, dict[str, str]]] = []

    def __call__(self, name: str, parameters: Mapping[str, str] | None = None) -> Answer:
        self.asked.append((name, dict(parameters or {})))
        return super().__call__(name, parameters)


@pytest.fixture(scope="module")
def connection(demo_store: Path) -> Iterator[Connection]:
    opened = open_for_reading(demo_store, settings=SETTINGS)
    yield opened
    opened.close()


def plan(connection: Connection, name: str, values: Mapping[str, str]) -> list[str]:
    """The steps by which SQLite answers a question with these values."""
    question = questions.load()[name]
    bound = {parameter.name: values.get(parameter.name, "") for parameter in question.parameters}
    sql = question.compiled(SETTINGS, spare_rows=1)
    return [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound)]


def scans(steps: list[str]) -> list[str]:
    """The steps of a plan that read messages without knowing of which session."""
    return [step for step in steps if MESSAGES.match(step) and not BOUND.match(step)]


@pytest.mark.parametrize("page", PAGES)
def test_no_question_of_a_page_scans_messages(page: str, connection: Connection) -> None:
    recorder = Recorder(connection)
    PAGES[page](recorder)
    plans = [(name, values, plan(connection, name, values)) for name, values in recorder.asked]
    assert any(MESSAGES.match(step) for *_, steps in plans for step in steps), "usage is placed by messages"
    assert [(name, values, scans(steps)) for name, values, steps in plans if scans(steps)] == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM messages",
        "SELECT max(m.token_count) FROM messages AS m",  # SQLite calls this a SEARCH
        "SELECT count(*) FROM ledger_tool_calls",
        "SELECT s.id FROM messages AS o JOIN sessions AS s ON s.id = o.session_id",
        "SELECT count(*) FROM messages AS m WHERE m.id > 5",
    ],
)
def test_a_scan_of_messages_is_recognised(sql: str, connection: Connection) -> None:
    steps = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert scans(steps), steps
