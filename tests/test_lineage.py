"""Rules 11 to 14: conversations and work, whatever the parent links look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_ledger import questions
from state_ledger.lineage import Link, arrange
from tests import books


def _marked(**markers: Any) -> str:
    return json.dumps({f"_{name}": value for name, value in markers.items()})


def _kinds(path: Path) -> dict[str, str]:
    return dict(books.open_books(path).execute("SELECT session_id, kind FROM ledger_lineage").fetchall())


@pytest.mark.parametrize(
    ("ended", "child", "kind"),
    [
        ("compression", {}, "continuation"),
        ("compression", {"source": "tool"}, "other"),
        ("compression", {"source": "subagent"}, "delegate"),
        ("compression", {"model_config": _marked(delegate_from="p")}, "delegate"),
        ("compression", {"model_config": _marked(branched_from="p")}, "branch"),
        ("compression", {"source": "subagent", "model_config": _marked(delegate_from="grandparent")}, "continuation"),
        ("compression", {"model_config": _marked(branched_from="grandparent")}, "continuation"),
        ("compression", {"source": "subagent", "model_config": _marked(delegate_from="__orphaned__")}, "delegate"),
        ("compression", {"model_config": "{not json"}, "continuation"),
        ("compression", {"model_config": "[1, 2]"}, "continuation"),
        ("branched", {}, "branch"),
        ("user_exit", {"model_config": _marked(branched_from="p")}, "branch"),
        ("user_exit", {"source": "subagent"}, "delegate"),
        ("user_exit", {"model_config": _marked(delegate_from="p")}, "delegate"),
        ("session_reset", {}, "other"),
        (None, {}, "other"),
    ],
)
def test_what_kind_of_child_a_session_is(tmp_path: Path, ended: str | None, child: Any, kind: str) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session("p", end_reason=ended, ended_at=1), books.session("c", parent_session_id="p", **child)],
    )
    assert _kinds(path) == {"p": "root", "c": kind}


@pytest.mark.parametrize(
    ("children", "chosen"),
    [
        ({"a": {"end_reason": "compression", "ended_at": 9}, "b": {"ended_at": None}}, "a"),
        ({"a": {"ended_at": 9, "end_reason": "idle"}, "b": {"ended_at": None}}, "b"),
        ({"a": {}, "b": {}}, "b"),  # the greater id, all else equal
        ({"a": {"started_at": 2e9}, "b": {"started_at": 1.9e9}}, "a"),
    ],
)
def test_exactly_one_of_several_children_continues(tmp_path: Path, children: Any, chosen: str) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[books.session("p", end_reason="compression")]
        + [books.session(name, parent_session_id="p", **columns) for name, columns in children.items()],
    )
    kinds = _kinds(path)
    assert [name for name in children if kinds[name] == "continuation"] == [chosen]
    assert all(kinds[name] == "other" for name in children if name != chosen)


def test_the_latest_message_decides_before_the_start(tmp_path: Path) -> None:
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("p", end_reason="compression"),
            books.session("a", parent_session_id="p", started_at=1.7e9),
            books.session("b", parent_session_id="p", started_at=1.8e9),
        ],
        messages=[books.message("a", 1.85e9), books.message("b", 1.82e9)],
    )
    assert _kinds(path)["a"] == "continuation"


@pytest.fixture
def family(tmp_path: Path) -> Any:
    """A chain of three, a delegate of its middle with a delegate and a continuation, and a branch."""
    rows = [
        books.session("r1", end_reason="compression", title="first", estimated_cost_usd=1.0),
        books.session("r2", parent_session_id="r1", end_reason="compression", estimated_cost_usd=2.0),
        books.session("r3", parent_session_id="r2", title="tip", estimated_cost_usd=4.0),
        books.session("d1", parent_session_id="r2", source="subagent", end_reason="compression",
                      model_config=_marked(delegate_from="r2"), estimated_cost_usd=8.0),
        books.session("d1b", parent_session_id="d1", source="subagent", model_config=_marked(delegate_from="r2"),
                      estimated_cost_usd=16.0),
        books.session("d2", parent_session_id="d1", source="subagent", model_config=_marked(delegate_from="d1"),
                      estimated_cost_usd=32.0),
        books.session("b1", parent_session_id="r1", model_config=_marked(branched_from="r1"), estimated_cost_usd=64.0),
    ]  # fmt: skip
    return books.open_books(books.write(tmp_path / "state.db", sessions=rows))


def test_conversations_and_work_of_a_family(family: Any) -> None:
    rows = family.execute(
        "SELECT session_id, conversation_id, work_id, tip_session_id, segment, depth FROM ledger_lineage ORDER BY 1"
    ).fetchall()
    assert rows == [
        ("b1", "b1", "b1", "b1", 1, 0),
        ("d1", "d1", "r1", "d1b", 1, 1),
        ("d1b", "d1", "r1", "d1b", 2, 1),
        ("d2", "d2", "r1", "d2", 1, 2),
        ("r1", "r1", "r1", "r3", 1, 0),
        ("r2", "r1", "r1", "r3", 2, 0),
        ("r3", "r1", "r1", "r3", 3, 0),
    ]


def test_cost_of_conversation_and_work(family: Any) -> None:
    conversations = {r["conversation_id"]: r for r in questions.ask(family, "top_conversations").records()}
    assert (conversations["r1"]["cost_usd"], conversations["r1"]["title"], conversations["r1"]["segments"]) == (
        7.0,
        "tip",
        3,
    )
    assert {name: row["cost_usd"] for name, row in conversations.items()} == {
        "r1": 7.0,
        "d1": 24.0,
        "d2": 32.0,
        "b1": 64.0,
    }
    work = {
        r["work_id"]: (r["cost_usd"], r["sessions"], r["delegates"])
        for r in questions.ask(family, "top_work").records()
    }
    assert work == {"r1": (63.0, 6, 2), "b1": (64.0, 1, 0)}


def test_lineage_questions(family: Any) -> None:
    def ids(name: str, session: str) -> list[str]:
        return [row["session_id"] for row in questions.ask(family, name, {"session": session}).records()]

    assert ids("lineage_ancestors", "d2") == ["d2", "d1", "r2", "r1"]
    assert set(ids("lineage_descendants", "r2")) == {"r2", "r3", "d1", "d1b", "d2"}
    assert ids("lineage_conversation", "r2") == ["r1", "r2", "r3"]
    assert set(ids("lineage_work", "d1b")) == {"r1", "r2", "r3", "d1", "d1b", "d2"}
    assert ids("lineage_work", "nobody") == []


@pytest.mark.parametrize("session", ["a", "b", "hanging", "self", "lost"])
@pytest.mark.parametrize("name", ["lineage_ancestors", "lineage_descendants", "lineage_conversation", "lineage_work"])
def test_loops_and_missing_parents_end_and_are_named(tmp_path: Path, name: str, session: str) -> None:
    chain = {"end_reason": "compression"}
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session("a", parent_session_id="b", **chain), books.session("b", parent_session_id="a", **chain),
            books.session("hanging", parent_session_id="b"), books.session("self", parent_session_id="self", **chain),
            books.session("lost", parent_session_id="gone"),
        ],
    )  # fmt: skip
    connection = books.open_books(path)
    rows = questions.ask(connection, name, {"session": session}).records()
    shown = [row["session_id"] for row in rows]
    assert session in shown
    assert len(shown) == len(set(shown))
    problems = {r["session_id"]: r["trouble"] for r in questions.ask(connection, "lineage_problems").records()}
    assert problems == {"a": "loop", "b": "loop", "self": "loop", "lost": "missing parent"}


def test_a_lineage_ten_thousand_deep_is_one_conversation(tmp_path: Path) -> None:
    count = 10_000
    path = books.write(
        tmp_path / "state.db",
        sessions=[
            books.session(
                f"s{n:05}", parent_session_id=f"s{n - 1:05}" if n else None, end_reason="compression", input_tokens=1
            )
            for n in range(count)
        ],
    )
    connection = books.open_books(path)
    rows = questions.ask(connection, "top_conversations").records()
    assert [(r["segments"], r["input_tokens"], r["tip_session_id"]) for r in rows] == [(count, count, "s09999")]
    assert len(questions.ask(connection, "lineage_ancestors", {"session": "s09999"}).rows) == count


@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.sampled_from(("root", "continuation", "delegate", "branch", "other"))),
        max_size=12,
    )
)
def test_any_graph_of_links_is_placed_once_and_ends(pairs: list[tuple[int, str]]) -> None:
    links = [Link(row, parent, kind) for row, (parent, kind) in enumerate(pairs)]
    places = {place.row: place for place in arrange(links)}
    assert set(places) == set(range(len(links)))
    for place in places.values():
        seen, row = set(), place.row
        while row is not None:  # links are cut so that every walk upwards ends
            assert row not in seen
            seen.add(row)
            row = places[row].link
        assert place.conversation in seen and place.work in seen
        assert places[place.work].work == place.work
        assert places[place.tip].conversation == place.conversation
        segments = sorted(p.segment for p in places.values() if p.conversation == place.conversation)
        assert segments[0] == 1
