"""What is asked of a few sessions is read of those alone, and says the same as what is read of all."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

from state_ledger import questions, search
from state_ledger.ledger.session_sums import SUMS
from state_ledger.plugins import routes
from state_ledger.search.request import Request
from state_ledger.settings import Settings
from state_ledger.sqlite import Connection
from tests import books

SETTINGS = Settings(zone="UTC")

WHOLE = re.compile(r"^SCAN (?:s|t|u|o|m|k|messages|sessions|session_model_usage)(?: |$)")
"""A step that reads a whole table of the store: its views call sessions, usage and messages by these names."""


@pytest.fixture(scope="module")
def connection(demo_store: Path) -> Iterator[Connection]:
    with closing(books.open_books(demo_store)) as opened:
        yield opened


def plan(connection: Connection, sql: str, values: dict[str, str]) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def test_what_one_session_used_is_found_by_indexes(connection: Connection) -> None:
    sql = "SELECT sum(cost_usd), max(last_seen) FROM ledger_usage WHERE session_id = :session"
    assert [step for step in plan(connection, sql, {"session": "s"}) if WHOLE.match(step)] == []
    assert [step for step in plan(connection, "SELECT sum(cost_usd) FROM ledger_usage", {}) if WHOLE.match(step)]


@pytest.mark.parametrize("name", ["lineage_ancestors", "lineage_conversation", "lineage_descendants", "lineage_work"])
def test_the_lineage_of_one_session_walks_its_family_alone(connection: Connection, name: str) -> None:
    question = questions.load()[name]
    steps = plan(connection, question.compiled(SETTINGS), {"session": "s"})
    assert any(step.startswith("SEARCH a USING COVERING INDEX") for step in steps)
    # Once: which session began last is asked of all, where none is named.
    assert [step for step in steps if step.startswith("SCAN s")] == ["SCAN s"]


def test_the_sums_of_each_session_are_those_of_all(connection: Connection) -> None:
    listed = ", ".join(f"u.{name}" for name in SUMS)
    each = connection.execute(f"SELECT u.session_id, {listed} FROM ledger_session_sums AS u ORDER BY 1").fetchall()
    together = connection.execute(
        f"SELECT s.id, {listed} FROM sessions AS s LEFT JOIN ledger_session_usage AS u ON u.session_id = s.id"
        " ORDER BY 1"
    ).fetchall()
    assert each == together
    assert len({row[1:] for row in each}) > 20


def test_the_sums_of_a_session_follow_its_rows(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db", sessions=[books.session("s")], usage=[books.call("s", input_tokens=4, api_call_count=1)]
    )
    sql = "SELECT input_tokens FROM ledger_session_sums WHERE session_id = 's'"
    with closing(books.open_books(path)) as reader, closing(books.sqlite3.connect(path)) as writer:
        assert reader.execute(sql).fetchone() == (4,)
        writer.execute("UPDATE session_model_usage SET input_tokens = 7")
        writer.commit()
        assert reader.execute(sql).fetchone() == (7,)


def test_a_family_holds_what_a_session_stands_by(tmp_path: Path) -> None:
    """Loops, missing parents, branches, and delegates of delegates included."""
    compressed = {"end_reason": "compression", "ended_at": 5.0}
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("a", **compressed),
            books.session("b", parent_session_id="a", **compressed),
            books.session("c", parent_session_id="b"),
            books.session("rival", parent_session_id="b", started_at=1.0),
            books.session("d", parent_session_id="b", source="subagent"),
            books.session("e", parent_session_id="d", source="subagent"),
            books.session("round", parent_session_id="and"),
            books.session("and", parent_session_id="round"),
            books.session("on", parent_session_id="and", source="subagent"),
            books.session("self", parent_session_id="self"),
            books.session("lost", parent_session_id="gone"),
            books.session("alone"),
        ],
    )
    families = [set("abcde") | {"rival"}, {"round", "and", "on"}, {"self"}, {"lost"}, {"alone"}]
    with closing(books.open_books(path)) as connection:
        stands = {row[0]: row for row in connection.execute("SELECT * FROM ledger_lineage")}
        assert set(stands) == set().union(*families)
        for family in families:
            for session in family:
                rows = connection.execute("SELECT * FROM ledger_family WHERE of_session_id = ?", (session,)).fetchall()
                assert {row[1] for row in rows} == family
                assert all(row[1:] == stands[row[1]] for row in rows)


def test_a_search_reads_no_table_to_find_its_ends(connection: Connection) -> None:
    """A part that no index covers is read window by window, from the newest message to the oldest."""
    asked: list[str] = []
    connection.set_trace_callback(asked.append)
    try:
        search.find(connection, Request("zyzzyva"), budget_s=5)
    finally:
        connection.set_trace_callback(None)
    ends = [sql for sql in asked if "max(id)" in sql]
    assert ends
    assert [step for sql in ends for step in plan(connection, sql, {}) if WHOLE.match(step)] == []


def test_a_start_imports_no_view() -> None:
    """But for the frame, which the index needs."""
    code = (
        "import sys, datasette.app\n"
        "print(*sorted(m for m in sys.modules if m.startswith(('state_ledger.plugins.views.', 'state_ledger.questions',"
        " 'state_ledger.shelf', 'state_ledger.portability', 'sqlite_utils.db'))))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert said == ["state_ledger.plugins.views.page"]


def test_every_address_has_its_view() -> None:
    assert len({address for address, *_ in routes.VIEWS}) == len(routes.VIEWS)
    for _address, module, function in routes.VIEWS:
        assert callable(getattr(import_module(f"state_ledger.plugins.views.{module}"), function))
