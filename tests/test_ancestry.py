"""The conversations of a few sessions are those that the walk over all of them finds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from state_ledger.ledger import ancestry
from state_ledger.sqlite import Connection
from tests import books


def everywhere(connection: Connection) -> dict[str, tuple[str, str, int]]:
    rows = connection.execute("SELECT session_id, conversation_id, kind, segment FROM ledger_lineage")
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def alone(connection: Connection, session_ids: list[str]) -> dict[str, tuple[str, str, int]]:
    found = ancestry.members(connection, session_ids)
    return {name: (member.conversation_id, member.kind, member.segment) for name, member in found.items()}


@given(
    st.lists(
        st.tuples(st.integers(-1, 12), st.sampled_from(["compression", "branched", "user_exit", None]),
                  st.sampled_from(["cli", "subagent", "tool"])),
        min_size=1, max_size=12,
    ),
    st.sets(st.integers(0, 11), min_size=1),
)  # fmt: skip
@settings(max_examples=60)
def test_any_links_loops_included(links: list[tuple[int, str | None, str]], asked: set[int]) -> None:
    sessions = [
        books.session(f"s{n}", parent_session_id=None if parent < 0 else f"s{parent}", end_reason=reason, source=source)
        for n, (parent, reason, source) in enumerate(links)
    ]
    with tempfile.TemporaryDirectory() as folder:
        connection = books.open_books(books.write(Path(folder) / "state.db", sessions=sessions))
        whole = everywhere(connection)
        wanted = [f"s{n}" for n in asked]
        assert alone(connection, wanted) == {name: whole[name] for name in wanted if name in whole}
        connection.close()


@pytest.mark.parametrize("name", ["schema-23.db", "small-1.db", "small-22.db", "small-25.db"])
def test_stores_of_the_real_program(shared_store: Callable[[str], Path], name: str) -> None:
    connection = books.open_books(shared_store(name))
    whole = everywhere(connection)
    assert {name: place for each in whole for name, place in alone(connection, [each]).items()} == whole


def test_nothing_but_the_ancestors_is_read(demo_store: Path) -> None:
    connection = books.open_books(demo_store)
    steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {ancestry._ANCESTORS}", ('["s"]',))]
    assert steps and not [step for step in steps if step.startswith("SCAN") and step.split()[1] not in ("j", "up")]


def test_unknown_sessions_are_left_out_and_beginnings_are_first_user_messages(tmp_path: Path) -> None:
    connection = books.open_books(
        books.write(
            tmp_path / "state.db",
            sessions=[books.session("a"), books.session("b")],
            messages=[
                books.message("a", 1780315300.0, "assistant", "hi"),
                books.message("a", 1780315301.0, "user", "go"),
            ],
        )
    )
    assert ancestry.members(connection, ["none", "a"]).keys() == {"a"}
    assert ancestry.members(connection, []) == {}
    assert ancestry.beginnings(connection, ["a", "b", "none"]) == {"a": "go"}
